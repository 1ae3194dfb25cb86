//! The samples of the "Agent Loop Design", of which there are two editions; all samples of the shorter one are in the fuller.

mod approval;
mod direct_sdk;
mod feature_parity;
mod message_projection;
mod prompt;
mod tool_invocation;
mod tool_results;
