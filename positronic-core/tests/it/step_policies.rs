//! Retries and time limits of single steps.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use positronic_core::dsl::Retry;
use positronic_core::model::scripted::ScriptedModel;
use positronic_core::prelude::*;
use positronic_core::record::Seq;
use positronic_core::testing::{CountedIds, TestClock};

fn runner() -> Runner {
    Runner::new(ScriptedModel::new([])).clock(TestClock::default()).ids(CountedIds::default())
}

/// A step that fails so often, and counts its tries.
fn failing(times: u32, tries: &Arc<AtomicU32>, error: fn() -> Error) -> positronic_core::dsl::BrainBuilder<(), u32> {
    let tries = Arc::clone(tries);
    brain("Flaky").step("Try", move |_| {
        let tried = tries.fetch_add(1, Ordering::SeqCst);
        async move { if tried < times { Err(error()) } else { Ok(tried) } }
    })
}

#[tokio::test(start_paused = true)]
async fn transient_error_is_tried_again_so_often() {
    for (times, retries, succeeds) in [(5, 5, true), (5, 4, false), (1, 0, false)] {
        let tries = Arc::default();
        let brain = failing(times, &tries, || Error::transient("busy")).retry(Retry::times(retries));
        let run = runner().start(&brain, ()).await.unwrap();
        assert_eq!(run.result().await.is_ok(), succeeds, "{times} {retries}");
        assert_eq!(tries.load(Ordering::SeqCst), retries + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn author_chooses_the_errors_that_are_tried_again() {
    let tries = Arc::default();
    let brain = failing(2, &tries, || Error::new("the printer is out of paper"))
        .retry(Retry::times(3).on(|error| error.to_string().contains("paper")));
    assert_eq!(runner().start(&brain, ()).await.unwrap().result().await.unwrap(), 2);

    let tries = Arc::default();
    let brain = failing(2, &tries, || Error::transient("busy")).retry(Retry::times(3).on(|_| panic!("no such error")));
    runner().start(&brain, ()).await.unwrap().result().await.unwrap_err();
    assert_eq!(tries.load(Ordering::SeqCst), 1, "a choice that panics is none");
}

#[tokio::test(start_paused = true)]
async fn try_that_takes_too_long_is_dropped_and_tried_again() {
    let tries = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&tries);
    let brain = brain("Slow")
        .step("Wait", move |_| {
            let tried = counted.fetch_add(1, Ordering::SeqCst);
            async move {
                tokio::time::sleep(Duration::from_secs(if tried < 2 { 60 } else { 1 })).await;
                Ok(tried)
            }
        })
        .timeout(Duration::from_secs(5));
    let run = runner().start(&brain, ()).await.unwrap();
    assert_eq!(run.result().await.unwrap(), 2);
    let log = run.events(Seq(0)).await.unwrap();
    let messages: Vec<_> = log
        .iter()
        .filter_map(|event| match &event.kind {
            positronic_core::record::EventKind::StepRetry { message, .. } => Some(message.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(messages, ["it took longer than 5s"; 2]);
}
