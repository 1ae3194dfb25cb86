//! Runs that cannot continue here, since the code of their brain has changed.

use std::collections::HashMap;

use positronic_core::record::{RunId, RunSummary};
use positronic_core::store::StoreError;

use crate::kept::Kept;
use crate::models::Models;
use crate::project::Project;

/// Code differences by run, or an error for an unreadable log.
pub(super) type Differences = HashMap<RunId, Result<String, StoreError>>;

/// Compares the code of unfinished runs with the project's code; an error explains an unreadable log. Only a
/// project's own binary can do this: the `positronic` command does not build the project for it.
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

/// Renders a change of a run's code.
pub(crate) fn said(difference: &str) -> String {
    format!("the code has changed since the start of the run: {difference}")
}
