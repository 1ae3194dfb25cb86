//! The models of a run: providers, cassettes, the project's own, and their prices.

mod by_tier;
mod cassette_position;
mod choose;
mod endpoint;
mod money_limit;
mod no_model;
mod prices;
mod run_cassette;
mod run_to_cassette;

pub(crate) use by_tier::ByTier;
pub(crate) use cassette_position::{
    CassetteFollower, NO_ANSWER_LEFT, REPLY, answers_for, can_continue_after, has_answers_left, rewind,
};
pub(crate) use choose::{
    CassetteSession, ChosenCassette, ModelSettings, Models, choose_models, chosen_cassette, high_model, models_for_run,
    normal_model,
};
pub(crate) use endpoint::{Advised, SET_MODEL, model_name, provided_model, secrets, short_secret_warning};
pub(crate) use money_limit::check_enforceable;
pub(crate) use no_model::NoModel;
pub(crate) use prices::{PRICE_TABLE, currency, given_prices, price_table};
pub(crate) use run_cassette::RunCassette;
pub(crate) use run_to_cassette::{recording, save_recording, write_recording};
