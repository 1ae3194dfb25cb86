//! Who sent something to a run, and how.

use serde::{Deserialize, Serialize};

/// The sender of something, and its channel. Every field may be unknown. A name converts into the actor of that name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, typed_builder::TypedBuilder)]
#[serde(default)]
#[builder(field_defaults(default, setter(strip_option, into)))]
pub struct Actor {
    /// The person or system that sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The user for whom it acted, if that is another name than `by`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<Box<str>>,
    /// The channel it came over: `cli`, `http`, `slack`, ….
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The W3C trace context (`traceparent`) it came with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// The vendors' part of the trace context (`tracestate`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_state: Option<String>,
}

impl Actor {
    /// Returns who acted and how as the end of a sentence, such as ` by ann over http` or ` at the command line`; empty if neither is
    /// known.
    ///
    /// ```
    /// use positronic_core::record::Actor;
    ///
    /// let ann = Actor::builder().by("ann").channel("cli").build();
    /// assert_eq!(format!("it was approved{}", ann.clause()), "it was approved by ann at the command line");
    /// ```
    #[must_use]
    pub fn clause(&self) -> String {
        let by = self.by.as_ref().map_or_else(String::new, |by| format!(" by {by}"));
        match self.channel.as_deref() {
            Some("cli") => format!("{by} at the command line"),
            Some(channel) => format!("{by} over {channel}"),
            None => by,
        }
    }
}

impl<T: Into<String>> From<T> for Actor {
    fn from(by: T) -> Self {
        Self { by: Some(by.into()), ..Self::default() }
    }
}
