//! Projections of a log: timelines, prompts, model messages, requests, costs.
//!
//! This module is for user interfaces and other readers of runs; an author of brains does not need it.
//!
//! Each projection is a pure function of events. [`timeline::Timeline`] is the whole run as a tree, as people see it.
//! [`Prompts`] folds the records of a run's loops, [`messages`] converts a record into model messages, `normalize_messages`
//! makes them acceptable to every provider, and `structured_actions` converts requests and answers of loops with structured
//! actions. [`request_at`] rebuilds a sent request, [`diff`] compares two runs, [`Costs`] computes costs,
//! and [`files`] lists the files of a run.

mod call_ids;
mod cost;
mod diff;
mod earlier_turns;
mod files;
mod messages;
mod normalize_messages;
mod prompts;
mod requests;
mod result_text;
mod structured_actions;
pub mod timeline;
mod traffic;
mod transcript;

pub use cost::{CallCost, Cost, Costs, Counted, Spent};
pub use diff::{Divergence, DivergentEvent, Inputs, RunDiff, diff};
pub use earlier_turns::History;
pub(crate) use earlier_turns::TurnBlock;
pub use files::{FileOrigin, RunFile, files};
pub use messages::{messages, prompts_to_messages};
pub use prompts::Prompts;
pub(crate) use prompts::PromptsPart;
pub use requests::{RequestError, request_at, request_for};
pub(crate) use requests::{iteration_request, question_request};
pub use result_text::result_text;
pub(crate) use structured_actions::{DecodedActions, ReasoningStream, decode_actions};
pub use traffic::{Exchange, Traffic, traffic};
pub use transcript::transcript;
