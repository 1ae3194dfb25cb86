//! The undo of brains that a model has called.

use std::sync::Arc;

use positronic_core::dsl::IntoBrain;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{EventKind, Seq};
use positronic_core::runner::Settled;
use positronic_core::testing::Test;
use serde_json::{Value, json};

use super::{deeds, trip, unpaid};
use crate::support::boundaries::{Baseline, Ledger, Tale, kinds};
use crate::support::disturbances;

/// An agent whose model books a trip with a brain of its own, which has options, and then talks about it.
fn agent(ledger: &Ledger, fails: &'static str) -> Brain<(), ()> {
    let (does, undoes, ledger) = (ledger.clone(), ledger.clone(), ledger.clone());
    let insure = brain("Insure")
        .options::<u32>()
        .step("Sign", move |cx| {
            does.act_once(cx.path().as_str(), &format!("insure {}", cx.options));
            async move { Ok(*cx.options * 2) }
        })
        .compensate(move |cx| {
            undoes.act_once(cx.path().as_str(), &format!("cancel insurance {} of {}", cx.state, cx.options));
            async { Ok(()) }
        })
        .build();
    brain("Agent")
        .state(40_u32)
        .r#loop("Chat", move |cx| {
            let insure = insure.clone();
            let config = cx.system("Book.").input("A trip.").brain("trip", trip(&ledger, fails));
            // The tools of later iterations are others.
            if *cx.state > 50 {
                return config;
            }
            let insure = insure.clone();
            config.tool("insure", |t| {
                t.brain(insure).map_input(|value| *value + 1).map_output(|value, insured| *value = insured)
            })
        })
        .step("Fail", async |_| -> Result<()> { Err(Error::new("no")) })
        .build()
}

#[tokio::test(start_paused = true)]
async fn completed_brains_that_a_model_called_are_undone_with_the_brain_around_them() {
    let ledger = Ledger::default();
    let model =
        ScriptedModel::new([Reply::call("insure", json!({})), Reply::call("trip", json!({})), Reply::text("Booked.")]);
    let run = Test::new(model).start(agent(&ledger, ""), ()).await;
    assert!(matches!(run.settled().await, Settled::Failed(_)));
    assert_eq!(
        deeds(&ledger),
        "insure 41, book Flight, book Hotel, book Car, cancel Flight+Hotel+Car, cancel Flight+Hotel, cancel Flight, \
         cancel insurance 82 of 41"
    );
    let log = run.events(Seq(0)).await.unwrap();
    let undone = log.iter().find_map(|event| match &event.kind {
        EventKind::UndoStart { steps, .. } => Some(steps.iter().map(|step| step.undoes.as_str()).collect::<Vec<_>>()),
        _ => None,
    });
    assert_eq!(undone.unwrap(), ["Chat/1.0/Car", "Chat/1.0/Hotel", "Chat/1.0/Flight", "Chat/0.0/Sign"]);
}

#[tokio::test(start_paused = true)]
async fn brain_that_a_model_called_and_that_failed_is_not_undone_again() {
    let ledger = Ledger::default();
    let model = ScriptedModel::new([Reply::call("trip", json!({})), Reply::text("There is no car.")]);
    let run = Test::new(model).start(agent(&ledger, "Car"), ()).await;
    assert!(matches!(run.settled().await, Settled::Failed(_)));
    assert_eq!(deeds(&ledger), "book Flight, book Hotel, cancel Flight+Hotel, cancel Flight");
}

#[tokio::test(start_paused = true)]
async fn cancel_in_the_middle_of_a_brain_that_a_model_called_undoes_its_stages() {
    let ledger = Ledger::default();
    let inner = unpaid(&ledger);
    let agent = brain("Agent")
        .r#loop("Chat", move |cx| cx.system("Book.").input("A trip.").brain("trip", inner.clone()))
        .compensate(async |_| Err(Error::new("the loop has not completed, so nothing undoes it")));
    let run = Test::new(ScriptedModel::new([Reply::call("trip", json!({}))])).start(agent.build(), ()).await;
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    run.cancel("too dear").await.unwrap();
    assert!(matches!(run.settled().await, Settled::Cancelled));
    assert_eq!(deeds(&ledger), "book Flight, book Hotel, cancel Flight+Hotel, cancel Flight");
    let log = run.events(Seq(0)).await.unwrap();
    assert!(log.iter().all(|event| event.kind.name() != "UNDO_FAILED"), "{}", kinds(&log));
}

#[tokio::test(start_paused = true)]
async fn undo_of_a_loop_takes_the_place_of_that_of_the_brains_in_it() {
    let ledger = Ledger::default();
    let (inner, undoes) = (trip(&ledger, ""), ledger.clone());
    let agent = brain("Agent")
        .r#loop("Chat", move |cx| cx.system("Book.").input("A trip.").brain("trip", inner.clone()))
        .compensate(move |cx| {
            undoes.act_once(cx.idempotency_key(), "cancel all");
            async { Ok(()) }
        });
    let test = Test::new(ScriptedModel::new([Reply::call("trip", json!({})), Reply::text("Booked.")]));
    let run = test.start(agent.clone(), ()).await;
    run.result().await.unwrap();
    let runner = test.runner().clone().brain(agent);
    let undone = runner.client().undo(run.id(), "ann").await.unwrap();
    assert!(matches!(runner.resume(&undone).await.unwrap().settled().await, Settled::Cancelled));
    assert_eq!(deeds(&ledger), "book Flight, book Hotel, book Car, cancel all");
}

/// The agent, whose failure is a value, with a model that calls its brains.
fn travel() -> Tale {
    let ledger = Ledger::default();
    let outer = brain("Outer").state(String::new()).all(
        "All",
        |g| (g.attempt("Agent", agent(&ledger, ""), |_| ()),),
        |_, (agent,)| agent.unwrap_err().message,
    );
    Tale {
        definition: IntoBrain::definition(&outer),
        options: Value::Null,
        ledger,
        says: Arc::new(|request| match request.messages.len() {
            0 | 1 => Reply::call("insure", json!({})),
            2 | 3 => Reply::call("trip", json!({})),
            _ => Reply::text("Booked."),
        }),
        answers: Arc::new(|pending| panic!("{pending:?}")),
    }
}

async fn travelled(tale: &Tale) -> Baseline {
    let baseline = tale.undisturbed().await;
    assert_eq!(baseline.end.state, json!("the step `All/0.0/Fail` failed: no"));
    assert_eq!(tale.ledger.deeds().len(), 8);
    baseline
}

#[tokio::test(start_paused = true)]
async fn undo_of_called_brains_is_the_same_after_a_crash_at_every_boundary() {
    let tale = travel();
    disturbances::crash(&tale, &travelled(&tale).await).await;
}

#[tokio::test(start_paused = true)]
async fn undo_of_called_brains_is_cancelled_at_every_boundary() {
    let tale = travel();
    disturbances::cancel(&tale, &travelled(&tale).await).await;
}

#[tokio::test(start_paused = true)]
async fn undo_of_called_brains_pauses_at_every_boundary() {
    let tale = travel();
    disturbances::pause(&tale, &travelled(&tale).await).await;
}

#[tokio::test(start_paused = true)]
async fn undo_of_called_brains_is_the_same_in_a_fork_at_every_boundary() {
    let tale = travel();
    disturbances::fork(&tale, &travelled(&tale).await).await;
}
