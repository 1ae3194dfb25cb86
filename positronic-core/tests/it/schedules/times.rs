//! The times of schedules: cron expressions, time zones, intervals, exclusions.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use positronic_core::record::Timestamp;
use positronic_core::schedule::{
    CatchUp, DateRange, Interval, MAX_DUE, ScheduleSpec, SpecError, TimeShift, due, jitter, preview,
};
use serde::Deserialize;

use super::workshop::at;

#[derive(Deserialize)]
struct Croniter {
    source: String,
    patterns: Vec<Pattern>,
}

#[derive(Deserialize)]
struct Pattern {
    cron: String,
    zone: String,
    times: Vec<String>,
}

fn times(spec: &ScheduleSpec, after: &str, count: usize) -> Vec<String> {
    preview(spec, at(after), count).unwrap().into_iter().map(|time| time.nominal.to_string()).collect()
}

fn local(spec: &ScheduleSpec, after: &str, count: usize) -> Vec<String> {
    preview(spec, at(after), count).unwrap().into_iter().map(|time| time.local).collect()
}

#[test]
fn cron_times_are_those_of_croniter() {
    let fixture: Croniter = serde_json::from_str(include_str!("croniter.json")).unwrap();
    assert!(fixture.source.ends_with("the times after 2026-01-31T23:59:30Z"), "{}", fixture.source);
    for Pattern { cron, zone, times: expected } in fixture.patterns {
        let spec = ScheduleSpec::default().cron(&*cron).zone(&*zone);
        assert_eq!(times(&spec, "2026-01-31T23:59:30Z", expected.len()), expected, "{cron} in {zone}");
    }
}

/// Counts the times on each local day from 2026 to 2035 that has not as many as the others.
fn unusual_days(cron: &str, zone: &str, usual: usize) -> BTreeMap<String, usize> {
    let spec = ScheduleSpec::default().cron(cron).zone(zone).end(at("2036-01-01T00:00:00Z"));
    let (mut days, mut last) = (BTreeMap::<String, usize>::new(), at("2026-01-01T12:00:00Z"));
    loop {
        let page = preview(&spec, last, 1000).unwrap();
        let Some(end) = page.last() else { break };
        last = end.nominal;
        for time in &page {
            *days.entry(time.local[..10].to_owned()).or_default() += 1;
        }
    }
    // The range begins and ends within a day.
    days.pop_first();
    days.pop_last();
    assert!(days.len() > 3640, "no day is missing: {}", days.len());
    days.retain(|_, count| *count != usual);
    days
}

#[test]
fn fixed_time_fires_once_on_each_day_of_ten_years_in_both_hemispheres() {
    for zone in ["Europe/Berlin", "Australia/Sydney", "America/Santiago"] {
        for cron in ["30 2 * * *", "0 2 * * *", "0 0 * * *", "59 2 * * *", "30 23 * * *"] {
            assert_eq!(unusual_days(cron, zone, 1), BTreeMap::new(), "{cron} in {zone}");
        }
    }
    // Two entries in the gap are one time at its end; a repeated hour counts once.
    let berlin = unusual_days("0,30 2 * * *", "Europe/Berlin", 2);
    assert_eq!((berlin.len(), berlin.get("2026-03-29"), berlin.get("2026-10-25")), (10, Some(&1), None));
    let sydney = unusual_days("0,30 2 * * *", "Australia/Sydney", 2);
    assert_eq!((sydney.len(), sydney.get("2026-10-04"), sydney.get("2026-04-05")), (10, Some(&1), None));
}

#[test]
fn expression_for_every_hour_follows_elapsed_time() {
    let berlin = unusual_days("0 * * * *", "Europe/Berlin", 24);
    assert_eq!((berlin.len(), berlin.get("2026-03-29"), berlin.get("2026-10-25")), (20, Some(&23), Some(&25)));
    let sydney = unusual_days("*/30 * * * *", "Australia/Sydney", 48);
    assert_eq!((sydney.len(), sydney.get("2026-10-04"), sydney.get("2026-04-05")), (20, Some(&46), Some(&50)));
}

