//! `/schedules`: reads and sets schedules, and starts runs of them.

pub(crate) mod body;
pub(crate) mod preview;
pub(crate) mod schedule;
pub(crate) mod trigger_key;
