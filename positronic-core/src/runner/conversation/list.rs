//! Lists of conversations, and their prompts and messages, without a brain's code.

use serde::Serialize;

use super::histories::Histories;
use crate::projection::{History, Prompts};
use crate::record::{Prompt, RunId, RunSummary, Seq};
use crate::runner::Client;
use crate::runner::worker::load;
use crate::store::{RunFilter, RunPages, StoreError};

/// A conversation in a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ConversationSummary {
    /// Its id.
    pub id: String,
    /// The number of its runs.
    pub runs: usize,
    /// Its last run.
    pub last: RunSummary,
}

impl Client {
    /// Lists the conversations, the most recent one first.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn conversations(&self) -> Result<Vec<ConversationSummary>, StoreError> {
        let mut all: indexmap::IndexMap<String, ConversationSummary> = indexmap::IndexMap::new();
        let mut pages = RunPages::new(self.store(), RunFilter::builder().conversations(true).build());
        while let Some(page) = pages.next().await? {
            for row in page {
                let Some(id) = row.conversation.clone() else { continue };
                let known = all.entry(id.clone()).or_insert_with(|| ConversationSummary { id, runs: 0, last: row });
                known.runs += 1;
            }
        }
        let mut all: Vec<_> = all.into_values().collect();
        all.sort_by_key(|conversation| std::cmp::Reverse(conversation.last.at));
        Ok(all)
    }

    /// Lists the runs of a conversation, the last one first.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn conversation(&self, id: &str) -> Result<Vec<RunSummary>, StoreError> {
        RunPages::new(self.store(), RunFilter::builder().conversation(id).build()).all().await
    }

    /// Returns the prompts of a conversation in order: those of the loops of its runs' own brains.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn prompts(&self, conversation: &str) -> Result<Vec<(RunId, Prompt)>, StoreError> {
        let mut prompts = Vec::new();
        for row in self.conversation(conversation).await?.into_iter().rev() {
            let log = self.events(&row.run, Seq(0)).await?;
            let of_run = Prompts::default().in_run(&row.run).with(log.iter().map(|event| &**event));
            let own = of_run.iter().filter(|prompt| prompt.path.parent().is_some_and(|owner| owner.is_root()));
            prompts.extend(own.map(|prompt| (row.run.clone(), prompt.clone())));
        }
        Ok(prompts)
    }

    /// Returns the messages that precede those of a run's own loops: its conversation so far.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn history(&self, run: &RunId) -> Result<History, StoreError> {
        match self.store().run(run).await?.after {
            Some(before) => load::history(self.store(), &before, &Histories::default()).await,
            None => Ok(History::default()),
        }
    }
}
