//! An endpoint: where notices go, which ones, and the keys that sign them.

use positronic_core::record::{RunId, RunSummary, Timestamp};
use serde::{Deserialize, Serialize};

use super::{RunSubscription, WebhookEvent};
use crate::webhooks::WebhookSecret;

/// An endpoint, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Endpoint {
    pub(crate) url: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    /// The notices that it gets; empty for all.
    #[serde(default)]
    pub(crate) events: Vec<WebhookEvent>,
    /// The title of the brain whose runs it gets notices about; all brains without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) brain: Option<String>,
    /// Each delivery is signed with all of them.
    pub(crate) secrets: Vec<WebhookSecret>,
    pub(crate) created: Timestamp,
    /// It gets notices of events from this time on.
    pub(crate) since: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) disabled: Option<Disabled>,
    /// The one run that it gets notices about, with their bodies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) subscription: Option<StoredSubscription>,
}

/// A subscription with its run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredSubscription {
    pub(crate) run: RunId,
    /// The user of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<String>,
    #[serde(flatten)]
    pub(crate) own: RunSubscription,
}

/// Why and since when an endpoint gets nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Disabled {
    pub(crate) reason: String,
    pub(crate) at: Timestamp,
    /// Whether a person has disabled it, and not a receiver.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) by_person: bool,
}

impl Endpoint {
    /// Returns whether it gets a notice of an event.
    pub(super) fn wants(&self, event: WebhookEvent, row: &RunSummary, at: Timestamp) -> bool {
        self.disabled.is_none()
            && self.subscription.as_ref().is_none_or(|of| of.run == row.run && of.own.bodies.contains_key(&event))
            && at >= self.since
            && (self.events.is_empty() || self.events.contains(&event))
            && self.brain.as_deref().is_none_or(|title| *title == *row.brain)
    }
}
