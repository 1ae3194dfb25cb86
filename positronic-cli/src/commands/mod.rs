//! The verbs, one a file or a family a file. Each writes through the [`Ui`](crate::app::Ui) and returns how it ended.

#[cfg(test)]
mod budget_tests;
mod chat;
#[cfg(test)]
mod chat_budget_tests;
#[cfg(test)]
mod chat_tests;
mod conversations;
mod diff;
mod events;
mod file;
mod files;
mod fork;
mod inbox;
mod list;
mod new;
mod prune;
mod record;
#[cfg(test)]
mod record_tests;
mod report;
#[cfg(test)]
mod report_tests;
mod run;
#[cfg(test)]
mod run_tests;
mod runs;
mod send;
mod show;
mod signal;
mod state;
#[cfg(test)]
mod store_tests;
#[cfg(test)]
mod tests;
mod triggers;
mod watch;
mod work;

pub(crate) use chat::chat;
pub(crate) use conversations::conversations;
pub(crate) use diff::diff;
pub(crate) use events::events;
pub(crate) use file::{export, import};
pub(crate) use files::files;
pub(crate) use fork::fork;
pub(crate) use inbox::inbox;
pub(crate) use list::list;
pub(crate) use new::new;
pub(crate) use prune::prune;
pub(crate) use record::record;
pub(crate) use report::report;
pub(crate) use run::run;
pub(crate) use runs::runs;
pub(crate) use send::send;
pub(crate) use show::{show, show_run};
pub(crate) use signal::{approve, cancel, pause, reject, resume};
pub(crate) use state::state;
pub(crate) use triggers::triggers;
pub(crate) use watch::watch;
pub(crate) use work::work;
