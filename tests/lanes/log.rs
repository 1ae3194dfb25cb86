//! Reading a run's log in tests whose times differ from run to run.

use std::fmt::Write as _;
use std::time::Duration;

use positronic_core::model::Model;
use positronic_core::projection::request_at;
use positronic_core::record::{EventKind, ModelError};
use positronic_core::testing::Story;

/// Renders one event per line: its path and name, and the text of model retries.
pub(crate) fn outline(story: &Story) -> String {
    let mut text = String::new();
    for event in story.log() {
        let path = if event.path.is_root() { "·" } else { event.path.as_str() };
        _ = write!(text, "{path} {}", event.kind.name());
        if let EventKind::LoopModelRetry { attempt, error, .. } = &event.kind {
            _ = write!(text, " {attempt}: {:?}", error.kind);
        }
        text.push('\n');
    }
    text
}

/// Returns the bodies of all requests of a run, rebuilt from its log.
pub(crate) fn rebuilt(story: &Story, model: &impl Model) -> Vec<String> {
    let log = || story.log().iter().map(|event| &**event);
    log()
        .filter(|event| matches!(event.kind, EventKind::LoopModelCall { .. }))
        .map(|event| model.wire(&request_at(log(), event.seq).unwrap()))
        .collect()
}

/// A retry: the error, and the planned and actual delay in milliseconds.
#[derive(Debug)]
pub(crate) struct Retry {
    pub(crate) error: ModelError,
    pub(crate) meant: u128,
    pub(crate) waited: u128,
}

/// Returns the retries of a run.
pub(crate) fn retries(story: &Story) -> Vec<Retry> {
    let mut retries = Vec::new();
    for (index, event) in story.log().iter().enumerate() {
        let EventKind::LoopModelRetry { error, due, .. } = &event.kind else { continue };
        let later = &story.log()[index + 1..];
        let again = later
            .iter()
            .find(|later| later.path == event.path && matches!(later.kind, EventKind::LoopModelCall { .. }));
        retries.push(Retry {
            error: error.clone(),
            meant: millis(due.since(event.at)),
            waited: millis(again.unwrap().at.since(event.at)),
        });
    }
    retries
}

/// Rounds, since an event is stamped some microseconds after the delay was computed.
fn millis(duration: Duration) -> u128 {
    (duration.as_micros() + 500) / 1000
}
