//! The code samples of the three designs: each beside its translation, which runs to its end with a scripted model.
//!
//! A file is a sample, named after its heading. It has the sample as the design writes it, the translation, and a test whose
//! snapshot has the `LOOP_*` events of the run, a line each.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "in tests a panic is the message")]

mod agent_loop;
mod decision_loop;
mod events;
mod loop_step;
mod services;

use positronic_core::dsl::Runnable;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::record::{Path, Prompt};
use positronic_core::runner::{RunHandle, Settled};
use positronic_core::testing::{Story, Test};

use events::loop_events;

/// Starts a brain whose model gives these replies.
async fn start<B: Runnable>(
    brain: B,
    options: B::Options,
    replies: impl IntoIterator<Item = Reply>,
) -> RunHandle<B::Result> {
    Test::new(ScriptedModel::new(replies)).start(brain, options).await
}

/// Waits until a run waits, and returns the paths of the pending calls.
async fn pending<R>(run: &RunHandle<R>) -> Vec<Path> {
    match run.settled().await {
        Settled::Waiting(pending) => pending.into_iter().map(|pending| pending.call).collect(),
        other => panic!("the run does not wait: {other:?}"),
    }
}

/// Waits until a run has completed.
async fn complete<R: serde::de::DeserializeOwned>(run: &RunHandle<R>) -> Story {
    let story = Story::of(run).await;
    assert!(matches!(story.settled(), Settled::Completed(_)), "the run has not completed: {:?}", story.settled());
    story
}

/// Returns the record of a run's first loop.
fn prompt<R>(run: &RunHandle<R>) -> Prompt {
    run.prompts().iter().next().unwrap().clone()
}
