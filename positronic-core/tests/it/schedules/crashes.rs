//! A process that starts a scheduled run crashes at any write: the run starts once.

use std::sync::atomic::Ordering;

use positronic_core::record::Status;
use positronic_core::store::prelude::*;
use positronic_core::store::{MemoryStore, RunFilter};

use super::workshop::{HOUR, MINUTE, ManualClock, dying, fire, hourly, look, process, ticks};

#[tokio::test]
async fn tick_starts_one_run_after_a_crash_at_any_write() {
    for written in [false, true] {
        for dies_at in 0.. {
            let (clock, store) = (ManualClock::new(), MemoryStore::new());
            let patient = process("patient", store.clone(), clock.clone());
            patient.client().schedules().set("report", hourly("work")).await.unwrap();
            let (dying, count) = dying(store.clone(), dies_at, written);
            let first = process("first", dying, clock.clone());
            for _ in 0..2 {
                clock.passes(HOUR);
                for run in look(&first).await.into_iter().flatten() {
                    run.settled().await;
                }
            }
            let died = count.load(Ordering::SeqCst) > dies_at;
            first.release().await;
            drop(first);

            // Another process continues, within the time of the catch-up.
            clock.passes(MINUTE);
            for row in store.runs(&RunFilter::default()).await.unwrap() {
                if !row.status.is_over() {
                    patient.resume(&row.run).await.unwrap().settled().await;
                }
            }
            for timer in patient.client().schedules().due_of_all().await.unwrap() {
                if let Ok(run) = patient.fire(&timer).await {
                    run.settled().await;
                }
            }
            assert!(fire(&patient).await.is_empty(), "at {dies_at}, written: {written}");
            let third = process("third", store.clone(), clock.clone());
            assert!(third.client().schedules().due_of_all().await.unwrap().is_empty());

            let rows = store.runs(&RunFilter::default()).await.unwrap();
            let mut runs: Vec<_> = rows.iter().map(|row| row.run.as_str()).collect();
            runs.sort_unstable();
            let at = format!("at {dies_at}, written: {written}: {runs:?} {:?}", ticks(&patient).await);
            assert!(rows.iter().all(|row| row.status == Status::Completed), "{at}");
            // The tick of 01:00 is missed if the process died before it was decided.
            assert!(runs.ends_with(&["report-20260101T020000Z"]) && runs.len() <= 2, "{at}");
            let recorded = ticks(&patient).await;
            let started = recorded.iter().filter(|tick| tick.ends_with("started")).count();
            assert_eq!((recorded.len(), started), (2, runs.len()), "{at}");
            if !died {
                assert!(dies_at > 15, "it died {dies_at} times");
                break;
            }
        }
    }
}
