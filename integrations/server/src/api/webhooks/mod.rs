//! `/hooks` and `/webhooks`: inbound webhooks, endpoints of outgoing ones, and their deliveries.

pub(crate) mod deliveries;
pub(crate) mod endpoints;
pub(crate) mod inbound;
