//! Webhooks: signed requests that come in and answer waiting runs, and signed notices that go out.
//!
//! [`Hooks`] lists the senders whose requests are accepted; [`Hook`] and [`SignatureScheme`] say how they sign.
//! [`WebhookSender`] sends notices about runs to the endpoints in the store.

mod inbound;
pub(crate) mod outgoing;
mod signature;

pub use axum::http::HeaderName;
pub use inbound::{Hook, HookAcceptance, HookError, HookOutcome, Hooks};
pub(crate) use outgoing::{Delivery, DeliveryStatus, Disabled, Endpoint, Records, StoredSubscription, parse_url};
pub use outgoing::{
    HttpTransport, OutgoingRequest, OutgoingResponse, TransportError, WebhookEvent, WebhookSender, WebhookService,
    WebhookTransport,
};
pub use positronic_net::{HostResolver, PrivateAddresses, SystemResolver};
pub use signature::{
    GitHub, HookAnswer, PayloadError, SecretError, SignatureError, SignatureScheme, SignedRequest, Slack,
    StandardWebhooks, TOLERANCE, Unsigned, WebhookSecret,
};
