//! Budgets of a conversation and of each of its answers.

use std::sync::Arc;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Message, Tier, Usage};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::tests::{Outcome, at_desk, call_given};
use crate::app::{Project, Settings};

/// Arguments of the tool that the model calls first.
const LOOK: &str = "Look.";

/// A brain whose model uses ten tokens an iteration.
fn project() -> Project {
    let helper = brain("Helper").r#loop("Talk", |cx| {
        cx.system("You help.").tool("look", |t| t.read_only().execute(async |_: NoArgs, _| Ok("seen")))
    });
    let model = ScriptedModel::from_fn(|request| {
        let messages = request.messages.messages();
        let looks = matches!(messages.last(), Some(Message::User { text, .. }) if text == LOOK);
        let reply = if looks { Reply::call("look", json!({})) } else { Reply::text("Yes.") };
        reply.usage(Usage { input: 10, ..Usage::default() })
    });
    Project::new().brain(helper).model(Tier::Normal, Arc::new(model))
}

struct Desk(TempDir);

impl Desk {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn call(&self, lines: &str, arguments: &[&str], by_hand: bool) -> Outcome {
        let store = Some(self.0.path().join("runs.db"));
        let settings = Settings { store, stdin_is_terminal: by_hand, ..Settings::default() };
        at_desk(call_given(&project(), arguments, lines, settings), self.0.path())
    }

    /// Sends lines to the conversation `c`.
    fn chat(&self, lines: &str, rest: &[&str]) -> Outcome {
        self.call(lines, &[&["chat", "helper", "-c", "c"], rest].concat(), false)
    }

    /// Returns the output of `/usage`.
    fn usage(&self, rest: &[&str]) -> String {
        self.call("/usage\n", &[&["chat", "helper", "-c", "c"], rest].concat(), true).err
    }
}

#[test]
fn conversation_budget_applies_in_every_process() {
    let desk = Desk::new();

    let spent = desk.chat("one\ntwo\nthree\nfour\n", &["--max-tokens", "25"]);

    assert_eq!((spent.code, spent.out.as_str()), (7, "Yes.\nYes.\nYes.\n"), "{}", spent.err);
    let refused = "error: the conversation `c` has used up its budget of tokens: 30 tokens of 25 tokens; give it a larger one\n  \
                   desk chat Helper --conversation c --max-tokens NUMBER\n";
    assert!(spent.err.ends_with(refused), "{}", spent.err);
    assert!(desk.chat("four", &[]).err.ends_with(refused), "another process sends no request");
    // A limit that no flag names again still applies.
    assert!(desk.chat("four", &["--max-iterations", "50"]).err.ends_with(refused));
    let shown = desk.call("", &["conversations", "show", "c"], false);
    assert!(shown.out.ends_with("\n\nbudget of the conversation: 30 of 25 tokens used\n"), "{}", shown.out);

    let more = desk.chat("four", &["--max-tokens", "45", "--max-iterations", "50"]);

    assert_eq!((more.code, more.out.as_str()), (0, "Yes.\n"), "{}", more.err);
    let usage = desk.usage(&[]);
    assert!(usage.contains("\nbudget of the conversation: 40 of 45 tokens, 4 of 50 iterations used\n"), "{usage}");
    let usage = desk.usage(&["--max-tokens", "2k"]);
    assert!(usage.contains("\nbudget of the conversation: 40 of 2,000 tokens, 4 of 50 iterations used\n"), "{usage}");
    let json: Value =
        serde_json::from_str(&desk.call("", &["conversations", "show", "c", "--json"], false).out).unwrap();
    assert_eq!(json["budget"]["budget"], json!({"max_iterations": 50, "max_tokens": 45}));
    assert_eq!(json["budget"]["used"], json!({"iterations": 4, "tokens": 40}));
}

