//! A long conversation of bounded size: a summary replaces older iterations, and compaction is off where every word
//! counts.
//!
//! A proofreader reads a manuscript chapter by chapter. After four iterations, one message that the model itself has
//! written replaces all but the latest two. Before the report it calls `recall`: the state then switches compaction
//! off, and the next request contains every chapter again, since the record is complete.

use positronic_core::prelude::*;
use positronic_plugins::Compaction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The brain's title.
pub const TITLE: &str = "Proofreader";

/// Answers without a configured model, including the summary; written by hand.
pub const CASSETTE: &str = include_str!("../cassettes/compaction.jsonl");

/// The manuscript.
const CHAPTERS: [&str; 5] = [
    "Chapter 1. Maren, who is 34, leaves the harbour of Brest in a red boat.",
    "Chapter 2. A storm takes the mast. She repairs it with an oar.",
    "Chapter 3. She finds an island without a name, and stays for three weeks.",
    "Chapter 4. Her green boat is seen from a freighter, which brings her home.",
    "Chapter 5. On her 34th birthday, a year after she left, she buys a house by the sea.",
];

/// The proofreader's progress.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Reading {
    /// Whether compaction is off.
    pub recalled: bool,
    /// The problems of the manuscript.
    pub report: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Chapter {
    /// From 1
    number: usize,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Report {
    /// What contradicts itself, a sentence each
    faults: Vec<String>,
}

/// Builds the brain.
pub fn proofreader() -> Brain<(), Reading> {
    brain(TITLE)
        .description("Reads a manuscript, and finds what contradicts itself")
        .state(Reading::default())
        .r#loop("Read", |cx| {
            cx.system(format!("You proofread a manuscript of {} chapters. Read them one by one.", CHAPTERS.len()))
                .input("Does the story hold together?")
                .tool("read_chapter", |t| {
                    t.description("Reads a chapter").read_only().execute(async |Chapter { number }, _| {
                        let chapter = number.checked_sub(1).and_then(|place| CHAPTERS.get(place));
                        chapter.copied().ok_or_else(|| Error::new(format!("there is no chapter {number}")))
                    })
                })
                .tool("recall", |t| {
                    t.description("Brings back every chapter that was read, word for word").idempotent().execute(
                        async |_: NoArgs, cx| {
                            cx.update(|reading| reading.recalled = true);
                            Ok("every chapter is there again")
                        },
                    )
                })
                .tool("report", |t| {
                    t.description("Reports what contradicts itself").exit().execute(async |Report { faults }, cx| {
                        cx.update(|reading| reading.report = faults);
                        Ok("reported")
                    })
                })
                .plugin(Compaction::new().iterations(4).keep(2).enabled(!cx.state.recalled))
                .max_iterations(20)
        })
        .build()
}
