//! Commands over a store, one file per family of commands.

mod attached;
mod attached_providers;
mod children;
mod costs;
mod decisions;
mod desk;
mod export;
mod files;
mod forks;
mod lists;
mod plugin_updates;
mod results;
mod schedules;
mod shared_runs;
mod stores;
#[cfg(feature = "serve")]
mod tokens;
mod webhooks;
mod work;

pub(super) use desk::{Desk, scripted};
