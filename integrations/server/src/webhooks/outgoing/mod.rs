//! Outgoing webhooks: notices about runs, sent to endpoints at least once.
//!
//! ```text
//! logs ─▶ scan ─▶ delivery entry, due entry ─▶ send ─▶ delivered
//!           │                    ▲               │
//!         cursor                 └── retry ──────┤
//!                                                └▶ failed, after ten attempts
//! ```
//!
//! Of all servers of a store one sends ([`leader`]); another one takes over when its lease lapses. The sender reads the
//! logs of runs that have grown and writes an entry for each notice and endpoint *before* it moves its cursor. The key of the
//! entry follows from the event, so a notice that is found twice is one delivery. A delivery is marked as delivered after
//! the receiver has answered: a crash between the two sends it again, under the same `webhook-id`.
//!
//! | entry | key | content |
//! |---|---|---|
//! | `webhook` | id of the endpoint | [`Endpoint`] |
//! | `delivery` | endpoint `/` id of the delivery, in the order of events | [`Delivery`] |
//! | `delivery_due` | endpoint `/` time `/` id of the delivery | nothing: the index of the open deliveries by due time |
//! | `webhook_sender` | `lease`, `cursor` | the server that sends; the time up to which the logs are read |

mod delivery;
mod endpoint;
mod event;
mod leader;
mod records;
mod retries;
mod scan;
mod send;
mod sender;
mod subscriptions;
mod transport;

pub(crate) use delivery::{Delivery, DeliveryStatus};
pub use endpoint::RunSubscription;
pub(crate) use endpoint::{Disabled, Endpoint, StoredSubscription, parse_url};
pub use event::WebhookEvent;
pub(crate) use records::Records;
pub use sender::{WebhookSender, WebhookService};
pub use transport::{HttpTransport, OutgoingRequest, OutgoingResponse, TransportError, WebhookTransport};

#[cfg(test)]
mod tests;
