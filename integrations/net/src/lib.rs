//! Guard against connections to internal networks (server-side request forgery).
//!
//! This crate is for code that sends requests to URLs of models, users or tenants: the toolbox and servers.
//!
//! A host name is resolved once: the connection uses the checked addresses and does not resolve the name again, which
//! defeats DNS rebinding.

mod address;
mod guard;

pub use address::PrivateAddresses;
pub use guard::{AddressGuard, HostResolver, NotPublic, SystemResolver};
