//! Limits that ask a person for more, and budgets of runs.

use std::sync::Arc;

use positronic_core::dsl::{BrainBuilder, NoServices, Staged, Timed};
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Tier, Usage};
use serde_json::json;

use super::store_tests::Desk;
use crate::app::Project;

/// A brain whose loop may use twenty tokens, and asks for more.
fn thrifty() -> BrainBuilder<(), u32, NoServices, Staged<Timed<u32>>> {
    brain("Thrifty").state(0_u32).r#loop("Work", |cx| {
        cx.system("You count.").input("Count.").max_tokens(20).ask_for_more().tool("count", |t| {
            t.description("Counts").execute(async |_: NoArgs, cx| Ok(cx.result("counted").update(|count| *count += 1)))
        })
    })
}

fn counting(iterations: usize) -> Project {
    let used = Usage { input: 10, ..Usage::default() };
    let model = ScriptedModel::from_fn(move |request| {
        let iteration: usize = request.path.as_str().strip_prefix("Work/").unwrap().parse().unwrap();
        let reply = if iteration < iterations { Reply::call("count", json!({})) } else { Reply::text("Counted.") };
        reply.usage(used)
    });
    Project::new().brain(thrifty()).model(Tier::Normal, Arc::new(model))
}

/// Returns the output of `inbox` without ages.
fn inbox(desk: &Desk) -> String {
    let listed = desk.call(&Project::new(), &["inbox"]).out;
    listed.lines().map(|line| format!("{}\n", line.split(", for ").next().unwrap_or_default())).collect()
}

