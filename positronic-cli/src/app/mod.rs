//! What a command opens and configures: the project, its store, its models and their prices, the streams, and errors as
//! prose.

mod atomic_write;
mod attach;
mod by_tier;
pub(crate) mod cargo;
mod cassette_position;
mod changed;
mod conversation;
mod endpoint;
mod failure;
mod file_names;
mod find;
mod json;
mod log;
mod models;
mod money_limit;
mod no_model;
mod output;
mod output_file;
#[cfg(feature = "serve")]
mod page;
mod prices;
mod project;
mod project_dir;
mod recording;
mod run_options;
mod runtime;
mod saved_files;
mod settings;
mod store;
mod store_address;
mod table_file;
pub(crate) mod template;
mod ui;
mod unclaimed;
#[cfg(feature = "serve")]
mod webhooks;

pub(crate) use atomic_write::replace_file;
pub(crate) use attach::{attachment, attachments, message, store_attachments};
pub(crate) use by_tier::ByTier;
pub(crate) use cassette_position::{CassetteFollower, NO_ANSWER_LEFT, REPLY, answers_for, has_answers_left, rewind};
pub(crate) use changed::{changed_runs, code_check};
pub(crate) use conversation::{Recorded, format_of, write_conversation};
pub(crate) use endpoint::{Advised, SET_MODEL, model_name, provided_model, secrets, short_secret_warning};
pub(crate) use failure::Failure;
pub(crate) use file_names::{numbered_name, safe_file_name};
pub(crate) use find::{
    Found, continued_conversation, find_conversation, find_run, lookup_run, new_id, open_run, parse_call,
};
pub(crate) use json::{flag_json, flag_text};
pub(crate) use log::{HeldLog, Log, LogSettings};
pub(crate) use models::{
    CassetteSession, ChosenCassette, ModelSettings, Models, choose_models, chosen_cassette, high_model, models_for_run,
    normal_model,
};
pub(crate) use money_limit::check_enforceable;
pub(crate) use no_model::NoModel;
pub(crate) use output::{Output, Unread};
pub(crate) use output_file::{output_path, write_file};
#[cfg(feature = "serve")]
pub(crate) use page::{cannot_listen, sign_in_url};
pub(crate) use prices::{PRICE_TABLE, currency, given_prices, price_table};
pub use project::Project;
pub(crate) use project::{Entry, normal_title, usage_panic};
pub(crate) use project_dir::project_folder;
pub(crate) use recording::{recording, save_recording, write_recording};
pub(crate) use run_options::{Prepared, check_accepts_messages, open_store, parse_options, prepare};
pub(crate) use runtime::block_on;
pub(crate) use saved_files::Folder;
pub(crate) use settings::Settings;
pub(crate) use store::{ProjectStore, current_folder, relative};
pub(crate) use store_address::without_password;
pub(crate) use ui::{PROGRAM, Streams, Ui, size};
pub(crate) use unclaimed::unclaimed_runs;
#[cfg(feature = "serve")]
pub(crate) use webhooks::read_webhooks;
