//! What a store has: runs, conversations, files, events, costs.

pub(crate) mod conversations;
pub(crate) mod costs;
pub(crate) mod diff;
pub(crate) mod events;
pub(crate) mod files;
pub(crate) mod inbox;
pub(crate) mod report;
pub(crate) mod result;
pub(crate) mod runs;
pub(crate) mod show;
pub(crate) mod state;
pub(crate) mod watch;
