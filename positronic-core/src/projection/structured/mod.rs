//! Decision mode: a projection and a decoder around an ordinary loop.
//!
//! ```text
//! iteration as prepared (tools, messages) ──request──▶ request without tools: actions in words, form of the answer, messages as text
//!                                                        │ model
//! reasoning, calls ◀──────────────────answer──────── its text, or a sentence that says what is wrong
//! ```
//!
//! The record is that of any loop: the decision's reason is a reasoning part, its actions are calls. So approvals, limits,
//! exits, plugins and replay know nothing of decisions. What is sent is a pure function of the log, and so are the
//! answers that were refused, which stand in it with what was wrong.

mod answer;
mod request;
mod schema;
mod stream;

pub(crate) use answer::{Decided, decided};
pub(crate) use request::decision_request;
pub(crate) use stream::ReasoningStream;
