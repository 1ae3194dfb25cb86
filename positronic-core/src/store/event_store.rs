//! The whole of a store, as the engine takes it.

use super::{BlobStore, EntryStore, EventLog, LeaseStore, MailboxStore, RunIndex, SinkStore, TimerStore};

/// Persists the logs of runs, and the lists derived from them: the sum of eight traits, each with one subject.
///
/// A store implements the eight; a store that wraps another one implements [`StoreWrapper`](super::StoreWrapper) instead. The
/// crate `positronic-store-suite` tests what every store must do.
///
/// Every method can fail with [`StoreError::Failed`](super::StoreError::Failed) or
/// [`StoreError::Unusable`](super::StoreError::Unusable) when the store itself fails; nothing is written then, except by
/// [`EventLog::remove`]. A method that writes can fail with [`StoreError::Unknown`](super::StoreError::Unknown). A method
/// documents its other errors.
///
/// A call on a type that is not generic needs the trait of the method: `use positronic_core::store::prelude::*`.
pub trait EventStore:
    EventLog + RunIndex + LeaseStore + MailboxStore + TimerStore + BlobStore + EntryStore + SinkStore
{
}

impl<S> EventStore for S where
    S: EventLog + RunIndex + LeaseStore + MailboxStore + TimerStore + BlobStore + EntryStore + SinkStore
{
}
