//! What a protocol stores of a subscription to one run.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::WebhookEvent;

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
