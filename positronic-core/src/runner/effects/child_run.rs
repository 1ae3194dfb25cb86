//! Starts of child runs: first the intent in the log of the parent, then the run. Its id follows from the parent, the step or call and
//! the name, so that a rerun finds it.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::report::{Report, Reports};
use crate::definition::NewChild;
use crate::error::{Error, Result};
use crate::record::{ChildRun, ParentRun, Path, RunId, SignalId, Start, sha256};
use crate::runner::worker::shared::Shared;

/// Starts a child run, or finds the one that an earlier try has started.
pub(super) async fn start_child(shared: &Arc<Shared>, reports: &Reports, path: Path, child: NewChild) -> Result<RunId> {
    let NewChild { name, definition, options, link, budget } = child;
    let gone = || Error::new("the run's worker has stopped, so it starts no child run");
    let run = id(&shared.run, &path, &name);
    let (reply, recorded) = oneshot::channel();
    let child = ChildRun { name: name.clone(), run: run.clone(), title: definition.title.clone(), link };
    reports.send(Box::new(Report::Child { path: path.clone(), child, reply })).map_err(|_| gone())?;
    recorded.await.map_err(|_| gone())??;
    let parent = ParentRun { run: shared.run.clone(), path, link };
    let begun = shared.state().start.clone();
    let start = Start {
        id: Some(SignalId::new(run.as_str())),
        user: begun.user,
        actor: begun.actor,
        parent: Some(Box::new(parent)),
        budget,
        ..Start::default()
    };
    let started = (shared.start_run)(shared.runner.clone(), definition, options, start).await;
    started.map_err(|reason| Error::new(format!("cannot start the child run `{name}`: {reason}")))?;
    Ok(run)
}

/// Returns the id of a child run.
fn id(parent: &RunId, path: &Path, name: &str) -> RunId {
    let from = [parent.as_str(), path.as_str(), name].join("\n");
    RunId::from(format!("child-{}", sha256(from.as_bytes()).get(..32).unwrap_or_default()))
}
