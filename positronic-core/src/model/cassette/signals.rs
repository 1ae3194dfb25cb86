//! Recorded signals, replayed when their wait is pending again.

use std::collections::VecDeque;

use super::format::SignalLine;
use crate::record::{Path, SignalKind};

/// A wait of a suspended run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AwaitedSignal<'a> {
    /// A person's decision on the call, or on a higher limit for the loop or the brain.
    Approval(&'a Path),
    /// A webhook's payload.
    Webhook {
        /// The webhook's name.
        name: &'a str,
        /// What tells this wait from others for the same webhook.
        identifier: &'a str,
    },
    /// A reply addressed to the call.
    Reply(&'a Path),
    /// The next user message.
    Message,
    /// A resume after a pause.
    Resume,
}

/// The unused signals, in the order of their recording.
#[derive(Debug)]
pub(super) struct Signals(VecDeque<SignalLine>);

impl Signals {
    pub(super) fn new(signals: Vec<SignalLine>) -> Self {
        Self(signals.into())
    }

    pub(super) fn next(&mut self, pending: &[AwaitedSignal<'_>]) -> Option<SignalKind> {
        let index = self.0.iter().position(|line| pending.iter().any(|one| answers(&line.signal, *one)))?;
        self.0.remove(index).map(|line| line.signal)
    }

    pub(super) fn unused(&self) -> Vec<String> {
        self.0.iter().map(|line| line.after.clone()).collect()
    }
}

/// Returns whether a signal responds to a wait. A recorded cancel responds to every wait: it was the last signal.
fn answers(signal: &SignalKind, pending: AwaitedSignal<'_>) -> bool {
    match (signal, pending) {
        (
            SignalKind::Approve { call, .. } | SignalKind::Reject { call, .. } | SignalKind::Grant { to: call, .. },
            AwaitedSignal::Approval(asked),
        )
        | (SignalKind::Reply { call, .. }, AwaitedSignal::Reply(asked)) => call == asked,
        (SignalKind::Webhook { name, identifier, .. }, AwaitedSignal::Webhook { name: asked, identifier: by }) => {
            name == asked && identifier == by
        }
        (SignalKind::Message { .. }, AwaitedSignal::Message)
        | (SignalKind::Resume, AwaitedSignal::Resume)
        | (SignalKind::Cancel { .. }, _) => true,
        _ => false,
    }
}
