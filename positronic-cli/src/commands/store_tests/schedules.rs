//! `schedule`, and the runs that `work` starts for schedules.

use positronic_core::prelude::*;
use positronic_core::store::prelude::*;
use positronic_sqlite::SqliteStore;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::desk::{Desk, scripted};
use crate::app::Project;

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
struct Team {
    team: String,
}

fn reporting() -> Project {
    let report = brain("Daily report").options::<Team>().step("Print", async |cx| match cx.options.team.as_str() {
        "lost" => Err(Error::new("there is no such team")),
        _ => Ok(()),
    });
    Project::new().brain(report)
}

#[test]
fn schedule_is_added_listed_paused_and_removed() {
    let desk = Desk::new();
    let call = |arguments: &[&str]| desk.call(&reporting(), &[&["schedule"], arguments].concat());
    let add = ["add", "report", "daily", "-o", "team=sales", "--cron", "0 9 * * *", "--zone", "Europe/Berlin"];

    let added = call(&add);
    assert!(added.out.starts_with("set the schedule report; its next run is at 2"), "{}{}", added.out, added.err);
    let again = call(&add);
    assert_eq!(
        (again.code, &*again.err),
        (7, "error: there is a schedule `report` already\n  --replace replaces it\n")
    );
    assert_eq!(call(&[&add[..], &["--replace", "--overlap", "buffer-one"]].concat()).code, 0);

    let listed = call(&["list"]).out;
    assert!(listed.starts_with("report  Daily report: `0 9 * * *` in Europe/Berlin; next in "), "{listed}");
    let record = desk.json(&["schedule", "list"]);
    assert_eq!((&record["schedule"]["overlap"], &record["version"]), (&json!("buffer_one"), &json!(2)));
    assert_eq!(record["schedule"]["options"], json!({"team": "sales"}));

    assert_eq!(call(&["pause", "report", "--reason", "holidays", "--by", "ann"]).out, "paused the schedule report\n");
    assert!(call(&["list"]).out.contains("\n  paused by ann 0s ago: holidays\n"), "{}", call(&["list"]).out);
    assert!(call(&["resume", "report"]).out.starts_with("resumed the schedule report; its next run is at 2"));
    assert!(call(&["remove", "report"]).err.starts_with("removed the schedule report;"));
    assert_eq!(call(&["list"]).err, "no schedule is set in desk/runs.db\n");
    let gone = call(&["pause", "report"]);
    assert!(gone.err.starts_with("error: there is no schedule `report`\n"), "{}", gone.err);
}

#[test]
fn invalid_schedules_are_refused_with_the_place() {
    let desk = Desk::new();
    let call = |arguments: &[&str]| desk.call(&reporting(), &[&["schedule", "add"], arguments].concat());
    let refused = |arguments: &[&str]| {
        let outcome = call(arguments);
        (outcome.code, outcome.err)
    };
    let cron = refused(&["report", "daily", "-o", "team=a", "--cron", "0 25 * * *"]);
    let text = "error: the cron expression `0 25 * * *` is invalid: the hour at position 2: number out of bounds; the values are 0 to 23\n";
    assert_eq!(cron, (2, text.to_owned()));
    assert!(
        refused(&["a b", "daily", "-o", "team=a", "--cron", "@daily"]).1.contains("the schedule's id `a b` is invalid")
    );
    assert!(refused(&["report", "daily", "-o", "size=a", "--cron", "@daily"]).1.contains("options of `Daily report`"));
    assert!(refused(&["report", "weekly", "--cron", "@daily"]).1.contains("unknown brain `weekly`"));
    assert!(refused(&["report", "daily", "-o", "team=a"]).1.contains("no cron expression, no interval and no time"));
}

