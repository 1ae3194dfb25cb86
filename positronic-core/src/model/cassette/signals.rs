//! The recorded signals, given back when what they answered is pending again.

use std::collections::VecDeque;

use super::tape::SignalLine;
use crate::record::{Path, SignalKind};

/// What a suspended run waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pending<'a> {
    /// A person's decision on the call, or about more for the loop or the brain.
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
    /// Somebody's next message.
    Message,
    /// Somebody who lets it go on after a pause.
    Resume,
}

/// The signals that have not been given yet, in the order of their recording.
#[derive(Debug)]
pub(super) struct Signals(VecDeque<SignalLine>);

impl Signals {
    pub(super) fn new(signals: Vec<SignalLine>) -> Self {
        Self(signals.into())
    }

    pub(super) fn next(&mut self, pending: &[Pending<'_>]) -> Option<SignalKind> {
        let place = self.0.iter().position(|line| pending.iter().any(|one| answers(&line.signal, *one)))?;
        self.0.remove(place).map(|line| line.signal)
    }

    pub(super) fn unused(&self) -> Vec<String> {
        self.0.iter().map(|line| line.after.clone()).collect()
    }
}

/// Says whether a signal answers what is pending. A recorded cancel answers everything: nothing came after it.
fn answers(signal: &SignalKind, pending: Pending<'_>) -> bool {
    match (signal, pending) {
        (
            SignalKind::Approve { call, .. } | SignalKind::Reject { call, .. } | SignalKind::Grant { to: call, .. },
            Pending::Approval(asked),
        )
        | (SignalKind::Reply { call, .. }, Pending::Reply(asked)) => call == asked,
        (SignalKind::Webhook { name, identifier, .. }, Pending::Webhook { name: asked, identifier: by }) => {
            name == asked && identifier == by
        }
        (SignalKind::Message { .. }, Pending::Message)
        | (SignalKind::Resume, Pending::Resume)
        | (SignalKind::Cancel { .. }, _) => true,
        _ => false,
    }
}
