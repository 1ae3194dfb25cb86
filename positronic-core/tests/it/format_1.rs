//! A log of format 1: it is read, folded to the same state and written byte for byte, by this release and every later one.
//!
//! The file was written by [`run`]. Once a release has written format 1, the file does not change any more, and a new format
//! gets a file of its own. Until then, `POSITRONIC_WRITE_FORMAT_1=1` writes it anew.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use positronic_core::machine::RunState;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::projection::timeline::Timeline;
use positronic_core::projection::{request_at, transcript};
use positronic_core::record::{Event, EventKind, ModelError, ModelErrorKind, Path};
use positronic_core::runner::Settled;
use positronic_core::testing::{Story, Test};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

const LOG: &str = include_str!("../data/format-1.jsonl");

#[derive(Default, Serialize, Deserialize)]
struct Ticket {
    answers: Vec<String>,
    paid: u32,
    advice: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Payment {
    amount: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Message {
    text: String,
}

/// A desk that is not open at first.
#[derive(Default)]
struct Door(AtomicBool);

/// A brain with an approval, a wait, a nested brain, retries and a limit.
fn desk() -> Brain<(), Ticket, Door> {
    brain("Desk")
        .services::<Door>()
        .step("Open", async |cx| {
            let open = cx.services.0.swap(true, Ordering::Relaxed);
            if open { Ok(Ticket::default()) } else { Err(Error::transient("the desk is closed")) }
        })
        .r#loop("Work", |cx| {
            cx.system("Settle the claim.")
                .context("paid", format!("{} euros are paid.", cx.state.paid))
                .input("Order 7 arrived broken.")
                .tool("pay", |t| {
                    t.description("Pays money back")
                        .approval(|payment: &Payment, _| Some(format!("a payment of {} euros", payment.amount)))
                        .execute(async |Payment { amount }, cx| {
                            Ok(cx.result("paid").update(move |ticket| ticket.paid += amount))
                        })
                })
                .tool("ask", |t| {
                    t.description("Asks the customer")
                        .wait(|_: &Message, _| {
                            [webhook::<Message>("mail")
                                .on("ann")
                                .resume(|ticket: &mut Ticket, answer| ticket.answers.push(answer.text))]
                        })
                        .execute(async |Message { text }, _| Ok(format!("asked: {text}")))
                })
                .tool("advise", |t| {
                    t.brain(adviser())
                        .map_input(|_| ())
                        .map_output(|ticket, advice: String| ticket.advice = Some(advice))
                })
                .max_iterations(2)
        })
        .build()
}

fn adviser() -> Brain<(), String, Door> {
    brain("Adviser")
        .services::<Door>()
        .step("Advise", async |cx| cx.model().system("Advise.").ask("What to do?").await)
        .build()
}

/// The run that the file is of.
async fn run() -> Story {
    let test = Test::new(ScriptedModel::new([
        Reply::error(ModelError::new(ModelErrorKind::RateLimited, "slow down")),
        Reply::calls([
            ("ask", json!({ "text": "How broken?" })),
            ("pay", json!({ "amount": 20 })),
            ("pay", json!({ "amount": 900 })),
        ]),
        Reply::call("advise", json!({})),
        Reply::text("Offer a repair."),
    ]));
    let run = test.start(desk().bind(Door::default()), ()).await;
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    run.approve(&Path::parse("Work/0.1").unwrap(), "ann").await.unwrap();
    run.reject(&Path::parse("Work/0.2").unwrap(), "too much", "bob").await.unwrap();
    run.webhook("mail", "ann", json!({ "text": "The handle is off." })).await.unwrap();
    Story::of(&run).await
}

fn events() -> Vec<Event> {
    LOG.lines().map(|line| Event::from_json(line).unwrap()).collect()
}

#[test]
fn format_1_log_is_written_byte_for_byte() {
    let written: String = events().iter().map(|event| format!("{}\n", event.to_json().unwrap())).collect();

    assert_eq!(written, LOG);
}

#[test]
fn format_1_log_folds_to_the_same_state() {
    let events = events();

    let state = RunState::replay(&events).unwrap();

    assert!(state.has_ended());
    let root = state.root.as_ref().unwrap();
    insta::assert_snapshot!(root.state, @r#"{"advice":"Offer a repair.","answers":["The handle is off."],"paid":20}"#);
    insta::assert_snapshot!(transcript(&Timeline::of(&events)), @r#"
    # Work
    user: Order 7 arrived broken.
    ask({"text":"How broken?"}) [answered: mail ann] -> {"answer":{"text":"The handle is off."},"result":"asked: How broken?"}
    pay({"amount":20}) [approved by ann: a payment of 20 euros] -> paid
    pay({"amount":900}) [rejected by bob: a payment of 900 euros] -> Not run: a person rejected this call: too much
    advise({}) -> Offer a repair.
    = {"type":"max_iterations"}
    "#);
}

#[test]
fn format_1_log_rebuilds_every_request() {
    let events = events();
    let calls = events.iter().filter(|event| matches!(event.kind, EventKind::LoopModelCall { .. }));

    let messages: Vec<_> = calls.map(|call| request_at(&events, call.seq).unwrap().messages.len()).collect();

    assert_eq!(messages, [1, 1, 5, 1]);
}

#[tokio::test(start_paused = true)]
async fn format_1_log_has_the_events_of_the_same_run_today() {
    let today = run().await;

    if std::env::var_os("POSITRONIC_WRITE_FORMAT_1").is_some() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/format-1.jsonl");
        std::fs::write(file, today.json_lines()).unwrap();
    }
    // Signals may come before or after an outcome, so it is not the order that is compared.
    let kinds = |log: &str| -> BTreeSet<&'static str> {
        log.lines().map(|line| Event::from_json(line).unwrap().kind.name()).collect()
    };
    assert_eq!(kinds(&today.json_lines()), kinds(LOG));
}
