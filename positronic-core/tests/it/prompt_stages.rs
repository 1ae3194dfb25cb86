//! Prompts as stages: one typed answer, asked again when it does not fit.

use std::sync::Arc;

use positronic_core::dsl::IntoBrain;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{EndReason, FileRef, Message, ModelRequest, Seq, StageKind, Tier};
use positronic_core::runner::RunError;
use positronic_core::testing::Test;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::boundaries::{Ledger, Tale};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
enum Kind {
    Refund,
    Question,
}

/// An answer as providers give it, whose schemas are objects.
fn answer(kind: &str) -> Reply {
    Reply::text(json!({ "value": kind }).to_string())
}

fn triage() -> Brain<(), (String, Kind)> {
    brain("Triage")
        .state("My kettle leaks.".to_owned())
        .prompt(
            "Classify",
            |cx| {
                cx.system("You sort tickets.").retries(1).ask::<Kind>(format!("What is this? {}", cx.state)).check(
                    |kind| {
                        if *kind == Kind::Question { Err("it is no question".to_owned()) } else { Ok(()) }
                    },
                )
            },
            |text, kind| (text, kind),
        )
        .build()
}

#[tokio::test(start_paused = true)]
async fn file_and_tier_of_a_prompt_are_asked_again_after_a_misfit() {
    let asked = |request: &ModelRequest| match request.messages.messages().first() {
        Some(Message::User { files, .. }) => (files.len(), request.settings.tier),
        other => panic!("{other:?}"),
    };
    let model = ScriptedModel::from_fn(move |request| {
        assert_eq!(asked(request), (1, Tier::High));
        answer(if request.messages.messages().len() == 1 { "Nothing" } else { "Refund" })
    });
    let photo = || FileRef::url("https://example.org/kettle.jpg", "image/jpeg");
    let brain = brain("Triage").prompt(
        "Classify",
        move |cx| cx.system("You sort photos.").tier(Tier::High).file(photo()).ask::<Kind>("What is this?"),
        |(), kind| kind,
    );
    assert_eq!(Test::new(model).start(brain, ()).await.result().await.unwrap(), Kind::Refund);
}

#[tokio::test(start_paused = true)]
async fn answer_that_fits_becomes_the_state() {
    let test = Test::new(ScriptedModel::new([answer("Refund")]));
    let run = test.start(triage(), ()).await;

    assert_eq!(run.result().await.unwrap(), ("My kettle leaks.".to_owned(), Kind::Refund));
    let log = run.events(Seq(0)).await.unwrap();
    let kinds: Vec<_> = log.iter().map(|event| event.kind.name()).collect();
    assert_eq!(
        kinds,
        [
            "BRAIN_START",
            "RUN_CLAIMED",
            "STEP_START",
            "LOOP_MODEL_CALL",
            "LOOP_MODEL_RESULT",
            "STEP_COMPLETE",
            "BRAIN_COMPLETE"
        ]
    );
    assert_eq!(run.state().root.unwrap().stages.0[0].kind, StageKind::Prompt);
}

#[tokio::test(start_paused = true)]
async fn model_is_asked_again_with_the_error_of_the_schema_or_the_check() {
    let model = ScriptedModel::from_fn(|request| {
        let text = format!("{:?}", request.messages);
        if text.contains("it is no question") { answer("Refund") } else { answer("Question") }
    });
    let run = Test::new(model).start(triage(), ()).await;
    assert_eq!(run.result().await.unwrap().1, Kind::Refund);
}

#[tokio::test(start_paused = true)]
async fn last_answer_that_does_not_fit_fails_the_brain() {
    let model = ScriptedModel::new([Reply::text("perhaps"), answer("Complaint")]);
    let run = Test::new(model).start(triage(), ()).await;
    let RunError::Failed(failure) = run.result().await.unwrap_err() else { panic!() };
    assert_eq!(failure.code, EndReason::Step);
    assert!(failure.message.contains("asked 2 times"), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn prompt_survives_a_crash_at_any_moment_and_does_not_ask_twice_for_a_recorded_answer() {
    let tale = Tale {
        definition: IntoBrain::definition(&triage()),
        options: Value::Null,
        ledger: Ledger::default(),
        says: Arc::new(|_| answer("Refund")),
        answers: Arc::new(|_| Vec::new()),
    };
    let baseline = tale.undisturbed().await;
    assert_eq!(baseline.end.state, json!(["My kettle leaks.", "Refund"]));
    for death in &baseline.deaths {
        let Some((end, _)) = tale.after(&baseline, death).await else { continue };
        assert_eq!(end, baseline.end, "after {}", death.until);
    }
}
