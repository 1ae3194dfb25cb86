//! Who started a run.

use serde::{Deserialize, Serialize};

use super::signal::Start;

/// Who started a run, as lists show it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Starter {
    /// The person or system that has started the run, has forked it, or has asked for the tick of its schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The user for whom it acted, if that is another name than `by`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Who had set the schedule that started the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<String>,
}

impl Starter {
    /// Returns who started a run, or `None` if the start does not say so.
    #[must_use]
    pub fn of(start: &Start) -> Option<Self> {
        let scheduler = start.scheduled.as_ref().and_then(|tick| tick.by.clone());
        let starter =
            Self { by: start.actor.by.clone(), user: start.actor.user.as_deref().map(str::to_owned), scheduler };
        (starter != Self::default()).then_some(starter)
    }
}