#[test]
fn limit_question_is_granted_by_another_process() {
    let desk = Desk::new();

    let waits = desk.call(&counting(9), &["run", "thrifty", "--id", "count-1", "--plain"]);
    assert_eq!((waits.code, waits.out.as_str()), (3, ""));
    assert!(waits.err.contains("Work: asks for more tokens: 20 of 20 tokens used"), "{}", waits.err);
    insta::assert_snapshot!(inbox(&desk), @r"
    count-1 Thrifty › Work
      asks for more tokens: 20 of 20 tokens used
        desk approve count-1 Work --more 20
        desk reject count-1 Work --reason TEXT
    ");
    let listed = desk.json(&["inbox"]);
    assert_eq!(listed["pending"]["kind"], json!({"type": "budget", "kind": "tokens", "limit": 20, "used": 20}));
    insta::assert_snapshot!(desk.refused(&["approve", "count-1"]), @r"
    7
    error: no call of the run `count-1` waits for a decision; `Work` asks for more tokens: 20 of 20 tokens used
      desk approve count-1 Work --more 20
      desk reject count-1 Work --reason TEXT
    ");
    insta::assert_snapshot!(desk.refused(&["approve", "count-1", "--more", "2.50"]), @r"
    2
    error: --more 2.50 cannot be granted: expected a positive number of tokens, such as 20000 or 20k
      `Work` asks for more tokens: 20 of 20 tokens used
    ");
    insta::assert_snapshot!(desk.refused(&["approve", "count-1", "--more", "-1"]), @r"
    2
    error: --more -1 cannot be granted: expected a positive number of tokens, such as 20000 or 20k
      `Work` asks for more tokens: 20 of 20 tokens used
    ");
    insta::assert_snapshot!(desk.refused(&["approve", "count-1", "Play", "--more", "20"]), @r"
    7
    error: `Play` of the run `count-1` does not ask for more
      desk approve count-1 Work --more 20
      desk reject count-1 Work --reason TEXT
    ");

    insta::assert_snapshot!(desk.refused(&["approve", "count-1", ".", "--more", "20"]), @r"
    7
    error: the run `count-1` itself does not ask for more
      desk approve count-1 Work --more 20
      desk reject count-1 Work --reason TEXT
    ");
    insta::assert_snapshot!(desk.refused(&["approve", "count-1", "Work"]), @r"
    7
    error: `Work` asks for more, so say how much, or reject it
      nothing was changed; `desk show count-1` shows the run
      desk approve count-1 Work --more 20
      desk reject count-1 Work --reason TEXT
    ");
    insta::assert_snapshot!(desk.refused(&["reject", "count-1", "."]), @r"
    7
    error: the run has no open request to decide; pending: `Work` (more tokens)
      nothing was changed; `desk show count-1` shows the run
      desk approve count-1 Work --more 20
      desk reject count-1 Work --reason TEXT
    ");

    let granted = desk.call(&Project::new(), &["approve", "count", "--more", "15", "--by", "bob"]);
    assert_eq!((granted.code, granted.out.as_str()), (0, "granted `Work` 15 tokens more (event 16 of count-1)\n"));
    insta::assert_snapshot!(desk.refused(&["approve", "count-1", "--more", "15"]), @r"
    7
    error: nothing in the run `count-1` asks for more
      `desk show count-1` shows more
    ");
    let more = desk.call(&counting(9), &["work", "count-1"]);
    assert_eq!(more.code, 3, "35 are allowed, and 40 used: {}", more.err);
    let refused = desk.call(&Project::new(), &["reject", "count-1", "--reason", "enough"]);
    assert_eq!((refused.code, refused.out.as_str()), (0, "refused `Work` more (event 31 of count-1)\n"));
    let done = desk.call(&counting(9), &["work", "count-1"]);
    assert_eq!((done.code, done.out.as_str()), (8, "4\n"), "{}", done.err);
}

#[test]
fn run_flags_set_the_budget_of_a_run() {
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
    let why = "the brain `Thrifty` used up its budget of money in the loop `Work`: 0.00001 EUR";
    assert!(failed.err.contains(why), "{}", failed.err);

    let ended = run("ends", &["--max-iterations", "1", "--at-limit", "end"]);
    assert_eq!((ended.code, ended.out.as_str()), (8, "1\n"), "{}", ended.err);
    assert!(ended.err.contains("1 model answer, 10 tokens in, 0 out, cost 0.000015 EUR"), "{}", ended.err);

    let careful = Project::new().brain(thrifty().budget(|budget| budget.max_tokens(10).ask_for_more())).model(
        Tier::Normal,
        Arc::new(ScriptedModel::from_fn(|_| {
            Reply::call("count", json!({})).usage(Usage { input: 10, ..Usage::default() })
        })),
    );
    let stern = desk.call(&careful, &["run", "thrifty", "--plain", "--at-limit", "fail"]);
    assert_eq!(stern.code, 1, "the brain asks, and the command says that it fails: {}", stern.err);

    let asks = run("asks", &["--max-tokens", "10", "--at-limit", "ask"]);
    assert_eq!(asks.code, 3, "{}", asks.err);
    insta::assert_snapshot!(inbox(&desk), @r"
    asks Thrifty
      asks for more tokens: 10 of 10 tokens used
        desk approve asks . --more 10
        desk reject asks . --reason TEXT
    ");
    let granted = desk.call(&Project::new(), &["approve", "asks", ".", "--more", "1000"]);
    assert_eq!(granted.out, "granted the run 1,000 tokens more (event 10 of asks)\n");

    let dear = run("dear", &["--max-money", "0.00001", "--at-limit", "ask"]);
    let asks = "asks for more money: 0.000015 of 0.00001 EUR used";
    assert_eq!((dear.code, dear.err.matches(asks).count()), (3, 2), "{}", dear.err);
    insta::assert_snapshot!(inbox(&desk), @r"
    dear Thrifty
      asks for more money: 0.000015 of 0.00001 EUR used
        desk approve dear . --more 0.00002
        desk reject dear . --reason TEXT
    ");
    assert!(desk.call(&Project::new(), &["show", "dear"]).out.contains(asks));
    insta::assert_snapshot!(desk.refused(&["approve", "dear", "--more", "0.000003"]), @r"
    7
    error: --more 0.000003 is too little; 0.00001 EUR is enough
      the run asks for more money: 0.000015 of 0.00001 EUR used
    ");
    insta::assert_snapshot!(desk.refused(&["approve", "dear", "--more", "99999999999999999999999"]), @r"
    2
    error: --more 99999999999999999999999 cannot be granted: expected a positive amount of money without its currency, such as 2.50
      the run asks for more money: 0.000015 of 0.00001 EUR used
    ");
    let granted = desk.call(&Project::new(), &["approve", "dear", "--more", "1000"]);
    assert_eq!(granted.out, "granted the run 1,000 EUR more (event 10 of dear)\n");
}

#[test]
fn unenforceable_money_limit_is_refused_before_the_run_starts() {
    let desk = Desk::new();
    let file = |name: &str, text: &str| {
        std::fs::write(desk.path(name), text).unwrap();
        desk.path(name)
    };
    let prices = file("prices.toml", "as_of = \"2026-11-01\"\n[prices]\n\"acme/*\" = { input = 1.5, output = 4 }");
    let call = |rest: &[&str]| {
        let outcome = desk.call(&counting(9), &[&["run", "thrifty", "--max-money", "1"], rest].concat());
        format!("{}\n{}", outcome.code, outcome.err)
    };
    let reply = r#"{"at": "Work", "reply": {"text": "Counted.""#;
    let silent = file("silent.jsonl", &format!("{{\"cassette\": 1}}\n{reply}}}}}\n"));
    let model = |model: &str| format!("{{\"cassette\": 1, \"model\": \"{model}\"}}\n");
    let usage = r#", "usage": {"input": 10, "output": 2}}}"#;
    let dear = file("dear.jsonl", &format!("{}{reply}{usage}\n", model("acme/wise")));
    let strange = file("strange.jsonl", &format!("{}{reply}{usage}\n", model("other/wise")));

    insta::assert_snapshot!(call(&[]), @r#"
    2
    error: --max-money is a money limit, but there is no price table
      name a table with --prices FILE or in POSITRONIC_PRICES: `as_of = "2026-11-01"` and, under `[prices]`, lines such as `"openai/gpt-5" = { input = 1.25, output = 10 }`
    "#);
    insta::assert_snapshot!(call(&["--prices", &prices, "--cassette", &silent]), @r"
    2
    error: --max-money is a money limit, but the cassette lacks the token counts of 1 answer
      play it without a money limit; a cassette of --record has the token counts of its answers
    ");
    insta::assert_snapshot!(call(&["--prices", &prices, "--cassette", &strange]), @r"
    2
    error: --max-money is a money limit, but the price table of 2026-11-01 has no price for the cassette's model `other/wise`
      add it to the table, or play the cassette without a money limit
    ");
    assert!(desk.refused(&["runs"]).starts_with("6\nerror: no store found"), "nothing has begun");
    let rich = Project::new()
        .brain(thrifty().budget(|budget| budget.max_money("1")))
        .model(Tier::Normal, Arc::new(ScriptedModel::from_fn(|_| Reply::text("Counted."))));
    let own = desk.call(&rich, &["run", "thrifty"]);
    assert_eq!(own.code, 2);
    assert!(own.err.starts_with("error: `Thrifty` has a money limit, but there is no price table"), "{}", own.err);

    let priced = call(&["--prices", &prices, "--cassette", &dear, "--plain"]);
    assert!(priced.starts_with("0\n") && priced.contains("cost 0.000023 USD"), "{priced}");
}

#[test]
fn run_limits_and_grants_parse_amounts_alike() {
    let refused = |option: &str, text: &str| {
        use clap::Parser as _;
        let error = crate::cli::Cli::try_parse_from(["desk", "run", "thrifty", option, text]).unwrap_err();
        error.to_string().lines().next().unwrap_or_default().to_owned()
    };

    for (option, text, why) in [
        ("--max-money", "2,5", "expected a positive amount of money without its currency, such as 2.50"),
        ("--max-money", "$2", "expected a positive amount of money without its currency, such as 2.50"),
        ("--max-tokens", "lots", "expected a positive number of tokens, such as 20000 or 20k"),
        ("--max-money", "-1", "expected a positive amount of money without its currency, such as 2.50"),
        ("--max-tokens", "-20", "expected a positive number of tokens, such as 20000 or 20k"),
        ("--max-iterations", "-1", "expected a positive number of iterations, such as 10"),
        ("--max-time", "-1", "expected a positive time, such as 90s, 10m or 2h"),
        ("--max-iterations", "0", "expected a positive number of iterations, such as 10"),
        ("--max-time", "1d", "expected a positive time, such as 90s, 10m or 2h"),
    ] {
        let said = refused(option, text);
        assert!(said.starts_with("error: invalid value ") && said.ends_with(why), "{said}");
    }
    let desk = Desk::new();
    let ran = desk.call(&counting(9), &["run", "thrifty", "--max-tokens", "0.01k", "--at-limit", "end"]);
    assert!(ran.err.contains("10 of 10 tokens"), "{}", ran.err);
}

#[test]
fn limit_question_and_grant_are_shown_where_they_happened() {
    let desk = Desk::new();
    let reporting = || {
        let used = Usage { input: 10, ..Usage::default() };
        let model = ScriptedModel::from_fn(move |_| Reply::call("count", json!({})).usage(used));
        Project::new().brain(thrifty().step("Report", async |cx| Ok(cx.state))).model(Tier::Normal, Arc::new(model))
    };
    let run = ["run", "thrifty", "--id", "one", "--max-tokens", "10", "--at-limit", "ask"];
    let waits = desk.call(&reporting(), &run);
    assert!(waits.err.contains("00:00.0 the run asks for more tokens: 10 of 10 tokens used\n"), "{}", waits.err);
    desk.json(&["approve", "one", ".", "--more", "5", "--by", "ann"]);

    let shown = desk.call(&Project::new(), &["show", "one"]).out;

    let at = |text: &str| shown.find(text).unwrap_or_else(|| panic!("there is no `{text}`: {shown}"));
    let order = [at("✓ count"), at("asks for more tokens"), at("granted 5 tokens more by ann"), at("Report")];
    assert!(order.is_sorted(), "{shown}");
}
