//! Schedules: they start runs at the times of cron expressions, at intervals, or at given times.
//!
//! This module is for authors who set a [`Schedule`] in code, and for user interfaces, which show a [`ScheduleRecord`] and
//! its [`Tick`]s. It is pure: it computes times and decides what happens at them, without a clock and without a store.
//! [`Schedules`](crate::runner::Schedules) stores schedules and starts their runs.
//!
//! ```text
//! ScheduleSpec ── due(spec, decided, now) ──▶ nominal times ── catch-up, overlap ──▶ ticks: started, skipped, missed
//! ```
//!
//! A [`ScheduleRecord`] is what a store has of a schedule: what a person has set, and what is decided so far. Every
//! decision changes the record once, so of two servers that decide the same, one changes it and the other decides
//! again.

mod catch_up;
mod changes;
mod clock_change;
mod cron;
mod due;
mod next_time;
mod overlap;
mod policy;
mod preview;
mod record;
mod spec;
mod state;
mod tick_outcome;

pub use cron::{CronError, CronExpression};
pub use due::{Due, MAX_DUE, due, jitter};
pub use policy::{CatchUp, Overlap, Schedule};
pub use preview::{PreviewedTime, TimeShift, preview};
pub use record::ScheduleRecord;
pub use spec::{DateRange, Interval, ScheduleSpec, SpecError};
pub use state::{BackfillError, BrokenSchedule, MAX_QUEUED, Observed, PausedSchedule, QueuedTick, StartedTick};
pub use tick_outcome::{Tick, TickOutcome, TickReason};
pub(crate) use tick_outcome::{tick_key, time_key};
