//! The worker of a run: it claims the run, restores its code, appends its events and releases it.
//!
//! ```text
//! claim ──▶ restore ──▶ next(state) ──▶ effects ──▶ outcomes ──▶ draft ──▶ commit ──┐
//!                          ▲                                                       │
//!                          └────────────────── until idle, then release ───────────┘
//! ```
//!
//! The lease of the claim fences off earlier workers. An append carries what later loads need: the row of the run, its
//! timers, snapshots and prompts.

pub(super) mod append;
mod brain_retries;
pub(super) mod claim;
pub(super) mod claimed_runs;
pub(super) mod code_difference;
mod commit;
mod draft;
mod drafting;
pub(super) mod early_webhooks;
pub(super) mod lease;
mod leave_run;
pub(super) mod load;
pub(super) mod loaded_code;
mod lockstep;
pub(super) mod restore;
pub(super) mod shared;
mod snapshots;
pub(super) mod stop_reason;
pub(super) mod timers;
mod work_loop;
mod worker;

pub(in crate::runner) use leave_run::{LeaveReason, work};
pub(in crate::runner) use worker::Worker;
