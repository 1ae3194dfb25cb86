//! Property: looking often and looking once decide the same times.

use std::time::Duration;

use positronic_core::record::Timestamp;
use positronic_core::schedule::{ScheduleSpec, due};
use proptest::prelude::*;

use super::workshop::at;

fn specs() -> impl Strategy<Value = ScheduleSpec> {
    let cron = prop::sample::select(vec![
        "*/20 * * * *",
        "0,30 1-3 * * *",
        "30 2 * * *",
        "15 */2 * * SUN",
        "0 0 1 * *",
        "45 2 29 3 *",
    ]);
    let zone = prop::sample::select(vec!["UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/Santiago"]);
    let jitter = prop::sample::select(vec![0, 7, 3600, 40_000]);
    (cron, zone, jitter, prop::option::of(600_u64..100_000)).prop_map(|(cron, zone, jitter, every)| {
        let spec = ScheduleSpec::default().cron(cron).zone(zone).jitter(Duration::from_secs(jitter));
        every.into_iter().fold(spec, |spec, every| spec.every(Duration::from_secs(every)))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn due_in_any_steps_gives_the_same_times_as_once(
        spec in specs(),
        begin in 0_i64..365 * 24 * 60,
        mut steps in prop::collection::vec(0_i64..5 * 24 * 3600, 1..30),
    ) {
        let begin = Timestamp(at("2026-01-01T00:00:00Z").0 + begin * 60_000_000);
        steps.sort_unstable();
        let end = Timestamp(begin.0 + steps[steps.len() - 1] * 1_000_000);

        let (mut last, mut stepwise) = (begin, Vec::new());
        for step in steps {
            let due = due("report", &spec, last, Timestamp(begin.0 + step * 1_000_000)).unwrap();
            prop_assert_eq!(due.unlisted, None);
            last = due.last().unwrap_or(last);
            stepwise.extend(due.times);
        }
        prop_assert_eq!(stepwise, due("report", &spec, begin, end).unwrap().times);
    }
}
