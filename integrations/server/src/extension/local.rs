//! A caller of this process, for a command that serves runs without HTTP.

use std::fmt;
use std::sync::Arc;

use axum::body::Bytes;
use axum::http::Request;
use positronic_core::runner::Client;
use serde_json::Value;

use crate::app::App;
use crate::auth::Caller;
use crate::options_builder::Options;
use crate::routes::{Channel, RequestContext};

/// A caller that reaches the runs of a store without HTTP, such as the user of a command. The checks of its scopes, of ownership and
/// of deciders are those of the router with the same options.
#[derive(Clone)]
pub struct LocalCaller {
    app: Arc<App>,
    caller: Caller,
    channel: &'static str,
}

impl LocalCaller {
    /// Creates the caller of a store's runs. `channel` is how it reaches them, as the log names it.
    #[must_use]
    pub fn new(client: Client, options: Options, caller: Caller, channel: &'static str) -> Self {
        Self { app: Arc::new(App::new(client, options.settings)), caller, channel }
    }

    /// Returns the context of one of its requests.
    #[must_use]
    pub fn context(&self) -> RequestContext {
        let (mut parts, ()) = Request::new(()).into_parts();
        parts.extensions.insert(Channel(self.channel));
        RequestContext {
            app: Arc::clone(&self.app),
            reporter: self.app.reporter(&parts),
            parts,
            params: Vec::new(),
            body: Bytes::new(),
            value: Value::Null,
            accepted: None,
            caller: Some(self.caller.clone()),
            run: None,
            place: None,
        }
    }
}

impl fmt::Debug for LocalCaller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalCaller").field("caller", &self.caller).finish_non_exhaustive()
    }
}