#[test]
fn skipped_time_moves_to_the_end_of_the_gap_and_repeated_time_is_the_first() {
    let spec = ScheduleSpec::default().cron("15,45 2 * * *").zone("Europe/Berlin");
    assert_eq!(
        local(&spec, "2026-03-28T12:00:00Z", 3),
        ["2026-03-29T03:00:00+02:00", "2026-03-30T02:15:00+02:00", "2026-03-30T02:45:00+02:00"]
    );
    assert_eq!(
        local(&spec, "2026-10-24T12:00:00Z", 3),
        ["2026-10-25T02:15:00+02:00", "2026-10-25T02:45:00+02:00", "2026-10-26T02:15:00+01:00"]
    );
    // Also when asked within the repeated hour.
    assert_eq!(local(&spec, "2026-10-25T01:20:00Z", 1), ["2026-10-26T02:15:00+01:00"]);
}

#[test]
fn preview_flags_the_days_on_which_the_clock_changes() {
    let spec = ScheduleSpec::default().cron("0 9 * * *").zone("Australia/Sydney");
    let shifts = |after| preview(&spec, at(after), 3).unwrap().into_iter().map(|time| time.shift).collect::<Vec<_>>();
    assert_eq!(shifts("2026-04-03T12:00:00Z"), [None, Some(TimeShift::Back), None]);
    assert_eq!(shifts("2026-10-02T12:00:00Z"), [None, Some(TimeShift::Forward), None]);
    assert_eq!(preview(&spec.zone("UTC"), at("2026-10-02T12:00:00Z"), 3).unwrap()[1].shift, None);
}

#[test]
fn intervals_count_from_1970_and_single_times_fire_once() {
    let mut spec = ScheduleSpec::default().every(Duration::from_hours(6)).at(at("2026-01-01T07:30:00Z"));
    assert_eq!(
        times(&spec, "2026-01-01T01:00:00Z", 3),
        ["2026-01-01T06:00:00Z", "2026-01-01T07:30:00Z", "2026-01-01T12:00:00Z"]
    );
    spec.every = vec![Interval { every: Duration::from_hours(24), offset: Duration::from_hours(9) }];
    assert_eq!(times(&spec, "2026-01-01T08:00:00Z", 2), ["2026-01-01T09:00:00Z", "2026-01-02T09:00:00Z"]);

    let once = ScheduleSpec::default().at(at("2026-01-01T07:30:00Z"));
    assert_eq!(times(&once, "2026-01-01T07:30:00Z", 5), Vec::<String>::new());
}

#[test]
fn several_times_are_one_if_they_are_equal() {
    let spec = ScheduleSpec::default().cron("0 * * * *").cron("0,30 * * * *").every(Duration::from_hours(1));
    assert_eq!(
        times(&spec, "2026-01-01T00:00:00Z", 3),
        ["2026-01-01T00:30:00Z", "2026-01-01T01:00:00Z", "2026-01-01T01:30:00Z"]
    );
}

#[test]
fn only_times_in_the_range_and_outside_of_the_excluded_dates_count() {
    let holidays: DateRange = "2026-12-24/2026-12-26".parse().unwrap();
    let spec = ScheduleSpec::default()
        .cron("0 0,12 * * *")
        .zone("Europe/Berlin")
        .start(at("2026-12-23T11:00:00Z"))
        .end(at("2026-12-27T11:00:00Z"))
        .exclude(holidays);
    assert_eq!(
        local(&spec, "2026-01-01T00:00:00Z", 9),
        ["2026-12-23T12:00:00+01:00", "2026-12-27T00:00:00+01:00", "2026-12-27T12:00:00+01:00"]
    );
    // A long exclusion is skipped at once, not time by time.
    let century: DateRange = "2026-01-02/2125-12-31".parse().unwrap();
    let spec = ScheduleSpec::default().every(Duration::from_secs(1)).exclude(century);
    assert_eq!(times(&spec, "2026-01-01T23:59:58Z", 2), ["2026-01-01T23:59:59Z", "2126-01-01T00:00:00Z"]);
    // The calendar ends with 9999.
    let forever: DateRange = "2026-01-02/9999-12-31".parse().unwrap();
    let spec = ScheduleSpec::default().every(Duration::from_secs(1)).exclude(forever);
    assert_eq!(times(&spec, "2026-01-01T23:59:58Z", 2), ["2026-01-01T23:59:59Z"]);
}

