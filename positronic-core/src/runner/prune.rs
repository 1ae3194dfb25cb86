//! Runs that nobody needs any more: which they are, and how they go.

use super::control::Control;
use crate::record::{RunId, RunSummary, Status};
use crate::store::{RunFilter, StoreError};

impl Control {
    /// Removes those of these runs that are over and that no run that stays needs: a run whose prompts are the history of
    /// another one stays with it. Files to which no run refers any more go as well. Answers with the runs that were removed.
    ///
    /// # Errors
    ///
    /// [`StoreError`] as the store fails; what was removed by then stays removed.
    pub async fn prune(&self, runs: &[RunSummary]) -> Result<Vec<RunId>, StoreError> {
        let removable = self.removable(runs).await?;
        self.store().remove(&removable).await?;
        self.sweep().await?;
        Ok(removable)
    }

    /// Says which of these runs [`Control::prune`] would remove.
    ///
    /// # Errors
    ///
    /// [`StoreError`] as the store fails.
    pub async fn removable(&self, runs: &[RunSummary]) -> Result<Vec<RunId>, StoreError> {
        let over = |status: Status| status.is_over();
        let mut removable: indexmap::IndexSet<RunId> =
            runs.iter().filter(|row| over(row.status)).map(|row| row.run.clone()).collect();
        if runs.iter().any(|row| row.conversation.is_some()) {
            let all = self.store().runs(&RunFilter::builder().conversations(true).build()).await?;
            // The last one first, so one pass finds whatever a run that stays has before it.
            for row in all.iter().filter(|row| row.after.is_some()) {
                if !removable.contains(&row.run)
                    && let Some(before) = &row.after
                {
                    removable.shift_remove(before);
                }
            }
        }
        Ok(removable.into_iter().collect())
    }
}
