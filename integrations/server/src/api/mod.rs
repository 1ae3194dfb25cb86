//! The resources of the API, one per file. Each file lists its routes for the table.

mod attachments;
mod brains;
mod conversations;
mod decisions;
mod deliveries;
mod diff;
mod events;
mod files;
mod fork;
mod fork_decisions;
mod hooks;
mod idempotency;
mod items;
mod live;
mod message_key;
mod meta;
mod metrics;
mod options;
mod pending;
mod pending_items;
mod questions;
mod requests;
mod retry;
mod run;
mod runs;
mod schedule_body;
mod schedule_preview;
mod schedules;
mod session;
mod signals;
mod start;
mod state;
mod timeline;
mod trigger_key;
mod wait;
mod webhooks;

pub(crate) use pending_items::question_id;
pub(crate) use run::KnownCheck;

use crate::routes::Route;

pub(crate) fn routes() -> Vec<Route> {
    [
        brains::routes(),
        runs::routes(),
        start::routes(),
        run::routes(),
        events::routes(),
        timeline::routes(),
        state::routes(),
        requests::routes(),
        files::routes(),
        signals::routes(),
        fork::routes(),
        retry::routes(),
        diff::routes(),
        pending::routes(),
        decisions::routes(),
        conversations::routes(),
        live::routes(),
        schedules::routes(),
        schedule_preview::routes(),
        session::routes(),
        hooks::routes(),
        webhooks::routes(),
        deliveries::routes(),
        meta::routes(),
        metrics::routes(),
    ]
    .concat()
}