#[test]
fn preview_shows_the_zone_and_utc_and_the_days_on_which_the_clock_changes() {
    let desk = Desk::new();
    let preview = ["schedule", "preview", "--cron", "30 2 28-30 3 *", "--zone", "Europe/Berlin"];
    // All of these are in the future of any test.
    let range = ["--start", "2100-03-01T00:00:00Z", "--count", "3"];
    let shown = desk.call(&Project::new(), &[&preview[..], &range].concat());
    insta::assert_snapshot!(shown.out, @"
    2100-03-28T03:00:00+02:00  2100-03-28T01:00:00Z  the clock goes forward on this day
    2100-03-29T02:30:00+02:00  2100-03-29T00:30:00Z
    2100-03-30T02:30:00+02:00  2100-03-30T00:30:00Z
    ");
}

#[test]
fn work_starts_the_runs_of_schedules_and_their_ticks_are_listed() {
    let desk = Desk::new();
    let call = |arguments: &[&str]| desk.call(&reporting(), arguments);
    let add = ["schedule", "add", "report", "daily", "-o", "team=sales", "--every", "52w"];
    assert_eq!(call(&add).code, 0);
    assert_eq!(call(&["work", "--once"]).err, "", "nothing is due");

    let triggered = call(&["schedule", "trigger", "report"]).out;
    assert!(triggered.starts_with("report-2") && triggered.contains("starts within a second, once"), "{triggered}");
    let worked = call(&["work", "--once"]);
    let run = triggered.split(' ').next().unwrap();
    assert!(worked.err.starts_with(&format!("the schedule report has started {run}\n")), "{}", worked.err);
    let ticks = call(&["schedule", "list", "report"]).out;
    assert!(ticks.ends_with(&format!("  has started {run}\n")), "{ticks}");
    assert!(call(&["show", run]).out.contains("the schedule report has started it, for 2"));

    // A project without the brain.
    call(&["schedule", "trigger", "report"]);
    let strange = desk.call(&Project::new(), &["work", "--once"]);
    assert_eq!(strange.err, "the schedule report cannot fire here: unknown brain `Daily report`\n");
    let listed = call(&["schedule", "list"]).out;
    assert!(listed.contains("\n  broken: unknown brain `Daily report`\n"), "{listed}");
    assert!(listed.contains("\n  1 tick to start\n"), "{listed}");
    let tick: Value =
        serde_json::from_str(&call(&["schedule", "list", "report", "--limit", "1", "--json"]).out).unwrap();
    assert_eq!(tick["outcome"], json!({"type": "due"}));
}

#[test]
fn unreadable_schedule_is_listed_with_its_error_and_can_be_removed() {
    let desk = Desk::new();
    for id in ["audit", "broken"] {
        let added = desk.call(&scripted([]), &["schedule", "add", id, "batch", "--every", "1h"]);
        assert_eq!(added.code, 0, "{}", added.err);
    }
    let path = desk.path("runs.db");
    let damage = async {
        let store = SqliteStore::open(&path).unwrap();
        let entry = store.entry("schedule", "broken").await.unwrap().unwrap();
        store.put_entry("schedule", "broken", &json!("of a later release"), Some(entry.revision)).await.unwrap();
    };
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(damage);

    let listed = desk.call(&Project::new(), &["schedule", "list"]);
    let lines = desk.call(&Project::new(), &["schedule", "list", "--json"]).out;

    assert_eq!(listed.code, 0, "{}", listed.err);
    assert!(listed.out.starts_with("audit  "), "{}", listed.out);
    assert!(listed.out.contains("broken  unreadable\n  cannot read the schedule `broken`: "), "{}", listed.out);
    assert!(listed.out.ends_with("remove it with: desk schedule remove broken\n"), "{}", listed.out);
    let last: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!(last["id"], "broken");
    assert!(last["unreadable"].as_str().unwrap().contains("the schedule `broken`"), "{last}");
    assert_eq!(desk.call(&Project::new(), &["schedule", "remove", "broken"]).code, 0);
    assert!(!desk.call(&Project::new(), &["schedule", "list"]).out.contains("broken"));
}
