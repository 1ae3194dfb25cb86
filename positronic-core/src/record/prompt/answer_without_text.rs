//! The answer of a model that consists of calls, as the record of a loop contains it.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::made_by::MadeBy;
use super::part::Part;
use crate::record::money::Charge;

/// A model's answer of calls, apart from the calls: what it contains is not for people.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnswerWithoutText {
    /// The iteration.
    pub iteration: u32,
    /// The parts in order, with references to calls.
    pub parts: Arc<[Part]>,
    /// What the answer cost when it came; `None` where nothing is known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Box<Charge>>,
    /// The model that gave it.
    #[serde(default, skip_serializing_if = "MadeBy::is_unknown")]
    pub by: MadeBy,
    /// Its duration from its request, stored in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::record::encoding::micros::optional")]
    pub duration: Option<Duration>,
}
