//! Schedules in a store: what people do with them, and how a server finds and starts what is due.
//!
//! ```text
//! entry `schedule` ──check──▶ ScheduleRecord::advance ──one change──▶ queue ──as timers──▶ Runner::fire ──▶ BRAIN_START
//!                                                            │                                  │      { scheduled }
//!                                                            └──▶ entries `tick/<schedule>` ◀───┘
//! ```
//!
//! Schedules and triggers fire through one mechanism: a ready tick becomes a [`Timer`](crate::record::Timer), for which
//! the server finds a runner as for a trigger, and [`Runner::fire`](crate::runner::Runner::fire) starts its run. A
//! trigger's timer is stored, and the append that starts the run changes it. A tick is in the record of its schedule,
//! and its run has an id of the schedule and the nominal time, so the append that starts the run succeeds once. A server
//! that crashes between the two leaves a tick in the queue, whose run the next check starts or finds.
//!
//! The record is one entry, and each change of it expects the revision that was read: of two servers, one decides. A
//! change also contains its ticks; the list of ticks gets them before the next change. The entries `schedule_due`, whose
//! keys begin with a time, only save reading all records each second: every minute a server reads all of them.

mod handle;
mod store;
pub(super) mod ticks;

pub use handle::{ScheduleError, ScheduleList, Schedules, UnreadableSchedule};
