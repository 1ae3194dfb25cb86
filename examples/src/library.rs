//! Work in the background: a librarian talks with a reader while a run of its own looks through the stacks, whose end is a message to the
//! loop. Card numbers in messages are hidden from the model, and a model judges what the librarian says.

use std::time::Duration;

use positronic_core::prelude::*;
use positronic_plugins::{Judge, Patterns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The brain's title.
pub const TITLE: &str = "Library";

/// Answers without a configured model; written by hand.
pub const CASSETTE: &str = include_str!("../cassettes/library.jsonl");

/// What a reader asks for.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Question {
    /// What the reader says
    pub text: String,
}

impl Default for Question {
    fn default() -> Self {
        let text = "What do you have about owls? My library card is 4111 1111 1111 1111.";
        Self { text: text.to_owned() }
    }
}

/// What to look for.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Topic {
    /// One word, in lower case
    pub word: String,
}

const SHELVES: [(&str, &str); 4] = [
    ("owls", "The Silent Wing, shelf 12"),
    ("owls", "Night Birds of the North, shelf 12"),
    ("bees", "A Year with Bees, shelf 3"),
    ("stars", "Maps of the Sky, shelf 40"),
];

/// Builds the brain of a search, which runs in the background.
pub fn stacks() -> Brain<Topic, Vec<String>> {
    brain("Stacks")
        .description("Looks for books about a topic")
        .options::<Topic>()
        .sleep("Walk", |()| Duration::from_secs(1))
        .step("Look", async |cx| {
            let found = SHELVES.iter().filter(|(topic, _)| *topic == cx.options.word);
            Ok(found.map(|(_, book)| (*book).to_owned()).collect::<Vec<_>>())
        })
        .build()
}

/// Builds the brain.
pub fn library() -> Brain<Question, ()> {
    let cards = Patterns::new().cards().redact();
    let quiet = Judge::new("It promises no book that is not in the text, and no time when a search ends.");
    let stacks = stacks();
    brain(TITLE)
        .description("Answers readers while a search runs in the background")
        .options::<Question>()
        .r#loop("Desk", move |cx| {
            cx.system(
                "You are a librarian. Start a search when a reader asks for a topic, and say that you have. When it ends, name the books and \
                 their shelves.",
            )
            .input(cx.options.text.as_str())
            .tool("search", |t| t.background(&stacks))
            .guard_input("No card numbers", cards.inputs())
            .guard_answer("Promises nothing", quiet.answers())
        })
        .build()
}