#[test]
fn invalid_specifications_name_the_part_and_its_position() {
    let reason = |spec: ScheduleSpec| spec.check().unwrap_err().to_string();
    let many = (0..21).fold(ScheduleSpec::default(), |spec, minute| spec.cron(format!("{minute} * * * *")));
    assert_eq!(reason(many), "the schedule has more than 20 entries in `cron`; split it into several schedules");
    let cron = |text: &str| reason(ScheduleSpec::default().cron(text));
    let position = |text: &str| match ScheduleSpec::default().cron(text).check() {
        Err(SpecError::Cron { error, .. }) => (error.position, error.field),
        other => panic!("{other:?}"),
    };
    assert_eq!(position("0 25 * * *"), (2, Some("hour")));
    assert_eq!(position("  0 9  32 * *"), (7, Some("day of the month")));
    assert_eq!(position("61 0 9 * * *"), (0, Some("second")));
    assert_eq!(position("0 9 * * FUNDAY"), (8, Some("day of the week")));
    assert_eq!(position("0 9 * *"), (0, None));
    insta::assert_snapshot!(
        [cron("0 25 * * *"), cron("0 9 * *"), cron(""), cron("@often"), cron("0 0 30 2 *")].join("\n"),
        @"
    the cron expression `0 25 * * *` is invalid: the hour at position 2: number out of bounds; the values are 0 to 23
    the cron expression `0 9 * *` is invalid: it has 4 fields instead of 5, 6 or 7
    the cron expression `` is invalid: it has 0 fields instead of 5, 6 or 7
    the cron expression `@often` is invalid: `@often` is unknown; known are @hourly, @daily, @weekly, @monthly, @yearly, @annually
    the cron expression `0 0 30 2 *` is invalid: it has no time
    "
    );
    insta::assert_snapshot!(
        [
            reason(ScheduleSpec::default()),
            reason(ScheduleSpec::default().cron("@daily").zone("Europe/Bonn")),
            reason(ScheduleSpec::default().every(Duration::from_millis(999))),
            reason(ScheduleSpec::default().cron("@daily").jitter(Duration::from_hours(25))),
            "2026-12-26/2026-12-24".parse::<DateRange>().unwrap_err().to_string(),
            "Christmas".parse::<DateRange>().unwrap_err().to_string(),
        ]
        .join("\n"),
        @"
    the schedule has no cron expression, no interval and no time
    unknown time zone `Europe/Bonn`; use a name of the IANA database, such as `Europe/Berlin` or `UTC`
    the interval is shorter than a second
    the jitter is longer than a day
    cannot read the dates `2026-12-26/2026-12-24`: the last date is before the first one; write `2026-12-24` or `2026-12-24/2026-12-31`
    cannot read the dates `Christmas`: failed to parse four digit integer as year: invalid digit, expected 0-9 but got C; write `2026-12-24` or `2026-12-24/2026-12-31`
    "
    );
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test is about the time that a search takes")]
fn impossible_and_rare_dates_are_found_out_quickly() {
    let begun = Instant::now();
    for cron in ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 0 1 1 * 1999"] {
        assert!(ScheduleSpec::default().cron(cron).check().is_err(), "{cron}");
    }
    let leap_day = ScheduleSpec::default().cron("0 0 29 2 *");
    assert_eq!(times(&leap_day, "2096-03-01T00:00:00Z", 1), ["2104-02-29T00:00:00Z"]);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test is about the time that a search takes")]
fn a_search_past_excluded_dates_ends_after_a_century() {
    let begun = Instant::now();
    let mut spec = (0..20).fold(ScheduleSpec::default(), |spec, minute| spec.cron(format!("{minute} 0 29 2 *")));
    let is_leap = |year: &u32| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let leap_days: Vec<String> = (2026..).filter(is_leap).take(400).map(|year| format!("{year}-02-29")).collect();
    spec = leap_days.iter().fold(spec, |spec, day| spec.exclude(day.parse().unwrap()));
    assert_eq!(times(&spec, "2026-01-01T00:00:00Z", 1), [""; 0]);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn jitter_delays_by_the_same_time_on_every_server() {
    let spec = ScheduleSpec::default().every(Duration::from_hours(1)).jitter(Duration::from_mins(10));
    let (begin, nominal) = (at("2026-01-01T00:00:00Z"), at("2026-01-01T01:00:00Z"));
    let delay = jitter("report", nominal, spec.jitter);
    assert!(delay < Duration::from_mins(10) && !delay.is_zero(), "{delay:?}");
    assert_ne!(delay, jitter("other", nominal, spec.jitter));
    assert_ne!(delay, jitter("report", at("2026-01-01T02:00:00Z"), spec.jitter));

    let starts = nominal.after(delay);
    assert_eq!(due("report", &spec, begin, Timestamp(starts.0 - 1)).unwrap().times, []);
    assert_eq!(due("report", &spec, begin, starts).unwrap().times, [nominal]);
    // A jitter longer than the interval keeps the order.
    let spec = ScheduleSpec::default().every(Duration::from_secs(1)).jitter(Duration::from_hours(1));
    let times = due("report", &spec, begin, begin.after(Duration::from_hours(3))).unwrap();
    assert!(times.unlisted.is_some() && times.times.is_sorted(), "{:?}", times.unlisted);
    assert!(times.last().unwrap() >= begin.after(Duration::from_hours(2)));
    assert_eq!(CatchUp::default().within(), Duration::from_hours(1));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test is about the time that a search takes")]
fn long_downtime_lists_the_last_thousand_times_and_the_range_before_them() {
    let spec = ScheduleSpec::default().cron("* * * * * *");
    let (last, now) = (at("2026-01-01T00:00:00Z"), at("2029-01-01T00:00:00Z"));
    let begun = Instant::now();
    let due = due("report", &spec, last, now).unwrap();

    let (since, until) = due.unlisted.unwrap();
    assert_eq!((since, due.times.last()), (last, Some(&now)));
    assert!(due.times.len() > MAX_DUE / 4 && due.times.len() <= MAX_DUE, "{}", due.times.len());
    assert_eq!(due.times[0].0 / 1_000_000, until.0 / 1_000_000 + 1, "nothing is lost in between");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[test]
fn step_that_leaves_one_value_is_refused_with_what_to_write() {
    for (cron, reason) in [
        (
            "*/90 * * * *",
            "the minute at position 0: the step 90 leaves only the minute 0 of `*`; write `0`, or use an interval of `90m` \
             instead of a cron expression",
        ),
        ("0 */36 * * *", "the hour at position 2: the step 36 leaves only the hour 0 of `*`; write `0`, or use an"),
        ("0 0 1 */12 *", "the month at position 6: the step 12 leaves only the month 1 of `*`; write `1`"),
        ("0 0 * * */7", "the day of the week at position 8: the step 7 leaves only"),
        ("5,10-20/11 * * * *", "the step 11 leaves only the minute 10 of `10-20`; write `10`"),
        ("0 0 * JAN-MAR/3 *", "the step 3 leaves only the month 1 of `JAN-MAR`"),
        ("*/60 * * * * *", "the second at position 0: the step 60"),
    ] {
        let error = ScheduleSpec::default().cron(cron).check().unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
    for cron in
        ["*/59 * * * *", "0 */23 * * *", "10-20/10 * * * *", "0 0 */30 * *", "0 0 * * MON-FRI/2", "5-59/54 * * * *"]
    {
        assert_eq!(ScheduleSpec::default().cron(cron).check(), Ok(()), "{cron}");
    }
}
