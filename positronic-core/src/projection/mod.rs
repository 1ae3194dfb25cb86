//! Reading a log: prompts, model messages, requests, and text for people.
//!
//! This module is for user interfaces and other readers of runs; an author of brains does not need it.
//!
//! Each projection is a pure function of events. [`Prompts`] folds the records of a run's loops; [`messages`] makes
//! from a record what a model reads, `dialogue` holds the rules that make it one which every provider accepts, `decision` makes what
//! one reads that answers in decisions; [`request_at`] rebuilds a request
//! that was sent; [`diff`] compares two runs; [`Costs`] says what a run used and cost, and [`Bill`] what several did; [`files`]
//! lists what files its tools made, and [`timeline::Timeline`] is the whole run as a tree, as people see it.

mod bill;
mod cost;
mod dialogue;
mod diff;
mod files;
mod history;
mod messages;
mod prompts;
mod requests;
mod structured;
pub mod timeline;
mod traffic;
mod transcript;

pub use bill::Bill;
pub use cost::{CallCost, Cost, Costs, Counted, Spent};
pub(crate) use dialogue::RULES;
pub use diff::{Divergence, DivergentEvent, Inputs, RunDiff, diff};
pub use files::{RunFile, files};
pub use history::History;
pub use messages::{messages, prompts_to_messages, result_text};
pub use prompts::Prompts;
pub use requests::{RequestError, request_at, request_for};
pub(crate) use requests::{iteration_request, question_request};
#[cfg(all(test, feature = "openai"))]
pub(crate) use structured::decision_request;
pub(crate) use structured::{Decided, ReasoningStream, decided};
pub use traffic::{Exchange, Traffic, traffic};
pub use transcript::transcript;
