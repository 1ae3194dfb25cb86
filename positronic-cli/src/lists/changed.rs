//! Which runs cannot go on here since the code of their brain is another one now.

use std::collections::HashMap;

use positronic_core::record::{RunId, RunSummary};
use positronic_core::store::StoreError;

use crate::kept::Kept;
use crate::models::Models;
use crate::project::Project;

/// How the code of runs differs, by run; an error where a run's log cannot be read.
pub(super) type Differences = HashMap<RunId, Result<String, StoreError>>;

/// Says of the runs that are not over how the project's code differs from what they began with, or why their log cannot be
/// read. Only a project's own binary knows: the framework's command does not build the project to look.
pub(crate) async fn changed(
    project: Option<&Project>,
    kept: &Kept,
    rows: impl Iterator<Item = &RunSummary>,
) -> Differences {
    let mut changed = HashMap::new();
    let Some(project) = project else { return changed };
    let runner = Models::none().runner(project, kept);
    for row in rows.filter(|row| !row.status.is_over()) {
        match runner.changed(&row.run).await {
            Ok(difference) => changed.extend(difference.map(|difference| (row.run.clone(), Ok(difference)))),
            // It was removed meanwhile.
            Err(StoreError::NoSuchRun { .. }) => {}
            Err(error) => _ = changed.insert(row.run.clone(), Err(error)),
        }
    }
    changed
}

/// Says in a sentence that a run's code has changed.
pub(crate) fn said(difference: &str) -> String {
    format!("the code has changed since the run began: {difference}")
}
