//! What is decided at the times of a schedule, without a store: overlap, catch-up, pauses, changes, backfills.

use std::collections::BTreeSet;
use std::time::Duration;

use positronic_core::record::{RunId, Status, Timestamp};
use positronic_core::schedule::{
    BackfillError, CatchUp, MAX_QUEUED, Observed, Overlap, Schedule, ScheduleRecord, ScheduleSpec, SpecError,
};

use super::workshop::{HOUR, MINUTE, at};

/// A schedule, its time, and the runs that a server would have started.
struct Desk {
    record: ScheduleRecord,
    now: Timestamp,
}

impl Desk {
    /// A schedule every hour, created at midnight.
    fn with(change: impl Fn(Schedule) -> Schedule) -> Self {
        let now = at("2026-01-01T00:00:00Z");
        let schedule = change(Schedule::new("Report").every(HOUR));
        Self { record: ScheduleRecord::new("report", schedule, now).unwrap(), now }
    }

    fn overlap(overlap: Overlap) -> Self {
        Self::with(|schedule| schedule.overlap(overlap))
    }

    /// Looks after a while, and returns the ticks that may start now.
    fn after(&mut self, time: Duration) -> Vec<String> {
        self.now = self.now.after(time);
        self.look(&[])
    }

    fn look(&mut self, ended: &[(RunId, Status)]) -> Vec<String> {
        let ended = ended.iter().cloned().collect();
        let observed = Observed { ended, ..Observed::default() };
        self.record.advance(self.now, &observed).unwrap();
        self.ready()
    }

    fn ready(&self) -> Vec<String> {
        self.record.ready().map(|tick| tick.nominal.to_string()[11..16].to_owned()).collect()
    }

    /// Starts every tick that is ready.
    fn start(&mut self) -> Vec<RunId> {
        let ready: Vec<_> = self.record.ready().collect();
        for tick in &ready {
            assert!(self.record.started(tick, self.now).unwrap());
            assert!(!self.record.started(tick, self.now).unwrap(), "only once");
        }
        ready.iter().map(positronic_core::record::Scheduled::run).collect()
    }

    /// Looks after the running runs have ended.
    fn ends(&mut self, how: Status) -> Vec<String> {
        let running: Vec<_> = self.record.running.iter().map(|tick| (tick.run.clone(), how)).collect();
        self.look(&running)
    }

    fn waiting(&self) -> Vec<String> {
        self.record.queue.iter().map(|tick| tick.nominal.to_string()[11..16].to_owned()).collect()
    }
}

#[test]
fn only_times_after_the_creation_count() {
    let mut desk = Desk::with(|schedule| schedule);
    assert_eq!(desk.record.next, Some(at("2026-01-01T01:00:00Z")), "not the time of its creation");
    assert!(desk.after(HOUR - Duration::from_micros(1)).is_empty());
    assert_eq!(desk.after(Duration::from_micros(1)), ["01:00"]);

    let past = Schedule::new("Report").when(ScheduleSpec::default().at(at("2025-12-31T23:00:00Z")));
    assert_eq!(ScheduleRecord::new("report", past, desk.now), Err(SpecError::Over));
}

#[test]
fn skip_starts_nothing_while_a_run_or_an_earlier_tick_is_open() {
    let mut desk = Desk::overlap(Overlap::Skip);
    assert_eq!(desk.after(HOUR), ["01:00"]);
    desk.start();
    assert!(desk.after(HOUR).is_empty());
    assert!(desk.after(HOUR).is_empty());
    assert!(desk.waiting().is_empty());
    assert!(desk.ends(Status::Completed).is_empty(), "what was skipped does not start later");
    assert_eq!(desk.after(HOUR), ["04:00"]);
}

#[test]
fn buffer_one_lets_one_tick_wait_for_the_end_of_the_run() {
    let mut desk = Desk::overlap(Overlap::BufferOne);
    desk.after(HOUR);
    desk.start();
    for _ in 0..3 {
        assert!(desk.after(HOUR).is_empty());
        assert_eq!(desk.waiting(), ["02:00"]);
    }
    assert_eq!(desk.ends(Status::Failed), ["02:00"], "it has waited for hours, and is not late");
}

