//! The commands, one file or folder each. Each writes through the [`Ui`](crate::app::Ui) and returns how it ended.

pub(crate) mod backup;
#[cfg(test)]
mod budget_tests;
pub(crate) mod chat;
#[cfg(test)]
mod chat_budget_tests;
#[cfg(test)]
mod chat_tests;
pub(crate) mod conversations;
pub(crate) mod costs;
pub(crate) mod diff;
pub(crate) mod events;
pub(crate) mod file;
pub(crate) mod files;
pub(crate) mod fork;
pub(crate) mod inbox;
pub(crate) mod list;
pub(crate) mod models;
pub(crate) mod new;
pub(crate) mod prune;
pub(crate) mod record;
#[cfg(test)]
mod record_tests;
pub(crate) mod report;
#[cfg(test)]
mod report_tests;
pub(crate) mod result;
pub(crate) mod retry;
pub(crate) mod run;
#[cfg(test)]
mod run_tests;
pub(crate) mod runs;
pub(crate) mod schedule;
pub(crate) mod send;
pub(crate) mod show;
pub(crate) mod signal;
pub(crate) mod state;
#[cfg(test)]
mod store_tests;
#[cfg(test)]
mod tests;
#[cfg(feature = "serve")]
pub(crate) mod token;
pub(crate) mod triggers;
pub(crate) mod watch;
pub(crate) mod work;
