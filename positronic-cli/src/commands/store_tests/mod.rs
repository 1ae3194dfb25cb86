//! The commands about runs, over a store's file: a family a file.

mod decisions;
mod desk;
mod export;
mod files;
mod forks;
mod lists;
mod stores;
mod webhooks;
mod work;

pub(super) use desk::{Desk, scripted};
