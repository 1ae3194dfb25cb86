//! Triggers: the model sets the time of its next prompt, which then starts without a message.
//!
//! A gardener looks after some beans. It sets a trigger for each evening; each evening a prompt starts without a
//! message, reads the reason, and waters. When rain is announced, it deletes the trigger. In a conversation the prompts
//! have a shared history: `runner.conversation("garden")`. A process must serve the store: `Runner::serve` in a
//! program, or `positronic work` on the command line; `positronic triggers` lists the triggers.

use std::time::Duration;

use positronic_core::prelude::*;
use positronic_plugins::Triggers;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The brain's title.
pub const TITLE: &str = "Gardener";

/// Answers without a configured model; written by hand.
pub const CASSETTE: &str = include_str!("../cassettes/triggers.jsonl");

/// The options of a run.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Errand {
    /// The garden owner's first message; empty if a conversation's message contains the errand
    pub says: String,
}

impl Default for Errand {
    fn default() -> Self {
        Self { says: "Please water the beans now, and then every evening.".to_owned() }
    }
}

/// The gardener's work.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Garden {
    /// The watered beds, in order.
    pub watered: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Water {
    /// The bed
    bed: String,
}

/// Builds the brain.
pub fn gardener() -> Brain<Errand, Garden> {
    let triggers = Triggers::new().limit(5).at_least(Duration::from_hours(1));
    brain(TITLE).description("Looks after a garden, also when nobody asks").options::<Errand>().state(Garden::default()).r#loop(
        "Garden",
        move |cx| {
            let garden = cx
                .system(
                    "You look after a garden. What is to be done later or regularly you set a trigger for, and you delete it when \
                     it is not needed any more.",
                )
                .tool("water", |t| {
                    t.description("Waters a bed")
                        .execute(async |Water { bed }, cx| {
                            cx.update(|garden| garden.watered.push(bed));
                            Ok("watered")
                        })
                })
                .plugin(triggers.clone())
                .max_iterations(10);
            // A triggered run has the same options, but the errand is not repeated.
            if cx.fired().is_some() || cx.options.says.is_empty() { garden } else { garden.input(cx.options.says.as_str()) }
        },
    ).build()
}
