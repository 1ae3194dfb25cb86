//! What the routes of all protocols share.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use positronic_core::record::{RunId, RunSummary, Seq};
use positronic_server::Problem;
use positronic_server::extension::RequestContext;

use crate::caller_result::CallerResult;
use crate::leg::Leg;
use crate::projection::PublicState;

/// The media type of the refusals of a protocol whose clients show the body as the message of an error.
pub(crate) const TEXT: &str = "text/plain; charset=utf-8";

/// The maximum bytes of a body: clients post all messages of a thread each time, or files with a message.
pub(crate) const MAX_BODY: usize = 8 << 20;

/// What the routes of all protocols share.
pub(crate) struct Shared {
    pub(crate) public_state: Option<PublicState>,
    pub(crate) push_notifications: bool,
    /// The program in commands that clients are shown.
    pub(crate) program: Arc<str>,
    pub(crate) hold: Duration,
}

impl Shared {
    /// Returns which result of a brain callers get.
    pub(crate) fn caller_result(&self, cx: &RequestContext, brain: &str) -> Result<CallerResult, Problem> {
        let brains = cx.brains()?;
        let definition = brains.iter().find(|known| known.title == brain);
        Ok(CallerResult::of(brain, definition.map(|known| &**known), self.public_state.as_ref()))
    }

    /// Returns a leg that attaches to a run as it is now.
    pub(crate) fn attach(&self, row: &RunSummary) -> Leg {
        self.from(row.run.clone(), row.next)
    }

    /// Returns a leg that sends the events of a run from one on.
    pub(crate) fn from(&self, run: RunId, start: Seq) -> Leg {
        Leg { run, start, seen: BTreeSet::new(), hold: self.hold, answers_calls: false }
    }
}
