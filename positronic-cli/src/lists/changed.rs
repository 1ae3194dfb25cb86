//! Which runs cannot go on here since the code of their brain is another one now.

use std::collections::HashMap;

use positronic_core::record::{RunId, RunSummary};
use positronic_core::store::StoreError;

use crate::kept::Kept;
use crate::models::Models;
use crate::project::Project;

/// Says of the runs that are not over how the project's code differs from what they began with. Only a project's own binary
/// knows: the framework's command does not build the project to look.
pub(crate) async fn changed(
    project: Option<&Project>,
    kept: &Kept,
    rows: impl Iterator<Item = &RunSummary>,
) -> Result<HashMap<RunId, String>, StoreError> {
    let mut changed = HashMap::new();
    let Some(project) = project else { return Ok(changed) };
    let runner = Models::none().runner(project, kept);
    for row in rows.filter(|row| !row.status.is_over()) {
        match runner.changed(&row.run).await {
            Ok(difference) => changed.extend(difference.map(|difference| (row.run.clone(), difference))),
            // Its row is shown all the same, and whoever looks closer is told.
            Err(StoreError::NoSuchRun { .. } | StoreError::Damaged { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(changed)
}

/// Says in a sentence that a run's code has changed.
pub(crate) fn said(difference: &str) -> String {
    format!("the code has changed since the run began: {difference}")
}
