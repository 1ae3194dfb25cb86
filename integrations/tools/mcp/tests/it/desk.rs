//! A brain with one loop `Work` that has the tools of servers.

use std::time::Duration;

use positronic_core::prelude::*;
use positronic_core::record::{FileRef, LoopOutcome, OutputKind, Pending, PendingKind};
use positronic_core::runner::RunHandle;
use positronic_core::testing::Story;
use positronic_mcp::{Mcp, McpServer};
use serde_json::Value;

use crate::support::prompt;

/// Builds the brain.
pub(crate) fn desk(servers: &[&McpServer]) -> Brain<(), Value> {
    let mcp = Mcp::of(servers.iter().copied());
    brain("Desk").state(Value::Null).r#loop("Work", move |cx| cx.system("Work.").plugin(mcp.clone())).build()
}

/// Returns the failure of the loop `Work`.
#[track_caller]
pub(crate) fn failure_of(story: &Story) -> String {
    match prompt_outcome(story) {
        Some(LoopOutcome::Failed { message, .. }) => message,
        other => panic!("the loop did not fail: {other:?}\n{}", story.events()),
    }
}

fn prompt_outcome(story: &Story) -> Option<LoopOutcome> {
    prompt(story, "Work").outcome
}

/// Returns the files that the loop `Work` has shown.
pub(crate) fn shown_files(story: &Story) -> Vec<FileRef> {
    let outputs = prompt(story, "Work").output.into_iter();
    let files = outputs.filter_map(|output| match output.kind {
        OutputKind::File(output) => Some(output.file),
        _ => None,
    });
    files.collect()
}

/// Returns the reasons of all approvals.
pub(crate) fn reasons<R>(run: &RunHandle<R>) -> Vec<String> {
    let reason = |pending: Pending| match pending.kind {
        PendingKind::Approval { gate, .. } => gate.reason,
        PendingKind::Answer { .. } | PendingKind::Budget(_) => panic!("{} waits for something else", pending.call),
    };
    run.pending().into_iter().map(reason).collect()
}

/// Waits until a condition is true, and fails after a timeout.
pub(crate) async fn eventually(what: &'static str, is_so: impl Fn() -> bool) {
    for _ in 0..2000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{what} did not come about");
}
