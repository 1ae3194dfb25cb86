//! The traffic in a run's log makes a cassette that replays the run.

use std::sync::Arc;

use positronic_core::model::Model;
use positronic_core::model::cassette::{Cassette, Header, Recording};
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::projection::{Traffic, traffic};
use positronic_core::record::{Event, ModelError, ModelErrorKind, Seq};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize, JsonSchema)]
struct Place {
    #[expect(dead_code, reason = "the model fills it in, and the tool answers the same everywhere")]
    at: String,
}

/// A loop that calls tools, and one with structured actions.
fn agent() -> Brain<(), String> {
    brain("Agent")
        .state(String::new())
        .r#loop("Chat", |cx| {
            cx.system("Look.").input("Go.").tool("look", |t| t.execute(async |_: Place, _| Ok("a tree")))
        })
        .r#loop("Act", |cx| {
            cx.system("Act.")
                .input("Now.")
                .structured_actions()
                .tool("look", |t| t.execute(async |_: Place, _| Ok("a tree")))
                .tool("finish", |t| t.exit().execute(async |_: NoArgs, _| Ok("done")))
        })
        .build()
}

fn replies() -> [Reply; 6] {
    [
        Reply::error(ModelError::new(ModelErrorKind::Server, "busy")),
        Reply::calls([("look", json!({"at": "left"})), ("look", json!({"at": "right"}))]),
        Reply::text("I have looked."),
        Reply::text("Let me think."),
        Reply::action("I look.", "look", json!({"at": "up"})),
        Reply::action("Seen.", "finish", json!({})),
    ]
}

/// Runs the brain and returns its log.
async fn run(model: impl Model) -> Vec<Arc<Event>> {
    let runner = Runner::new(Arc::new(model) as Arc<dyn Model>);
    let run = runner.start(&agent(), ()).await.unwrap();
    run.result().await.unwrap();
    run.events(Seq(0)).await.unwrap()
}

/// Returns the events without times, claims and measurements.
fn happened(log: &[Arc<Event>]) -> Vec<Value> {
    let bodies = log.iter().map(|event| {
        let mut document: Value = serde_json::from_str(&event.to_json().unwrap()).unwrap();
        let fields = document.as_object_mut().unwrap();
        for measured in ["at", "duration", "due", "owner", "run", "metadata", "model"] {
            fields.remove(measured);
        }
        document
    });
    bodies.collect()
}

fn recording(log: &[Arc<Event>]) -> String {
    let mut recording = Recording::new(Header::default());
    for one in traffic(log.iter().map(|event| &**event), Vec::new(), |_| None).unwrap() {
        match one {
            Traffic::Exchange(exchange) => recording.exchange(&exchange.request, &exchange.outcome),
            Traffic::Signal { after, signal } => recording.signal(after.as_str(), &signal),
            _ => {}
        }
    }
    recording.to_text()
}

#[tokio::test(start_paused = true)]
async fn run_replays_from_the_cassette_of_its_log() {
    let first = run(ScriptedModel::new(replies())).await;
    let text = recording(&first);

    let cassette = Arc::new(Cassette::replay(&text).unwrap());
    let again = run(Arc::clone(&cassette)).await;

    assert_eq!(cassette.unused(), Vec::<String>::new());
    assert_eq!(happened(&again), happened(&first));
    assert_eq!(recording(&again), text, "the cassette of the replay is the same");
}

#[tokio::test(start_paused = true)]
async fn cassette_of_a_log_equals_that_of_a_recorded_model() {
    let live = Arc::new(Cassette::record(Arc::new(ScriptedModel::new(replies()))));
    let log = run(Arc::clone(&live)).await;

    let lines = |text: &str| -> Vec<Value> {
        // The header names the model, and the fields of a structured action have another order.
        let lines = text.lines().skip(1).map(|line| serde_json::from_str::<Value>(line).unwrap());
        let with_documents = lines.map(|mut line| {
            for part in line["reply"]["parts"].as_array_mut().into_iter().flatten() {
                let document = part["text"].as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
                part["text"] = document.unwrap_or_else(|| part["text"].take());
            }
            line
        });
        with_documents.collect()
    };
    assert_eq!(lines(&recording(&log)), lines(&live.to_text()));
}
