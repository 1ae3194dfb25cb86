//! The traits of a store, to call their methods on one: `use positronic_core::store::prelude::*`.
//!
//! A `dyn EventStore` and a generic `S: EventStore` have the methods without it.

pub use super::{
    BlobStore as _, EntryStore as _, EventLog as _, EventStore as _, LeaseStore as _, MailboxStore as _, RunIndex as _,
    SinkStore as _, TimerStore as _,
};
