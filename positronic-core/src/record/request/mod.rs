//! Requests to models, their settings, and what comes back: answers, usage, errors.

pub(in crate::record) mod answer_fault;
pub(in crate::record) mod model_error_kind;
pub(in crate::record) mod model_response;
pub(in crate::record) mod provider_tool;
pub(in crate::record) mod request;
pub(in crate::record) mod retry_policy;
pub(in crate::record) mod structured_action_settings;
