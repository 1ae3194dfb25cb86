//! What a command opens and configures: the project, its store, its models and their prices, the streams, and errors as
//! prose.

pub(crate) mod atomic_write;
pub(crate) mod cargo;
pub(crate) mod cassette_position;
pub(crate) mod changed;
pub(crate) mod conversation;
pub(crate) mod endpoint;
pub(crate) mod failure;
pub(crate) mod file_names;
pub(crate) mod find;
pub(crate) mod json;
pub(crate) mod models;
pub(crate) mod money_limit;
pub(crate) mod output_file;
pub(crate) mod prices;
pub(crate) mod project;
pub(crate) mod project_dir;
pub(crate) mod recording;
pub(crate) mod run_options;
pub(crate) mod runtime;
pub(crate) mod saved_files;
pub(crate) mod settings;
pub(crate) mod store;
pub(crate) mod template;
pub(crate) mod ui;
pub(crate) mod unclaimed;
