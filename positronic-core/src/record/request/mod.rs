//! Requests to models, their settings, and what comes back: answers, usage, errors.

pub(in crate::record) mod answer;
pub(in crate::record) mod provider_tool;
pub(in crate::record) mod request;
pub(in crate::record) mod retry_policy;
pub(in crate::record) mod structured_actions;
pub(in crate::record) mod usage;
