//! Runs for whose ends a run waits.

use positronic_core::record::{Pending, RunId, Status};
use positronic_core::runner::Client;
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

    /// Lists the pending items of the runs that these items wait for, and of those that they wait for; `None` if one of the runs
    /// continues by itself. A paused run has none.
    pub(super) async fn items(&self, client: &Client, of: &[Pending]) -> Result<Option<Vec<PendingItem>>, StoreError> {
        let (mut open, mut found) = (awaited(of), Vec::new());
        while let Some(run) = open.pop() {
            let items = client.store().pending(&PendingFilter::builder().run(run.clone()).build()).await?;
            match client.store().run(&run).await?.status {
                Status::Paused => continue,
                Status::Waiting if !items.is_empty() => {}
                // One that only sleeps has no items.
                _ => return Ok(None),
            }
            for item in items {
                match item.pending.kind.is_for_run() {
                    true => open.extend(awaited(std::slice::from_ref(&item.pending))),
                    false => found.push(item),
                }
            }
        }
        Ok(Some(found))
    }

    /// Says where to answer the first item, once for each run.
    pub(super) fn line(&mut self, items: &[PendingItem]) -> Option<String> {
        let first = items.first().filter(|item| self.shown.as_ref() != Some(&item.run))?;
        self.shown = Some(first.run.clone());
        let question = question_text(&first.pending, None);
        Some(format!("the run {run} {question}; to answer: {show} {run}", run = first.run, show = self.show))
    }
}

fn awaited(pending: &[Pending]) -> Vec<RunId> {
    let waits = pending.iter().filter(|pending| pending.kind.is_for_run()).flat_map(|pending| pending.kind.waits());
    waits.map(|wait| RunId::new(wait.identifier.as_str())).collect()
}
