//! The brain of the benchmarks, and its model.
#![allow(unreachable_pub, reason = "each benchmark is a separate crate")]

use std::time::Duration;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::ModelRequest;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Note {
    /// What to note.
    text: String,
}

/// A brain that notes one line per iteration.
pub fn worker(iterations: u32) -> Brain {
    brain("Worker")
        .r#loop("Work", move |cx| {
            cx.system("You take notes, one an iteration, until there is nothing left to note.")
                .input("Begin.")
                .max_iterations(u64::from(iterations) + 1)
                .tool("note", |t| {
                    t.description("Notes a line")
                        .idempotent()
                        .execute(async |Note { text }, _| Ok(format!("noted: {text}")))
                })
                .tool("look", |t| {
                    t.description("Looks at the notes").read_only().execute(async |_: NoArgs, _| Ok("nothing"))
                })
                .tool("done", |t| t.description("Ends the work").exit().execute(async |_: NoArgs, _| Ok("done")))
        })
        .build()
}

/// A model that pauses before every answer.
pub fn model(iterations: u32, pause: Duration) -> ScriptedModel {
    ScriptedModel::from_fn(move |request: &ModelRequest| {
        let iteration = request.messages.len() / 2;
        let reply = if iteration < iterations as usize {
            Reply::call("note", json!({ "text": format!("line {iteration} of a log that goes on and on") }))
        } else {
            Reply::call("done", json!({}))
        };
        reply.after(pause)
    })
}
