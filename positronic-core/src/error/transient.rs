//! Recognition of transient errors, after which another try may succeed.

use std::any::Any;
use std::error::Error as StdError;
use std::io;

/// Messages of errors that are recognised by their text, since their crates are no dependencies or come in several versions: each
/// with the crate that writes it.
const MESSAGES: &[&str] = &[
    // reqwest, where its own time-out ends a request
    "operation timed out",
    // hyper-util, under reqwest, where name resolution, the TCP connection or the TLS handshake fails
    "client error (Connect)",
    // tokio's `Elapsed`
    "deadline has elapsed",
    // hyper, where a server closes a connection that was kept alive
    "connection closed before message completed",
    // sqlx, where all connections are taken
    "pool timed out while waiting for an open connection",
    // SQLite, under rusqlite and sqlx
    "database is locked",
    "database table is locked",
];

/// Says whether an error, or one in its chain of sources, is transient.
pub(super) fn is_transient(error: &(dyn StdError + 'static)) -> bool {
    std::iter::successors(Some(error), |&error| error.source()).any(is_transient_link)
}

/// Looks into an `anyhow::Error`, whose own type hides what it wraps.
#[cfg(feature = "anyhow")]
pub(super) fn is_wrapped(error: &dyn Any) -> bool {
    error.downcast_ref::<anyhow::Error>().is_some_and(|error| error.chain().any(is_transient_link))
}

#[cfg(not(feature = "anyhow"))]
pub(super) const fn is_wrapped(_: &dyn Any) -> bool {
    false
}

fn is_transient_link(error: &(dyn StdError + 'static)) -> bool {
    if let Some(error) = error.downcast_ref::<io::Error>() {
        // The sources of an `io::Error` leave out the error that it wraps itself.
        let inner = error.get_ref().map(|inner| -> &(dyn StdError + 'static) { inner });
        return is_transient_kind(error.kind()) || inner.is_some_and(is_transient);
    }
    let message = error.to_string();
    MESSAGES.iter().any(|known| message.ends_with(known))
}

/// Time-outs, and connections that could not be made or were lost.
const fn is_transient_kind(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{
        BrokenPipe, ConnectionAborted, ConnectionRefused, ConnectionReset, HostUnreachable, Interrupted, NetworkDown,
        NetworkUnreachable, NotConnected, ResourceBusy, TimedOut, WouldBlock,
    };
    matches!(
        kind,
        TimedOut
            | ConnectionRefused
            | ConnectionReset
            | ConnectionAborted
            | NotConnected
            | BrokenPipe
            | HostUnreachable
            | NetworkUnreachable
            | NetworkDown
            | ResourceBusy
            | Interrupted
            | WouldBlock
    )
}
