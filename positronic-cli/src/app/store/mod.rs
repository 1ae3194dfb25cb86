//! The store of runs: found, opened and searched.

mod address;
mod changed_code;
mod conversation_export;
mod find;
mod project_dir;
mod project_store;
mod recorded_conversation;
mod without_worker;

pub(crate) use address::without_password;
pub(crate) use changed_code::{changed_runs, code_check};
pub(crate) use conversation_export::{format_of, write_conversation};
pub(crate) use find::{
    Found, continued_conversation, find_conversation, find_run, lookup_run, new_id, open_run, parse_call,
};
pub(crate) use project_dir::project_folder;
pub(crate) use project_store::{ProjectStore, current_folder, relative};
pub(crate) use recorded_conversation::Recorded;
pub(crate) use without_worker::runs_without_worker;
