//! A brain inside a brain, as a stage.
//!
//! The inner brain, [`research`], has its own options, state and services, independent of the outer one. Two
//! closures connect them: one maps the outer state to its options, the other its result to the next state.
//! `.provide(…)` maps the outer services to its services. In the log its events are below the stage's path.

use positronic_core::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The outer brain's title.
pub const TITLE: &str = "Newsletter";

/// Answers without a configured model; written by hand.
pub const CASSETTE: &str = include_str!("../cassettes/nested.jsonl");

/// The services of the outer brain.
#[derive(Debug)]
pub struct Newsroom {
    /// The readers of the newsletter.
    pub readers: u32,
    /// The archive.
    pub archive: Archive,
}

/// The services of the inner brain: the archive.
#[derive(Debug, Clone)]
pub struct Archive(Vec<&'static str>);

impl Newsroom {
    /// Creates a newsroom with a small archive.
    #[must_use]
    pub fn example() -> Self {
        let archive = Archive(vec![
            "2019: the city plants 400 lime trees along the canal",
            "2021: a storm fells 31 trees along the canal",
            "2024: the canal freezes for the first time in a decade",
        ]);
        Self { readers: 1200, archive }
    }
}

/// The topic, which is the options of both brains.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Topic {
    /// The topic
    pub topic: String,
}

impl Default for Topic {
    fn default() -> Self {
        Self { topic: "trees along the canal".into() }
    }
}

/// A newsletter before it is written.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Issue {
    headline: String,
    facts: Vec<String>,
}

/// The written newsletter.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Letter {
    /// The text for the readers.
    pub text: String,
    /// Number of readers.
    pub readers: u32,
}

/// Builds the outer brain. Its state is an [`Issue`] up to the last step, and a [`Letter`] after it.
pub fn newsletter() -> Brain<Topic, Letter, Newsroom> {
    brain(TITLE)
        .description("Writes a newsletter about a topic")
        .options::<Topic>()
        .services::<Newsroom>()
        .step("Plan", async |cx| Ok(Issue { headline: format!("All about {}", cx.options.topic), facts: Vec::new() }))
        .brain("Research", research().provide(|newsroom: &Newsroom| newsroom.archive.clone()))
        .map_input(|issue| Topic { topic: issue.headline.clone() })
        .map_output(|issue, facts| Issue { facts, ..issue })
        .step("Write", async |cx| {
            // A question in a step is recorded: if the step runs again, it gets the same answer.
            let question = format!("{}: {}", cx.state.headline, cx.state.facts.join("; "));
            let text = cx.model().system("Write a newsletter in one sentence.").ask(question).await?;
            Ok(Letter { text, readers: cx.services.readers })
        })
        .build()
}

/// What the model fills in to search the archive.
#[derive(Deserialize, JsonSchema)]
struct Search {
    /// A word that the entry has
    word: String,
}

/// What the model fills in to note a fact.
#[derive(Deserialize, JsonSchema)]
struct Note {
    /// One sentence
    fact: String,
}

/// Builds the inner brain: it collects facts, which are both its state and its result.
pub fn research() -> Brain<Topic, Vec<String>, Archive> {
    brain("Research")
        .options::<Topic>()
        .services::<Archive>()
        .state(Vec::<String>::new())
        .r#loop("Read", |cx| {
            cx.system("Search the archive, note two facts, then say that you are done.")
                .input(&cx.options.topic)
                .tool("search", |t| {
                    t.description("Searches the archive").read_only().execute(async |Search { word }, cx| {
                        let Archive(entries) = &*cx.services;
                        Ok(entries.iter().copied().filter(|entry| entry.contains(&word)).collect::<Vec<_>>())
                    })
                })
                .tool("note", |t| {
                    t.description("Notes a fact").execute(async |Note { fact }, cx| {
                        cx.update(|facts| facts.push(fact));
                        Ok("noted")
                    })
                })
                .max_iterations(5)
        })
        .build()
}
