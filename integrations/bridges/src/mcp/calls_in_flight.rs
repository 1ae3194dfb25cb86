//! The calls in flight on the server of one session: who calls, and which runs they have.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::http::request::Parts;
use parking_lot::Mutex;
use positronic_core::record::RunId;
use positronic_server::Problem;
use positronic_server::extension::{LocalCaller, RequestContext as CallerContext};
use rmcp::ErrorData;
use rmcp::model::{Extensions, RequestId};

use crate::caller_result::CallerResult;
use crate::shared::Shared;

/// Who calls.
#[derive(Debug, Clone)]
pub(super) enum Callers {
    /// The caller of the HTTP request that brought a message.
    OfRequest,
    Local(LocalCaller),
}

/// The server of one session, or of one request in a protocol without sessions. Clones share it.
#[derive(Clone)]
pub(super) struct ToolServer {
    callers: Callers,
    pub(super) shared: Arc<Shared>,
    /// How long a call waits for its run.
    pub(super) longest_call: Duration,
    /// The runs of the calls in flight.
    calls: Arc<Mutex<HashMap<RequestId, RunId>>>,
}

impl fmt::Debug for ToolServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolServer").field("callers", &self.callers).finish_non_exhaustive()
    }
}

impl ToolServer {
    pub(super) fn new(callers: Callers, shared: Arc<Shared>, longest_call: Duration) -> Self {
        Self { callers, shared, longest_call, calls: Arc::default() }
    }

    /// Returns the caller of a message.
    pub(super) fn caller(&self, extensions: &Extensions) -> Result<Arc<CallerContext>, ErrorData> {
        match &self.callers {
            Callers::Local(local) => Ok(Arc::new(local.context())),
            Callers::OfRequest => {
                let parts = extensions.get::<Parts>();
                let found = parts.and_then(|parts| parts.extensions.get::<Arc<CallerContext>>()).cloned();
                found.ok_or_else(|| ErrorData::internal_error("the message has no request", None))
            }
        }
    }

    /// Remembers the run of a call, so that the client can cancel it.
    pub(super) fn began(&self, call: &RequestId, run: &RunId) {
        self.calls.lock().insert(call.clone(), run.clone());
    }

    /// Forgets a call that has its answer, and returns its run.
    pub(super) fn ended(&self, call: &RequestId) -> Option<RunId> {
        self.calls.lock().remove(call)
    }

    /// Returns which result of a brain callers get.
    pub(super) fn rule(&self, caller: &CallerContext, brain: &str) -> Result<CallerResult, Problem> {
        let rule = self.shared.caller_result(caller, brain)?;
        // Over the standard streams there is no address.
        Ok(rule.linked(matches!(self.callers, Callers::OfRequest).then(|| caller.address())))
    }
}
