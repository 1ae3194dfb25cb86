//! The resources of the API, one per file. Each file lists its routes for the table.

mod brains;
mod deliveries;
mod events;
mod hooks;
mod items;
mod pending;
mod pending_items;
mod requests;
mod run;
mod runs;
mod session;
mod start;
mod state;
mod timeline;
mod webhooks;

pub(crate) use pending_items::question_id;

use crate::routes::Route;

pub(crate) fn routes() -> Vec<Route> {
    [
        brains::routes(),
        runs::routes(),
        run::routes(),
        events::routes(),
        timeline::routes(),
        state::routes(),
        requests::routes(),
        pending::routes(),
        session::routes(),
        start::routes(),
        hooks::routes(),
        webhooks::routes(),
        deliveries::routes(),
    ]
    .concat()
}
