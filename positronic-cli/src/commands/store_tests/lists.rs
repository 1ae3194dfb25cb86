//! Names of runs, and how lists show them.

use positronic_core::model::scripted::Reply;
use positronic_core::record::Usage;
use serde_json::{Value, json};

use super::desk::{Desk, begun, refund, scripted};
use crate::app::Project;
use crate::commands::tests::{project, without_times};

#[test]
fn empty_list_of_runs_is_reported() {
    let desk = Desk::new();
    begun(&desk, "ticket-1");

    let nothing = desk.call(&Project::new(), &["runs", "status:failed"]);
    assert_eq!((nothing.code, nothing.err.as_str()), (0, "no run in desk/runs.db matches; `desk runs` lists all\n"));
}

#[test]
fn runs_are_listed_by_their_tags() {
    let desk = Desk::new();
    let run = |replies: Vec<Reply>, id: &str, tags: &[&str]| {
        let start = ["run", "help desk", "-o", "customer=ada", "--id", id];
        desk.call(&scripted(replies), &[&start, tags].concat())
    };
    run(vec![refund(70)], "ticket-1", &[]);
    run(vec![refund(70)], "ticket-2", &["--tag", "urgent", "--tag", "eu"]);

    let listed = desk.json(&["runs", "tag:eu"]);
    assert_eq!((&listed["run"], &listed["tags"]), (&json!("ticket-2"), &json!(["urgent", "eu"])));
    let refused = run(Vec::new(), "ticket-3", &["--tag", ""]);
    assert!(refused.err.contains("the tag \"\" is invalid: it is empty"), "{}", refused.err);
}

#[test]
fn list_notes_its_truncation_only_when_rows_are_left_out() {
    let desk = Desk::new();
    begun(&desk, "ticket-1");
    for id in ["a", "b"] {
        let webhook = ["send", "--webhook", "slack", "--identifier", id, "--payload", "{}"];
        assert_eq!(desk.call(&Project::new(), &webhook).code, 0);
    }
    let noted = |list: &[&str]| desk.call(&Project::new(), list).err.contains("use --limit for more");

    assert!(
        !noted(&["runs", "--limit", "1"]) && !noted(&["inbox", "--limit", "1"]),
        "there is one run, and one question"
    );
    assert!(!noted(&["inbox", "--mail", "--limit", "2"]));
    assert!(noted(&["inbox", "--mail", "--limit", "1"]));
    begun(&desk, "ticket-2");
    assert!(noted(&["runs", "--limit", "1"]) && noted(&["inbox", "--limit", "1"]));
    assert_eq!(desk.call(&Project::new(), &["runs", "--limit", "1", "--json"]).out.lines().count(), 1);
}

#[test]
fn repeated_start_id_is_the_same_run() {
    let desk = Desk::new();
    let start = ["run", "help desk", "-o", "customer=ada", "--id", "ticket-1", "--ask"];
    assert_eq!(desk.call(&project(), &start).code, 3);

    let other = desk.call(&project(), &["run", "help desk", "-o", "customer=bob", "--id", "ticket-1"]);
    assert_eq!(other.code, 7);
    assert!(other.err.contains("the same id starts one run"), "{}", other.err);
    // The first answer is already in the log, so the cassette skips it and does not refund again.
    let again = desk.call(&project(), &["run", "help desk", "-o", "customer=ada", "--id", "ticket-1"]);
    assert_eq!(again.code, 0, "{}", again.err);
    assert_eq!(serde_json::from_str::<Value>(&again.out).unwrap()["refunds"], json!([60]));
    assert_eq!(desk.call(&Project::new(), &["runs", "--json"]).out.lines().count(), 1);

    let over = desk.call(&project(), &["run", "help desk", "-o", "customer=ada", "--id", "ticket-1", "--plain"]);
    assert_eq!((over.code, over.out), (0, again.out));
    let said = "the run ticket-1 was already over, and nothing was done; `desk show ticket-1` shows it\n";
    assert!(over.err.ends_with(said) && !over.err.contains("were not used"), "{}", over.err);
}