#[test]
fn buffer_all_lets_at_most_a_hundred_ticks_wait_in_order() {
    let mut desk = Desk::overlap(Overlap::BufferAll);
    desk.after(HOUR);
    desk.start();
    for _ in 0..MAX_QUEUED + 5 {
        assert!(desk.after(HOUR).is_empty());
    }
    assert_eq!((desk.waiting().len(), &*desk.waiting()[0]), (MAX_QUEUED, "02:00"));
    for expected in ["02:00", "03:00", "04:00"] {
        assert_eq!(desk.ends(Status::Completed), [expected], "one after the other");
        desk.start();
    }
}

#[test]
fn cancel_other_cancels_the_run_and_keeps_the_latest_tick() {
    let mut desk = Desk::overlap(Overlap::CancelOther);
    desk.after(HOUR);
    let first = desk.start();
    assert_eq!(desk.record.cancels().count(), 0);
    assert!(desk.after(HOUR).is_empty(), "it waits for the end of the cancelled run");
    assert_eq!(desk.record.cancels().cloned().collect::<Vec<_>>(), first);
    desk.after(HOUR);
    assert_eq!(desk.waiting(), ["03:00"]);
    assert_eq!(desk.ends(Status::Cancelled), ["03:00"]);
}

#[test]
fn allow_starts_every_tick_at_once() {
    let mut desk = Desk::overlap(Overlap::Allow);
    for expected in ["01:00", "02:00", "03:00"] {
        assert_eq!(desk.after(HOUR), [expected]);
        desk.start();
    }
    assert_eq!(desk.record.running.len(), 3);
}

#[test]
fn latest_of_the_last_hour_starts_after_a_downtime() {
    let mut desk = Desk::with(|schedule| schedule.overlap(Overlap::Allow));
    assert_eq!(desk.after(5 * HOUR + 30 * MINUTE), ["05:00"]);
    let mut desk = Desk::with(|schedule| schedule.overlap(Overlap::Allow).catch_up(CatchUp::None));
    assert!(desk.after(5 * HOUR + 30 * MINUTE).is_empty());
    assert_eq!(desk.after(30 * MINUTE), ["06:00"]);
    let all = CatchUp::All { within: 4 * HOUR, most: 3 };
    let mut desk = Desk::with(|schedule| schedule.overlap(Overlap::Allow).catch_up(all));
    assert_eq!(desk.after(5 * HOUR + 30 * MINUTE), ["03:00", "04:00", "05:00"]);
}

#[test]
fn year_of_downtime_starts_one_run_and_records_what_was_missed() {
    let mut desk = Desk::with(|schedule| schedule.when(ScheduleSpec::default().cron("* * * * *")));
    assert_eq!(desk.after(365 * 24 * HOUR + Duration::from_secs(5)), ["00:00"]);
    assert_eq!(desk.record.decided, at("2027-01-01T00:00:00Z"));
}

#[test]
fn tick_that_no_server_can_start_waits_as_long_as_the_catch_up_allows() {
    let mut desk = Desk::with(|schedule| schedule);
    desk.after(HOUR);
    assert!(desk.record.failed_to_start("no server knows the brain `Report`", desk.now));
    assert!(!desk.record.failed_to_start("no server knows the brain `Report`", desk.now), "it is known");
    assert_eq!(desk.after(30 * MINUTE), ["01:00"]);
    assert_eq!(desk.after(30 * MINUTE), ["02:00"], "the later one replaces it");
    desk.start();
    assert_eq!(desk.record.broken, None);

    let mut desk = Desk::with(|schedule| schedule.when(ScheduleSpec::default().cron("0 1 * * *")));
    desk.after(HOUR);
    assert!(desk.after(HOUR + MINUTE).is_empty(), "an hour is over");
    assert!(desk.waiting().is_empty());
}

#[test]
fn pause_ends_waiting_and_resumption_starts_nothing_of_it() {
    let mut desk = Desk::overlap(Overlap::BufferAll);
    desk.after(HOUR);
    desk.start();
    desk.after(HOUR);
    assert!(desk.record.pause(desk.now, Some("ann".to_owned()), None).unwrap());
    assert!(!desk.record.pause(desk.now, Some("bob".to_owned()), None).unwrap());
    assert_eq!((desk.waiting().len(), desk.record.next), (0, None));
    assert!(desk.after(3 * HOUR).is_empty());
    desk.now = desk.now.after(MINUTE);
    assert!(desk.record.resume(desk.now).unwrap());
    assert!(!desk.record.resume(desk.now).unwrap());
    assert!(desk.ends(Status::Completed).is_empty());
    assert_eq!(desk.after(HOUR), ["06:00"]);
}

