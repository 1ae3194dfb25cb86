//! Tool calls that run apart from the worker of their run, for adapters of durable engines.
//!
//! ```text
//! worker   LOOP_TOOL_START (detached) ─▶ ToolExecutor::execute ────────────────────▶ LOOP_TOOL_RESULT
//!                                             │          ▲
//! the engine                                  ▼          │ outcome, as data
//!                                        Runner::prepare_call, PreparedCall::perform, in any process
//! ```
//!
//! The worker appends the intent, hands the call to its [`ToolExecutor`] and appends the outcome. When the worker ends
//! in between, the call is not in doubt: the next worker hands the same call to its executor, which attaches to the
//! call that is running or returns the outcome of the one that has ended. An executor therefore performs a call at
//! most once per `(run, path, attempt)`, and remembers its outcome.
//!
//! Only a tool's function runs apart. Plugins around the call run in the worker, as do the tools of plugins and brains
//! as tools. `cx.once` and files and widgets are appended to the log by the performer as they come;
//! `cx.progress` reaches readers in the performer's process only.
//!
//! A state update crosses processes as a patch. The performer computes it on the state at the end of the call. If
//! another call changes the same place before the worker applies it, the call's result is an error; appending to a
//! list never conflicts.

pub(super) mod attach;
pub(super) mod call;
mod change;
pub(super) mod perform;

pub use call::{DetachedCall, DetachedOutcome, DetachedReply, ToolExecutor};
pub use perform::PreparedCall;
