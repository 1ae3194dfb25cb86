//! The end of a server's open streams.

use std::sync::Arc;

use tokio::sync::watch;

/// Ends the open streams of a router when its server shuts down. Clones share it.
#[derive(Debug, Clone)]
pub struct Shutdown(Arc<watch::Sender<bool>>);

impl Default for Shutdown {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl Shutdown {
    /// Ends the open streams, and those that begin later.
    pub fn begin(&self) {
        self.0.send_replace(true);
    }

    /// Returns whether the shutdown has begun.
    pub(crate) fn has_begun(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits for [`Shutdown::begin`].
    pub async fn begun(&self) {
        // The sender lives as long as `self`.
        _ = self.0.subscribe().wait_for(|begun| *begun).await;
    }
}
