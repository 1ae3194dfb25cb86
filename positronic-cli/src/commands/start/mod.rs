//! Projects and their brains: creates and lists them, and starts runs.

pub(crate) mod chat;
pub(crate) mod list;
pub(crate) mod models;
pub(crate) mod new;
pub(crate) mod run;
