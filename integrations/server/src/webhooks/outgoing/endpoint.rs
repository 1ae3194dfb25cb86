//! An endpoint: where notices go, which ones, and the keys that sign them; its URL, and a subscription to one run.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use positronic_core::record::{RunId, RunSummary, Timestamp};
use positronic_net::{AddressGuard, PrivateAddresses, SystemResolver};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;

use super::WebhookEvent;
use super::transport::TransportError;
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

/// A subscription to one run: which notices go to an address, and with which bodies.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, typed_builder::TypedBuilder)]
#[non_exhaustive]
pub struct RunSubscription {
    /// The client's id of it; the subscriptions of a run differ in their ids.
    #[builder(setter(into))]
    pub id: String,
    /// The body of each notice that is sent.
    pub bodies: BTreeMap<WebhookEvent, Value>,
    /// Further headers of the requests. They are stored, and not shown.
    #[builder(default)]
    pub headers: Vec<(String, String)>,
    /// What the protocol keeps with it.
    #[builder(default)]
    pub details: Value,
}

impl fmt::Debug for RunSubscription {
    /// Leaves out the values of the headers, which are secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("RunSubscription")
            .field("id", &self.id)
            .field("bodies", &self.bodies)
            .field("headers", &headers)
            .field("details", &self.details)
            .finish()
    }
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

/// Parses the URL of an endpoint.
///
/// # Errors
///
/// [`TransportError`] if it is not an HTTP URL, contains a user or a password, or has an address that is not allowed. `http`
/// is only allowed together with private addresses.
pub(crate) fn parse_url(text: &str, private: PrivateAddresses) -> Result<Url, TransportError> {
    let invalid = |reason: &str| TransportError::Url { reason: reason.to_owned() };
    let url = Url::parse(text).map_err(|error| invalid(&error.to_string()))?;
    match (url.scheme(), private) {
        ("https", _) | ("http", PrivateAddresses::Allow) => {}
        ("http", PrivateAddresses::Refuse) => {
            return Err(invalid("`http` is not encrypted; use `https`"));
        }
        _ => return Err(invalid("it must begin with `https://`")),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid("it contains a user name or a password"));
    }
    AddressGuard::new(Arc::new(SystemResolver), private).check(&url)?;
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_has_no_values_of_headers() {
        let headers = vec![("authorization".to_owned(), "Bearer of-ann".to_owned())];
        let subscription = RunSubscription::builder().id("first").bodies(BTreeMap::new()).headers(headers).build();

        let text = format!("{subscription:?}");

        assert!(text.contains("authorization") && !text.contains("of-ann"), "{text}");
    }
}
