//! The resources of the API, one per file. Each file lists its routes for the table.

mod brains;
mod events;
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
    ]
    .concat()
}
