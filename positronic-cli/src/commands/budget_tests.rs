//! Limits at which a person is asked for more, and the budget of a run, over a store's file.

use std::sync::Arc;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Tier, Usage};
use serde_json::json;

use super::kept_tests::Desk;
use crate::project::Project;

/// A desk whose loop may use twenty tokens, and asks for more.
fn thrifty() -> Brain<(), u32> {
    brain("Thrifty").state(0_u32).r#loop("Work", |cx| {
        cx.system("You count.").input("Count.").max_tokens(20).ask_for_more().tool("count", |t| {
            t.description("Counts").execute(async |_: NoArgs, cx| Ok(cx.result("counted").update(|count| *count += 1)))
        })
    })
}

fn counting(rounds: usize) -> Project {
    let used = Usage { input: 10, ..Usage::default() };
    let model = ScriptedModel::from_fn(move |request| {
        let round: usize = request.path.as_str().strip_prefix("Work/").unwrap().parse().unwrap();
        let reply = if round < rounds { Reply::call("count", json!({})) } else { Reply::text("Counted.") };
        reply.usage(used)
    });
    Project::new().brain(thrifty()).model(Tier::Normal, Arc::new(model))
}

#[test]
fn a_loop_that_asks_for_more_is_granted_it_from_anywhere() {
    let desk = Desk::new();

    let waits = desk.call(&counting(9), &["run", "thrifty", "--id", "count-1", "--plain"]);
    assert_eq!((waits.code, waits.out.as_str()), (3, ""));
    assert!(waits.err.contains("Work: asks for more tokens: used 20 of 20 tokens"), "{}", waits.err);
    insta::assert_snapshot!(desk.call(&Project::new(), &["inbox"]).out, @r"
    count-1 Thrifty › Work, for 0s
      asks for more tokens: used 20 of 20 tokens
        desk approve count-1 Work --more 20
        desk reject count-1 Work --reason TEXT
    ");
    let listed = desk.json(&["inbox"]);
    assert_eq!(listed["pending"]["kind"], json!({"type": "more", "kind": "tokens", "limit": 20, "used": 20}));
    insta::assert_snapshot!(desk.refused(&["approve", "count-1"]), @r"
    7
    error: no call of the run `count-1` waits for a decision; it asks for more tokens: used 20 of 20 tokens
      desk approve count-1 Work --more 20
      desk reject count-1 Work --reason TEXT
    ");
    insta::assert_snapshot!(desk.refused(&["approve", "count-1", "--more", "2.50"]), @r"
    2
    error: --more 2.50 is no amount: expected a number of tokens, such as 20000
      what is asked for is more tokens
    ");
    insta::assert_snapshot!(desk.refused(&["approve", "count-1", "Play", "--more", "20"]), @r"
    7
    error: `Play` does not, and nothing in the run `count-1` asks for more
      `desk show count-1` says more
    ");

    let granted = desk.call(&Project::new(), &["approve", "count", "--more", "15", "--by", "bob"]);
    assert_eq!((granted.code, granted.out.as_str()), (0, "granted 15 tokens more to Work (event 16 of count-1)\n"));
    insta::assert_snapshot!(desk.refused(&["approve", "count-1", "--more", "15"]), @r"
    7
    error: nothing in the run `count-1` asks for more
      `desk show count-1` says more
    ");
    let more = desk.call(&counting(9), &["work", "count-1"]);
    assert_eq!(more.code, 3, "35 are allowed, and 40 used: {}", more.err);
    let refused = desk.call(&Project::new(), &["reject", "count-1", "--reason", "enough"]);
    assert_eq!((refused.code, refused.out.as_str()), (0, "rejected Work (event 31 of count-1)\n"));
    let done = desk.call(&counting(9), &["work", "count-1"]);
    assert_eq!((done.code, done.out.as_str()), (0, "4\n"), "{}", done.err);
}

#[test]
fn a_run_has_a_budget_of_its_own() {
    let desk = Desk::new();
    let prices = desk.path("prices.toml");
    let table = "as_of = \"2026-11-01\"\ncurrency = \"EUR\"\n[prices]\n\"scripted/*\" = { input = 1.5, output = 4 }";
    std::fs::write(&prices, table).unwrap();
    let run = |id: &str, budget: &[&str]| {
        let run = ["run", "thrifty", "--id", id, "--plain", "--prices", &prices];
        desk.call(&counting(9), &[&run, budget].concat())
    };

    let failed = run("fails", &["--max-money", "0.00001"]);
    assert_eq!(failed.code, 1, "{}", failed.err);
    let why = "the brain `Thrifty` used up its budget of money in the loop `Work`: 0.00001 of money";
    assert!(failed.err.contains(why), "{}", failed.err);

    let ended = run("ends", &["--max-rounds", "1", "--at-limit", "end"]);
    assert_eq!((ended.code, ended.out.as_str()), (0, "1\n"), "{}", ended.err);
    assert!(ended.err.contains("1 model answer, 10 tokens in, 0 out, cost 0.000015 EUR"), "{}", ended.err);

    let asks = run("asks", &["--max-tokens", "10", "--at-limit", "ask"]);
    assert_eq!(asks.code, 3, "{}", asks.err);
    insta::assert_snapshot!(desk.call(&Project::new(), &["inbox"]).out, @r"
    asks Thrifty, for 0s
      asks for more tokens: used 10 of 10 tokens
        desk approve asks . --more 10
        desk reject asks . --reason TEXT
    ");
    let granted = desk.call(&Project::new(), &["approve", "asks", ".", "--more", "1000"]);
    assert_eq!(granted.out, "granted 1,000 tokens more to the run (event 10 of asks)\n");

    let free = desk.call(&counting(9), &["run", "thrifty", "--memory", "--max-money", "1"]);
    assert!(free.err.contains("there is a limit of money, and the runner has no prices"), "{}", free.err);
}
