//! The notifications of a server: its list of tools has changed, a call progresses.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rmcp::model::{ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam, ProgressToken};
use rmcp::service::NotificationContext;
use rmcp::{ClientHandler, RoleClient};

use super::names::printable;

/// The maximum shown characters of a progress message.
const SHOWN: usize = 200;

/// Receives the progress of a call.
pub(super) type OnProgress = Box<dyn Fn(String) + Send + Sync>;

/// Receives the server's notifications.
#[derive(Clone, Default)]
pub(super) struct NotificationListener(pub(super) Arc<Notifications>);

/// What the server has notified.
#[derive(Default)]
pub(super) struct Notifications {
    /// Whether the list of tools has changed.
    pub(super) changed: AtomicBool,
    /// The readers of the progress of calls.
    pub(super) progress: Mutex<HashMap<ProgressToken, OnProgress>>,
}

impl ClientHandler for NotificationListener {
    fn get_info(&self) -> ClientConfig {
        // No capabilities: a server cannot ask our model, nor our users, nor look into our folders.
        ClientConfig::new(ClientCapabilities::default(), Implementation::new("positronic", env!("CARGO_PKG_VERSION")))
    }

    async fn on_progress(&self, reported: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        if let Some(listener) = self.0.progress.lock().get(&reported.progress_token) {
            listener(progress(&reported));
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.changed.store(true, Ordering::SeqCst);
    }
}

fn progress(reported: &ProgressNotificationParam) -> String {
    let share = match reported.total {
        Some(total) => format!("{} of {total}", reported.progress),
        None => reported.progress.to_string(),
    };
    match &reported.message {
        Some(message) => printable(message, SHOWN),
        None => share,
    }
}