#[test]
fn failures_in_a_row_pause_the_schedule() {
    let mut desk = Desk::with(|schedule| schedule.pause_on_failure(2));
    for (ends, is_paused) in [(Status::Failed, false), (Status::Completed, false), (Status::Failed, false)] {
        desk.after(HOUR);
        desk.start();
        desk.ends(ends);
        assert_eq!(desk.record.paused.is_some(), is_paused);
    }
    desk.after(HOUR);
    desk.start();
    desk.ends(Status::Cancelled);
    assert_eq!((desk.record.failures, desk.record.paused.is_some()), (1, false), "a cancelled run does not count");
    desk.after(HOUR);
    desk.start();
    desk.ends(Status::Failed);
    let paused = desk.record.paused.clone().unwrap();
    let reason = "2 runs in a row have failed, the last one is report-20260101T050000Z";
    assert_eq!((paused.by, paused.reason.as_deref()), (None, Some(reason)));
    assert!(desk.after(HOUR).is_empty());
    desk.record.resume(desk.now).unwrap();
    assert_eq!(desk.record.failures, 0);
}

#[test]
fn changed_times_count_from_now_and_other_changes_keep_the_place() {
    let mut desk = Desk::with(|schedule| schedule);
    desk.now = at("2026-01-01T02:30:00Z");
    let often = Schedule::new("Report").every(10 * MINUTE);
    desk.record.set(often.clone(), desk.now).unwrap();
    assert!(desk.look(&[]).is_empty(), "nothing of the past starts");
    assert_eq!((desk.after(10 * MINUTE), desk.record.version), (vec!["02:40".to_owned()], 2));
    desk.start();
    desk.ends(Status::Completed);

    desk.now = at("2026-01-01T02:50:01Z");
    desk.record.set(often.message("Hurry!"), desk.now).unwrap();
    assert_eq!(desk.look(&[]), ["02:50"], "the times are the same");
    let over = Schedule::new("Report").when(ScheduleSpec::default().at(desk.now));
    assert_eq!(desk.record.set(over, desk.now), Err(SpecError::Over));
}

#[test]
fn trigger_obeys_the_overlap_and_ignores_a_pause() {
    let mut desk = Desk::overlap(Overlap::Skip);
    desk.record.pause(desk.now, None, None).unwrap();
    desk.now = desk.now.after(MINUTE);
    desk.record.trigger(desk.now, None, desk.now).unwrap();
    assert_eq!(desk.look(&[]), ["00:01"]);
    assert_eq!(desk.start(), [RunId::new("report-20260101T000100Z-manual")]);
    desk.record.trigger(desk.now.after(MINUTE), None, desk.now).unwrap();
    assert!(desk.ready().is_empty(), "it is skipped");
    desk.record.trigger(desk.now.after(MINUTE), Some(Overlap::Allow), desk.now).unwrap();
    assert_eq!(desk.ready(), ["00:02"]);
}

#[test]
fn allowed_ticks_that_no_server_starts_are_bounded() {
    let mut desk = Desk::overlap(Overlap::Allow);
    for second in 0..=MAX_QUEUED {
        desk.record.trigger(desk.now.after(Duration::from_secs(second as u64)), None, desk.now).unwrap();
    }
    assert_eq!(desk.record.queue.len(), MAX_QUEUED);
}

#[test]
fn backfill_starts_past_times_one_after_the_other() {
    let mut desk = Desk::overlap(Overlap::Skip);
    desk.now = at("2026-01-01T00:30:00Z");
    let past = |from, until| desk.record.past_times(at(from), at(until), desk.now);
    let times = past("2025-12-31T22:00:00Z", "2026-01-02T00:00:00Z").unwrap();
    assert_eq!(times.len(), 3, "22:00, 23:00 and 00:00, and none of the future");
    let year = past("2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z");
    assert_eq!(year, Err(BackfillError::TooMany { most: MAX_QUEUED }));
    let week = past("2025-12-20T00:00:00Z", "2025-12-27T00:00:00Z").unwrap();

    assert_eq!(
        desk.record.backfill(&week, Overlap::BufferAll, desk.now),
        Err(BackfillError::TooMany { most: MAX_QUEUED })
    );
    assert_eq!(desk.record.backfill(&[], Overlap::BufferAll, desk.now), Err(BackfillError::Nothing));
    desk.record.backfill(&times, Overlap::BufferAll, desk.now).unwrap();
    for expected in ["22:00", "23:00", "00:00"] {
        assert_eq!(desk.look(&[]), [expected]);
        desk.start();
        desk.ends(Status::Completed);
    }
    // An own tick of the schedule is not late because of it.
    assert_eq!(desk.after(30 * MINUTE), ["01:00"]);
}