#[test]
fn each_answer_has_the_full_answer_budget() {
    let desk = Desk::new();
    let each = ["--answer-max-iterations", "1", "--answer-max-tokens", "90"];

    let failed = desk.chat(LOOK, &each);

    assert_eq!((failed.code, failed.out.as_str()), (1, ""));
    let why = "the brain `Helper` used up its budget of iterations in the loop `Talk`: 1 iteration";
    assert!(failed.err.contains(why), "{}", failed.err);
    assert_eq!(desk.chat("one\ntwo\n", &each).out, "Yes.\nYes.\n");
    let usage = desk.usage(&each);
    assert!(usage.contains("\nbudget of each answer: 90 tokens, 1 iteration\n"), "{usage}");
    let ended = desk.chat(LOOK, &["--answer-max-iterations", "1", "--answer-at-limit", "end"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(
        ended.err.contains("the loop `Talk` was stopped by the run's limit of 1 iteration before "),
        "{}",
        ended.err
    );
    assert!(!desk.usage(&[]).contains("budget"), "it holds for one command");
}

#[test]
fn money_budget_needs_prices_before_the_first_message() {
    let desk = Desk::new();
    for option in ["--max-money", "--answer-max-money"] {
        let refused = desk.chat("one", &[option, "1"]);
        let why = format!("error: {option} is a money limit, but there is no price table\n");
        assert!(refused.code == 2 && refused.err.starts_with(&why), "{}", refused.err);
    }
    let prices = desk.0.path().join("prices.toml");
    let table = "as_of = \"2026-11-01\"\ncurrency = \"EUR\"\n[prices]\n\"scripted/*\" = { input = 1000, output = 1 }";
    std::fs::write(&prices, table).unwrap();
    let priced = ["--prices", prices.to_str().unwrap()];

    let said = desk.chat("one", &[&priced[..], &["--max-money", "0.025"]].concat());

    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("cost 0.01 EUR"), "{}", said.err);
    let refused = desk.chat("two", &[]);
    let why = "error: the conversation `c` has a money limit, but there is no price table\n";
    assert!(refused.code == 2 && refused.err.starts_with(why), "{}", refused.err);
    let spent = desk.chat("two\nthree\nfour", &priced);
    assert_eq!((spent.code, spent.out.as_str()), (7, "Yes.\nYes.\n"), "{}", spent.err);
    let why =
        "error: the conversation `c` has used up its budget of money: 0.03 EUR of 0.025 EUR; give it a larger one\n";
    assert!(spent.err.contains(why), "{}", spent.err);
    std::fs::write(&prices, table.replace("EUR", "USD")).unwrap();
    let other = desk.chat("four", &priced);
    let why = "error: the conversation `c` has a budget of money: it counts in EUR, and this runner's prices are in USD\n  \
               name a table that fits with --prices FILE or in POSITRONIC_PRICES\n";
    assert!(other.code == 7 && other.err.ends_with(why), "{}", other.err);
    let shown = desk.call("", &["conversations", "show", "c"], false);
    assert!(shown.out.ends_with("\nbudget of the conversation: 0.03 of 0.025 EUR used\n"), "{}", shown.out);
}

#[test]
fn run_with_an_open_limit_question_refuses_messages_and_prints_how_to_answer() {
    let desk = Desk::new();
    desk.chat(LOOK, &["--max-iterations", "1", "--at-limit", "ask"]);
    desk.call("", &["reject", "c-0", ".", "--reason", "no"], false);
    desk.call("", &["work", "c-0"], false);
    assert_eq!(desk.chat("second", &[]).code, 3);

    let refused = desk.chat("third", &[]);

    let hint = "the run `c-1` is not over and accepts no message now: no loop of the run is open, so no loop can receive the message\n  \
                `desk inbox` lists what it waits for, and how to answer\n";
    assert!(refused.code == 7 && refused.err.ends_with(hint), "{}", refused.err);
    assert!(desk.call("", &["inbox"], false).out.contains("    desk approve c-1 . --more "));
}

#[test]
fn larger_budget_does_not_answer_an_open_limit_question() {
    let desk = Desk::new();
    assert_eq!(desk.chat(LOOK, &["--max-iterations", "1", "--at-limit", "ask"]).code, 3);

    let raised = desk.chat("Hello", &["--max-iterations", "5"]);

    let told = "the budget applies to runs that begin with it; `c-0`, which asks for more, continues with: desk approve c-0 . --more ";
    assert!(raised.code == 3 && raised.err.contains(told), "{}", raised.err);
    assert!(!desk.chat("Hello", &[]).err.contains("the budget is"), "where none is given, nothing is said");
}

#[test]
fn usage_has_the_cost_of_the_last_answer_and_of_the_conversation() {
    let desk = Desk::new();
    let table =
        json!({"as_of": "2026-01-01", "currency": "EUR", "prices": {"scripted/*": {"input": 1000, "output": 0}}});
    let prices = desk.0.path().join("prices.json");
    std::fs::write(&prices, table.to_string()).unwrap();
    let prices = ["--prices", prices.to_str().unwrap()];

    desk.chat(&format!("one\n{LOOK}\n"), &prices);
    desk.call("Other.\n", &["chat", "helper", "-c", "d"], false);

    let last = "last answer: 2 model answers, 20 tokens in, 0 out; cost 0.02 EUR, by the prices of 2026-01-01\n";
    let whole = "conversation: 3 model answers, 30 tokens in, 0 out; cost 0.03 EUR, by the prices of 2026-01-01\n";
    let usage = desk.usage(&prices);
    assert!(usage.contains(last) && usage.contains(whole), "{usage}");
    let unknown =
        "conversation: 3 model answers, 30 tokens in, 0 out; cost: unknown price of 3 answers (scripted/scripted)\n";
    assert!(desk.usage(&[]).contains(unknown), "{}", desk.usage(&[]));
}
