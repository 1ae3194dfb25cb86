//! The resources of the API, one per file or folder. Each file lists its routes for the table.

mod brain_options;
mod brains;
mod conversations;
mod idempotency;
mod live;
mod meta;
mod metrics;
mod overview;
mod pending;
mod run_item;
mod runs;
mod schedules;
mod session;
mod sums;
mod webhooks;

pub use conversations::attachments::MessageFile;
pub(crate) use conversations::messages::{MessageRequest, SentMessage, send_once};
pub(crate) use idempotency::Key;
pub use pending::decision::Decision;
pub(crate) use pending::decisions::decide;
pub(crate) use pending::pending_item::{arguments_schema, question_id};
pub(crate) use runs::can_continue::checked_code;
pub(crate) use runs::list::user_of;
pub(crate) use runs::signals::code_differs;
pub(crate) use runs::start_rules::{conversation, given_options, of_conversation, of_start, user_for};

use crate::routes::Route;

pub(crate) fn routes() -> Vec<Route> {
    [
        brains::routes(),
        runs::list::routes(),
        overview::routes(),
        runs::start::routes(),
        runs::run::routes(),
        runs::events::routes(),
        runs::timeline::routes(),
        runs::state::routes(),
        runs::requests::routes(),
        runs::playground::routes(),
        runs::files::routes(),
        runs::signals::routes(),
        runs::fork_preview::routes(),
        runs::fork::routes(),
        runs::retry::routes(),
        runs::diff::routes(),
        pending::list::routes(),
        pending::item_context::routes(),
        pending::decisions::routes(),
        pending::history::routes(),
        conversations::list::routes(),
        conversations::messages::routes(),
        live::routes(),
        schedules::schedule::routes(),
        schedules::preview::routes(),
        session::routes(),
        webhooks::inbound::routes(),
        webhooks::endpoints::routes(),
        webhooks::deliveries::routes(),
        meta::routes(),
        metrics::routes(),
    ]
    .concat()
}
