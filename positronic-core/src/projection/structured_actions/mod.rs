//! Structured actions: a projection and a decoder around an ordinary loop.
//!
//! ```text
//! iteration as prepared (tools, messages) ──request──▶ request without tools: actions in words, form of the answer, messages as text
//!                                                        │ model
//! reasoning, calls ◀──────────────────answer──────── its text, or a sentence that says what is wrong
//! ```
//!
//! The record is that of any loop: the reason is a reasoning part, the actions are calls. Approvals, limits, exits,
//! plugins and replay therefore need no special case. Requests are a pure function of the log, which includes the
//! rejected answers with their mistakes.

mod answer;
mod request;
mod schema;
mod stream;

pub(crate) use answer::{DecodedActions, decode_actions};
pub(crate) use request::structured_request;
pub(crate) use stream::ReasoningStream;
