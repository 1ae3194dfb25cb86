//! Spans of runs, as plain data: a pure fold of a run's events.
//!
//! A [`RunSpans`] takes each event of a log once, in order, and returns the [`Span`]s that the event ends. Their ids follow
//! from the run and the number of the event that began them, so every process that folds the log gets the same spans.
//!
//! | span | begins with | ends with |
//! |---|---|---|
//! | [`Agent`](Operation::Agent) | `BRAIN_START`; that of the run also with each later `RUN_CLAIMED` | `BRAIN_COMPLETE`, `BRAIN_ERROR`, `BRAIN_CANCELLED` |
//! | [`Step`](Operation::Step) | `STEP_START` | `STEP_COMPLETE`, `STEP_RETRY`, `STEP_BLOCKED` |
//! | [`Loop`](Operation::Loop) | `LOOP_START` | `LOOP_COMPLETE` |
//! | [`Iteration`](Operation::Iteration) | `LOOP_ITERATION` | the next one, or `LOOP_COMPLETE` |
//! | [`Chat`](Operation::Chat) | `LOOP_MODEL_CALL` | `LOOP_MODEL_RESULT`, `LOOP_MODEL_RETRY`, `LOOP_ANSWER_REFUSED`, `LOOP_ANSWER_BROKEN` |
//! | [`Tool`](Operation::Tool) | `LOOP_TOOL_START`, `LOOP_BRAIN_START`, `LOOP_RESUME` | `LOOP_TOOL_RESULT`, `LOOP_TOOL_RETRY`, `LOOP_WAIT` |
//! | [`Wait`](Operation::Wait) | `LOOP_APPROVAL_REQUESTED`, `LOOP_WAIT`, `BUDGET_REQUESTED`, `BRAIN_PAUSED` | the decision, the answer, the expiry, `BRAIN_RESUMED` |
//!
//! `RUN_RELEASED`, and a claim without one before it, end all open spans but the waits. What goes on in the next segment
//! gets new spans there, with its first event.

mod bodies;
mod calls;
mod fold;
mod ids;
mod models;
mod open;
mod span;
mod waits;

pub use fold::RunSpans;
pub use ids::{SpanId, SpanRef, TraceId};
#[cfg(feature = "otel")]
pub(crate) use models::word;
pub use span::{Agent, Chat, Link, Operation, Outcome, Segment, Span, Tool, Wait, WaitKind};
