//! Who may start runs of a brain.

use super::caller::Caller;
use crate::problem::{Problem, ProblemType};
use crate::settings::RouterSettings;

/// Refuses a caller that may not start runs of a brain: by its token or session, or by the settings.
pub(crate) fn may_start(settings: &RouterSettings, caller: &Caller, brain: &str) -> Result<(), Problem> {
    if caller.starts(brain) && (settings.may_start)(caller, brain) {
        return Ok(());
    }
    Err(Problem::new(ProblemType::NotAllowed).detail(format!("the caller may not start runs of `{brain}`")))
}
