//! What a frame stores about its limits: spending, grants, and the conversation's budget.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::record::encoding::skip::is_default;
use crate::record::{Amounts, BudgetRequest, Money, Seq, SharedBudget};

/// The cost of model answers in a frame and everything below it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Spending {
    /// The known cost.
    #[serde(skip_serializing_if = "is_default")]
    pub known: Money,
    /// The first model whose answer has no known cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unpriced: Option<Arc<str>>,
}

/// The decisions on a frame's limits.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Grants {
    /// The amounts granted in addition to the author's limits.
    #[serde(skip_serializing_if = "is_default")]
    pub more: Amounts,
    /// The open request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<PendingGrant>,
    /// Whether a request was rejected or expired; then there are no further ones.
    #[serde(skip_serializing_if = "is_default")]
    pub refused: bool,
}

/// An open request for more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingGrant {
    /// The event of the request.
    pub since: Seq,
    /// The request.
    pub request: BudgetRequest,
}

/// The conversation's budget in the run's brain.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SharedLimits {
    /// The budget at the start of the run.
    pub budget: SharedBudget,
    /// The decisions on it in this run.
    #[serde(default, skip_serializing_if = "is_default")]
    pub grants: Grants,
}