#[test]
fn clock_that_goes_back_starts_nothing_twice_and_the_schedule_goes_on() {
    let mut desk = Desk::overlap(Overlap::Allow);
    desk.after(HOUR);
    desk.start();
    // The clock jumps three years ahead for a moment.
    let right = desk.now;
    assert_eq!(desk.after(3 * 365 * 24 * HOUR).len(), 1);
    desk.start();
    desk.now = Timestamp(right.0 - 1);
    let observed = Observed { known: BTreeSet::from([right]), ..Observed::default() };
    desk.record.advance(desk.now, &observed).unwrap();
    desk.now = right.after(MINUTE);
    desk.record.advance(desk.now, &observed).unwrap();
    assert!(desk.ready().is_empty(), "01:00 has its run");
    assert_eq!(desk.after(HOUR), ["02:00"]);
}

#[test]
fn clock_that_goes_back_and_forward_again_starts_no_time_before_the_schedule_was_set() {
    let all = CatchUp::All { within: 24 * HOUR, most: 9 };
    let mut desk = Desk::with(|schedule| schedule.overlap(Overlap::Allow).catch_up(all));
    let set = desk.now;
    desk.now = Timestamp(set.0 - 5 * 3600 * 1_000_000);
    for _ in 0..6 {
        assert!(desk.look(&[]).is_empty(), "{}", desk.now);
        desk.now = desk.now.after(HOUR);
    }
    assert_eq!(desk.look(&[]), ["01:00"]);
    desk.start();

    // Nor one before it was changed, or of a pause.
    desk.now = at("2026-01-01T09:30:00Z");
    desk.record.pause(desk.now, None, None).unwrap();
    desk.now = at("2026-01-01T12:30:00Z");
    desk.record.resume(desk.now).unwrap();
    desk.now = at("2026-01-01T10:30:00Z");
    assert!(desk.look(&[]).is_empty());
    assert_eq!(desk.after(3 * HOUR), ["13:00"]);
    desk.start();
    desk.record.set(Schedule::new("Report").every(10 * MINUTE).catch_up(all), desk.now).unwrap();
    desk.now = at("2026-01-01T12:30:00Z");
    assert!(desk.look(&[]).is_empty());
    desk.ends(Status::Completed);
    assert_eq!(desk.after(HOUR + 10 * MINUTE), ["13:40"]);
}

#[test]
fn schedule_that_was_set_while_the_clock_was_ahead_begins_when_it_is_set_again() {
    let mut desk = Desk::with(|schedule| schedule);
    desk.now = at("2025-01-01T00:00:00Z");
    assert!(desk.after(HOUR).is_empty());
    assert_eq!(desk.record.next, Some(at("2026-01-01T01:00:00Z")), "as it was set");
    desk.record.set(desk.record.schedule.clone(), desk.now).unwrap();
    assert_eq!(desk.after(HOUR), ["02:00"]);
}

#[test]
fn all_missed_times_start_one_after_the_other_with_any_overlap_that_waits() {
    for overlap in [Overlap::Skip, Overlap::BufferOne, Overlap::BufferAll] {
        let all = CatchUp::All { within: 24 * HOUR, most: 100 };
        let mut desk = Desk::with(|schedule| schedule.overlap(overlap).catch_up(all));
        let mut started = desk.after(4 * HOUR);
        for _ in 0..3 {
            desk.start();
            started.extend(desk.ends(Status::Completed));
        }
        assert_eq!(started, ["01:00", "02:00", "03:00", "04:00"], "{overlap:?}");
        desk.start();
        desk.after(HOUR);
        assert_eq!(desk.waiting().is_empty(), overlap == Overlap::Skip, "a time that was not missed obeys the overlap");
    }
}

#[test]
fn looking_again_changes_nothing() {
    for overlap in [Overlap::Skip, Overlap::BufferOne, Overlap::CancelOther] {
        let mut desk = Desk::with(|schedule| schedule.overlap(overlap).pause_on_failure(3));
        desk.after(HOUR);
        desk.start();
        desk.after(HOUR);
        let before = desk.record.clone();
        for _ in 0..3 {
            desk.after(MINUTE);
            assert_eq!(desk.record, before, "{overlap:?}");
        }
    }
}
