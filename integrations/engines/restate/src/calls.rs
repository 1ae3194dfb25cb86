//! The tool calls that run in this process.
//!
//! Restate may lose its connection to a process during a call, and repeats the invocation. If the process is the same,
//! the invocation attaches to the running call here and gets its outcome.

use std::collections::HashMap;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use positronic_core::runner::detached::{DetachedCall, DetachedOutcome, PreparedCall};

use crate::payloads::{MAX_BYTES, size_of};

type Running = Shared<BoxFuture<'static, Arc<DetachedOutcome>>>;

/// The tool calls that run in this process, until Restate has recorded their outcomes.
#[derive(Default)]
pub(crate) struct OpenCalls(Mutex<HashMap<DetachedCall, Running>>);

impl OpenCalls {
    pub(crate) fn has(&self, call: &DetachedCall) -> bool {
        self.0.lock().contains_key(call)
    }

    /// Returns the outcome of a call, which is performed once, even if the returned future is dropped.
    pub(crate) async fn outcome(&self, call: &DetachedCall, prepared: Option<PreparedCall>) -> Arc<DetachedOutcome> {
        let running = {
            let mut calls = self.0.lock();
            match (calls.get(call), prepared) {
                (Some(running), _) => running.clone(),
                (None, Some(prepared)) => {
                    let task = tokio::spawn(async move { within_size(prepared.perform().await) });
                    let done = async move {
                        Arc::new(task.await.unwrap_or_else(|error| DetachedOutcome::InDoubt {
                            reason: format!("the call ended without an outcome: {error}"),
                        }))
                    };
                    calls.entry(call.clone()).or_insert(done.boxed().shared()).clone()
                }
                (None, None) => {
                    return Arc::new(DetachedOutcome::InDoubt {
                        reason: "the call has ended in this process and Restate has no outcome of it".to_owned(),
                    });
                }
            }
        };
        running.await
    }

    /// Removes a call whose outcome Restate has recorded.
    pub(crate) fn forget(&self, call: &DetachedCall) {
        self.0.lock().remove(call);
    }
}

fn within_size(outcome: DetachedOutcome) -> DetachedOutcome {
    let size = size_of(&outcome);
    if size <= MAX_BYTES {
        return outcome;
    }
    let message = format!(
        "the tool did its work, but its result is too large: Restate takes at most {MAX_BYTES} bytes, and the result has \
         {size}; store it as a file"
    );
    DetachedOutcome::Failed { message, transient: false }
}
