//! Detection of runs that cannot continue here, since the code of their brain has changed.

use std::collections::HashMap;

use positronic_core::record::{RunId, RunSummary};
use positronic_core::runner::CodeCheck;
use positronic_core::store::StoreError;

use crate::app::{Models, Project, ProjectStore};
use crate::render::Differences;

/// Compares the project's code with what a run needs; without a project, nothing is known to differ.
pub(crate) async fn code_check(
    project: Option<&Project>,
    store: &ProjectStore,
    run: &RunId,
) -> Result<CodeCheck, StoreError> {
    match project {
        Some(project) => Models::none().runner(project, store).check_code(run).await,
        None => Ok(CodeCheck::default()),
    }
}

/// Compares the code of unfinished runs with the project's code; an error explains an unreadable log. Only a
/// project's own binary can do this: the `positronic` command does not build the project for it.
pub(crate) async fn changed_runs(
    project: Option<&Project>,
    store: &ProjectStore,
    rows: impl Iterator<Item = &RunSummary>,
) -> Differences {
    let mut changed = HashMap::new();
    let Some(project) = project else { return changed };
    let runner = Models::none().runner(project, store);
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