#[test]
fn run_is_found_by_a_prefix_of_its_id_unless_a_brain_matches() {
    let desk = Desk::new();
    begun(&desk, "help");
    begun(&desk, "ticket-1");
    begun(&desk, "ticket-2");

    assert!(desk.call(&project(), &["show", "hel"]).out.starts_with("Help Desk\n"));
    let shown = without_times(&desk.call(&project(), &["show", "ticket-1"]).out);
    insta::assert_snapshot!("show_run", shown.replace("✓ Open  0 ms", "✓ Open"));
    insta::assert_snapshot!(desk.refused(&["events", "ticket"]), @r"
    2
    error: `ticket` is ambiguous: the ids of several runs match
      ticket-2  Help Desk, waiting
      ticket-1  Help Desk, waiting
    ");
    insta::assert_snapshot!(desk.refused(&["watch", "tickt-1"]), @r"
    2
    error: unknown run `tickt-1` in desk/runs.db
      did you mean `ticket-1` or `ticket-2`?
      `desk runs` lists the runs
    ");
    insta::assert_snapshot!(desk.refused(&["show", "nobody"]), @r"
    2
    error: unknown brain `nobody`, and no such run in desk/runs.db
      the project has no brains; add one with `Project::brain`
    ");
}

#[test]
fn full_run_id_takes_precedence_over_a_brain_with_that_prefix() {
    let desk = Desk::new();
    begun(&desk, "help");

    let shown = |what: &str| desk.call(&project(), &["show", what]).out;

    assert!(shown("help").contains("The run has been waiting"), "{}", shown("help"));
    assert!(shown("help d").contains("Stages"), "{}", shown("help d"));
    assert!(shown("help desk").contains("Stages"), "{}", shown("help desk"));
}

#[test]
fn state_is_shown_as_of_an_event() {
    let desk = Desk::new();
    begun(&desk, "ticket-1");

    insta::assert_snapshot!("state", desk.call(&Project::new(), &["state", "ticket-1"]).out);
    assert_eq!(desk.json(&["state", "ticket-1", "--at", "1"])["state"], Value::Null);
    let request = desk.json(&["state", "ticket-1", "--at", "0", "--request"]);
    assert_eq!(request["system"], "You help ada.");
    assert_eq!(request["tools"][0]["id"], "refund");
    assert!(desk.refused(&["state", "ticket-1", "--at", "99"]).contains("its last event is 9"));
}

#[test]
fn terminal_controls_in_a_log_are_escaped() {
    let desk = Desk::new();
    let evil = "\u{1b}[2J\u{9b}31m\u{202e}";
    let calls = Reply::calls([("note", json!({"text": evil})), ("note", json!({"text": "b"}))]);
    assert_eq!(desk.call(&scripted([calls]), &["run", "batch", "--id", "evil"]).code, 3);

    for arguments in
        [&["show", "evil"][..], &["inbox"], &["events", "evil"], &["state", "evil"], &["runs"], &["export", "evil"]]
    {
        for arguments in [arguments.to_vec(), [arguments, &["--json"]].concat()] {
            let outcome = desk.call(&Project::new(), &arguments);
            assert_eq!(outcome.code, 0, "{arguments:?}: {}", outcome.err);
            let raw = |letter: char| letter.is_control() && letter != '\n' || letter == '\u{202e}';
            assert!(!outcome.out.contains(raw) && !outcome.err.contains(raw), "{arguments:?}: {:?}", outcome.out);
        }
    }
}

#[test]
fn run_reports_its_cost_and_unknown_prices() {
    let desk = Desk::new();
    let used = |reply: Reply, input| {
        reply.usage(Usage { input, output: 10, cached: 100, cache_write: 50, reasoning: 5, ..Usage::default() })
    };
    let project = scripted([used(refund(7), 1000), used(Reply::text("Done."), 2000)]);
    assert_eq!(
        desk.call(&project, &["run", "help desk", "-o", "customer=ada", "-o", "limit=100", "--id", "one"]).code,
        0
    );
    begun(&desk, "two");
    let write = |name: &str, text: &str| std::fs::write(desk.path(name), text).unwrap();
    write(
        "prices.toml",
        "as_of = \"2026-11-01\"\ncurrency = \"EUR\"\n[prices]\n\"scripted/*\" = { input = 1.5, output = 4, cached = 0.1 }",
    );
    write("prices.json", r#"{"as_of": "2026-11-02", "prices": {"scripted*": {"input": "1", "output": 2}}}"#);
    write("broken.toml", "as_of = \"2026-11-01\"\n[prices]\nx = { input = \"much\", output = 1 }");
    let cost = |run: &str, prices: &[&str]| {
        let outcome = desk.call(&Project::new(), &[&["show", run], prices].concat());
        assert_eq!(outcome.code, 0, "{}", outcome.err);
        let told = |line: &str| line.find("cost").and_then(|place| line.get(place..)).map(str::to_owned);
        outcome.out.lines().filter_map(told).collect::<Vec<_>>().join("\n")
    };

    insta::assert_snapshot!(cost("one", &["--prices", &desk.path("prices.toml")]), @r"
    cost 0.0043 EUR, by the prices of 2026-11-01
    cost 0.0043 EUR
    ");
    insta::assert_snapshot!(cost("one", &["--prices", &desk.path("prices.json")]), @r"
    cost 0.00304 USD, by the prices of 2026-11-02
    cost 0.00304 USD
    ");
    insta::assert_snapshot!(cost("one", &[]), @r"
    cost: unknown price of 2 answers (scripted/scripted)
    cost unknown
    ");
    insta::assert_snapshot!(cost("two", &["--prices", &desk.path("prices.toml")]), @r"
    cost: unknown price of 1 answer (scripted/scripted)
    cost unknown
    ");
    insta::assert_snapshot!(desk.json(&["show", "two"])["cost"].to_string(), @r#"{"calls":[{"cost":"unknown","model":"scripted/scripted","path":"Chat/0","seq":7,"usage":{}}],"currency":"USD","prices":"2026-03-21","total":{"calls":1,"known":"0","unpriced":1,"usage":{}}}"#);
    insta::assert_snapshot!(desk.refused(&["show", "one", "--prices", &desk.path("broken.toml")]), @r#"
    6
    error: invalid price table desk/broken.toml: TOML parse error at line 3, column 15
        |
      3 | x = { input = "much", output = 1 }
        |               ^^^^^^
      `much` is not a valid amount of money: use a non-negative number such as 1.25 with at most 9 decimal places
      a price table is `as_of = "2026-11-01"` and, under `[prices]`, lines such as `"openai/gpt-5" = { input = 1.25, output = 10 }`
    "#);
    insta::assert_snapshot!(desk.refused(&["show", "one", "--prices", &desk.path("none.toml")]), @r"
    6
    error: cannot read desk/none.toml: No such file or directory (os error 2)
    ");
}
