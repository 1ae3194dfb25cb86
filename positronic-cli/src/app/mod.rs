//! What a command opens and configures: the project, its store, its models and their prices, the streams, and errors as
//! prose.

pub(crate) mod cargo;
mod files;
mod find_brain;
mod io;
mod live_text;
mod models;
#[cfg(feature = "serve")]
mod page;
mod project;
mod run_options;
mod runtime;
mod settings;
mod store;
pub(crate) mod template;
#[cfg(feature = "serve")]
mod webhooks;

pub(crate) use files::{
    Folder, attachment, attachments, flag_json, flag_text, message, numbered_name, output_path, replace_file,
    safe_file_name, store_attachments, write_file,
};
pub(crate) use io::{BufferedLog, Failure, Log, LogSettings, MAX_COLUMNS, Output, PROGRAM, Streams, Ui, Unread, size};
pub(crate) use live_text::{LiveReader, LiveText};
pub(crate) use models::{
    Advised, ByTier, CassetteFollower, CassetteSession, ChosenCassette, ModelSettings, Models, NO_ANSWER_LEFT, NoModel,
    PRICE_TABLE, REPLY, RunCassette, SET_MODEL, answers_for, can_continue_after, check_enforceable, choose_models,
    chosen_cassette, currency, given_prices, has_answers_left, high_model, model_name, models_for_run, normal_model,
    price_table, provided_model, recording, rewind, save_recording, secrets, short_secret_warning, write_recording,
};
#[cfg(feature = "serve")]
pub(crate) use page::{cannot_listen, sign_in_url};
pub use project::Project;
pub(crate) use project::{ProjectBrain, normal_title, usage_panic};
pub(crate) use run_options::{Prepared, check_accepts_messages, open_store, parse_options, prepare};
pub(crate) use runtime::block_on;
pub(crate) use settings::Settings;
pub(crate) use store::{
    Found, ProjectStore, Recorded, changed_runs, code_check, continued_conversation, current_folder, find_conversation,
    find_run, format_of, lookup_run, new_id, open_run, parse_call, project_folder, relative, runs_without_worker,
    without_password, write_conversation,
};
#[cfg(feature = "serve")]
pub(crate) use webhooks::read_webhooks;
