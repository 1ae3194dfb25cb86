//! Costs over the runs of a store.

use positronic_core::model::scripted::Reply;
use positronic_core::record::Usage;
use serde_json::{Value, json};

use super::desk::{Desk, begun, refund, scripted};
use crate::app::Project;

const PRICES: &str =
    "as_of = \"2026-11-01\"\ncurrency = \"EUR\"\n[prices]\n\"scripted/*\" = { input = 1.5, output = 0 }";

/// A store with a run of Ann and one of Bob, whose two answers each read so many million tokens, and one without a user whose
/// answer has no token counts.
fn three_runs() -> Desk {
    let desk = Desk::new();
    std::fs::write(desk.path("prices.toml"), PRICES).unwrap();
    for (id, user, millions) in [("one", "ann", 1), ("two", "bob", 2)] {
        let used = |reply: Reply| reply.usage(Usage { input: millions * 1_000_000, ..Usage::default() });
        let project = scripted([used(refund(7)), used(Reply::text("Done."))]);
        let start = ["run", "help desk", "-o", "customer=ada", "-o", "limit=100", "--id", id, "--user", user];
        assert_eq!(desk.call(&project, &start).code, 0);
    }
    begun(&desk, "three");
    desk
}

fn lines(desk: &Desk, arguments: &[&str]) -> Vec<Value> {
    let called = desk.call(&Project::new(), &[&["costs", "--json"], arguments].concat());
    assert_eq!(called.code, 0, "{}", called.err);
    called.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn costs_are_summed_up_by_keys_and_name_unknown_ones() {
    let desk = three_runs();
    let prices = desk.path("prices.toml");

    let table = desk.call(&Project::new(), &["costs", "--by", "brain,user", "--prices", &prices]);
    insta::assert_snapshot!(table.out + &table.err, @r"
    BRAIN      USER  RUNS  ANSWERS  INPUT      OUTPUT  COST
    Help Desk  -     1     1        0          0       unknown
    Help Desk  ann   1     2        2,000,000  0       3 EUR
    Help Desk  bob   1     2        4,000,000  0       6 EUR
    total            3     5        6,000,000  0       9 EUR and 1 unknown
    by the prices of 2026-11-01
    in no sum: 1 answer with an unknown cost, of scripted/scripted
    --prices FILE gives the prices of models
    ");

    let sums = lines(&desk, &["--by", "user", "--prices", &prices]);
    let brief = |sum: &Value| json!([sum["user"], sum["runs"], sum["answers"], sum["cost"], sum["unpriced"]]);
    assert_eq!(
        sums.iter().map(brief).collect::<Vec<_>>(),
        [
            json!([null, 1, 1, "0", 1]),
            json!(["ann", 1, 2, "3", 0]),
            json!(["bob", 1, 2, "6", 0]),
            json!([null, 3, 5, "9", 1])
        ]
    );
    assert_eq!((&sums[3]["total"], &sums[3]["currency"], sums[0].get("total")), (&json!(true), &json!("EUR"), None));

    let days = lines(&desk, &["--by", "day,model", "--prices", &prices]);
    assert_eq!((days.len(), days[0]["day"].as_str().unwrap().len()), (2, 10), "{days:?}");
    assert_eq!(lines(&desk, &["--since", "0s"]).len(), 1, "only the total, of nothing");
}

#[test]
fn answer_that_forks_share_is_counted_only_in_the_original() {
    let desk = three_runs();
    let prices = desk.path("prices.toml");
    let last = desk.json(&["show", "two"])["run"]["next"].as_u64().unwrap() - 1;
    let total = |desk: &Desk| {
        let sums = lines(desk, &["--prices", &prices]);
        let total = sums.last().unwrap();
        (total["cost"].clone(), total["answers"].clone())
    };
    let forks_only = Desk::new();
    for name in ["a", "b"] {
        let fork = desk.call(&Project::new(), &["fork", "two", "--at", &last.to_string(), "--json"]);
        let fork: Value = serde_json::from_str(&fork.out).unwrap();
        assert_eq!(desk.call(&Project::new(), &["export", fork["run"].as_str().unwrap(), &desk.path(name)]).code, 0);
        assert_eq!(forks_only.call(&Project::new(), &["import", &desk.path(name)]).code, 0);
    }

    assert_eq!(total(&desk), (json!("9"), json!(5)));
    assert_eq!(total(&forks_only), (json!("0"), json!(0)), "what a removed run has cost is in no sum");
}
