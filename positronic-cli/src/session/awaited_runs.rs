//! Runs for whose ends a run waits.

use positronic_core::record::{Pending, RunId, RunSummary, Status};
use positronic_core::runner::Runner;
use positronic_core::store::{PendingFilter, PendingItem, StoreError};

use super::question_text;

/// The runs for whose ends a run waits, as its session shows them.
pub(super) struct AwaitedRuns {
    /// The command that shows a run.
    show: String,
    /// The run of the last line.
    shown: Option<RunId>,
}

impl AwaitedRuns {
    pub(super) const fn new(show: String) -> Self {
        Self { show, shown: None }
    }

    /// Returns whether a run waits, and only for the ends of other runs.
    pub(super) fn are_all_of(pending: &[Pending]) -> bool {
        !pending.is_empty() && pending.iter().all(|pending| pending.kind.is_for_run())
    }

    /// Returns what the runs need that these items wait for, and those that they wait for; `None` if one of the runs continues by
    /// itself. A paused run needs nothing that is listed.
    pub(super) async fn needs(&self, runner: &Runner, of: &[Pending]) -> Result<Option<Needs>, StoreError> {
        let client = runner.client();
        let (mut open, mut needs) = (awaited(of), Needs::default());
        while let Some(run) = open.pop() {
            let items = client.store().pending(&PendingFilter::builder().run(run.clone()).build()).await?;
            let row = client.store().run(&run).await?;
            match row.status {
                Status::Paused => continue,
                Status::Waiting if !items.is_empty() => {}
                // One that only sleeps has no items.
                Status::Running | Status::Waiting if !has_worker(runner, &row).await? => needs.workers.push(row),
                _ => return Ok(None),
            }
            for item in items {
                match item.pending.kind.is_for_run() {
                    true => open.extend(awaited(std::slice::from_ref(&item.pending))),
                    false => needs.answers.push(item),
                }
            }
        }
        Ok(Some(needs))
    }

    /// Says what the first of the runs needs, once for each run.
    pub(super) fn line(&mut self, needs: &Needs) -> Option<String> {
        let (run, line) = match (needs.workers.first(), needs.answers.first()) {
            (Some(RunSummary { run, brain, .. }), _) => {
                let lacks = format!("this project lacks its brain `{brain}`, and no worker has it");
                (run, format!("the run {run} is not continued: {lacks}; add the brain with `Project::brain`"))
            }
            (None, Some(PendingItem { run, pending, .. })) => {
                let question = question_text(pending, None);
                (run, format!("the run {run} {question}; to answer: {show} {run}", show = self.show))
            }
            (None, None) => return None,
        };
        if self.shown.as_ref() == Some(run) {
            return None;
        }
        self.shown = Some(run.clone());
        Some(line)
    }
}

/// What awaited runs need, so that they continue.
#[derive(Debug, Default)]
pub(super) struct Needs {
    /// The pending items that others answer.
    answers: Vec<PendingItem>,
    /// The runs without a worker that knows their brain.
    pub(super) workers: Vec<RunSummary>,
}

/// Returns whether this process, or the live one that had a run before, continues it.
async fn has_worker(runner: &Runner, row: &RunSummary) -> Result<bool, StoreError> {
    if runner.definitions().any(|brain| *brain.title == *row.brain) {
        return Ok(true);
    }
    match &row.claim {
        Some(claim) => runner.client().store().is_lease_live(&claim.owner).await,
        None => Ok(false),
    }
}

fn awaited(pending: &[Pending]) -> Vec<RunId> {
    let waits = pending.iter().filter(|pending| pending.kind.is_for_run()).flat_map(|pending| pending.kind.waits());
    waits.map(|wait| RunId::new(wait.identifier.as_str())).collect()
}
