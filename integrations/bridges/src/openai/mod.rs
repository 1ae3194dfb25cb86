//! A facade in the form of OpenAI's API, for clients that speak nothing else: `/api/v1/openai/v1`. The name of a model is the title of a
//! brain.
//!
//! ```text
//! GET  /models                ──▶ the brains that the caller may start
//! POST /chat/completions      ──▶ the newest user's message goes to a conversation; the answer is what the run says until it settles
//! POST /responses             ──▶ the same, as items; `previous_response_id` names the conversation, `background` does not wait
//! GET  /responses/{response}  ──▶ the answer as it is now
//! ```
//!
//! A caller gives tools of its own to a brain whose loop takes them: their calls end an answer, and the next request brings the results.
//!
//! A run answers with the texts of its own loops, and with its result if it has said nothing. What waits for a person ends the answer
//! with a refusal that says where it is decided. Of the history that clients send only a hash is used, to find the conversation.

mod caller_tools;
mod chat;
mod error;
mod history;
mod input;
mod models;
mod newest;
mod response;
mod responses;
mod responses_stream;
mod speech;
mod turn;

use std::sync::Arc;

use positronic_server::extension::Route;

use crate::shared::Shared;

pub(crate) fn routes(shared: &Arc<Shared>) -> Vec<Route> {
    let routes = [models::routes(), chat::routes(shared), responses::routes(shared)];
    routes.into_iter().flatten().map(error::with_errors).collect()
}
