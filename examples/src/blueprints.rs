//! Documents that match the user's message: the model reads only the house rules that it needs.
//!
//! A planner has templates for many kinds of events. It searches the templates that match the user's words; when the
//! user says something else during the work, other templates replace them. The index is in memory here;
//! `MarkdownFolder` reads a folder, and a custom `DocumentSource` uses any search engine.

use positronic_core::prelude::*;
use positronic_plugins::{Blueprints, Document, MemoryIndex};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The brain's title.
pub const TITLE: &str = "Planner";

/// Answers without a configured model, and the guest's reply; written by hand.
pub const CASSETTE: &str = include_str!("../cassettes/blueprints.jsonl");

/// The plan.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Plan {
    /// The tasks in order.
    pub steps: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Step {
    /// One sentence
    step: String,
}

/// What the one who asks says on the way.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// What is different.
    pub text: String,
}

fn templates() -> MemoryIndex {
    MemoryIndex::new([
        Document::new("Workshop", "Book a room with a whiteboard. At most 12 people. Two breaks of 20 minutes.")
            .tags(["training", "seminar"]),
        Document::new("Dinner", "Ask for allergies a week before. Order for two guests more than are expected.")
            .tags(["restaurant", "food"]),
        Document::new("Concert", "Ask the neighbours. The sound check is three hours before the doors open.")
            .tags(["music", "band"]),
        Document::new("Excursion", "Count the people at every stop. Have a plan for rain.").tags(["trip", "bus"]),
    ])
}

/// Builds the brain.
pub fn planner() -> Brain<(), Plan> {
    let blueprints = Blueprints::new(templates()).top(1);
    brain(TITLE)
        .description("Plans an event by the templates that fit it")
        .state(Plan::default())
        .r#loop("Plan", move |cx| {
            cx.system("You plan events. Follow the template.")
                .context("plan", format!("Planned so far: {:?}", cx.state.steps))
                .input("We want a seminar about bees for ten people.")
                .tool("add_step", |t| {
                    t.description("Adds a step to the plan").sequential().execute(async |Step { step }, cx| {
                        cx.update(|plan| plan.steps.push(step));
                        Ok("added")
                    })
                })
                .tool("ask_guest", |t| {
                    t.description("Asks whether something is missing, and waits for the answer")
                        .wait(|_: &NoArgs, _| {
                            let hook = webhook::<Change>("chat").on("guest").person();
                            [hook.resume(|plan: &mut Plan, change| plan.steps.push(format!("Wish: {}", change.text)))]
                        })
                        .execute(async |_: NoArgs, _| Ok(()))
                })
                .plugin(match cx.state.steps.iter().rev().find_map(|step| step.strip_prefix("Wish: ")) {
                    // The guest's reply is a tool result, so the search needs it explicitly.
                    Some(wish) => blueprints.clone().query(wish),
                    None => blueprints.clone(),
                })
                .max_iterations(10)
        })
        .build()
}
