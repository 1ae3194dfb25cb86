//! Conversations as a store has them: lists, prompts and messages, read without a brain's code.

use serde::Serialize;

use super::client::Client;
use super::load;
use crate::projection::{History, Prompts};
use crate::record::{Prompt, RunId, RunSummary, Seq};
use crate::store::{RunFilter, StoreError};

/// One conversation as a list shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ConversationSummary {
    /// Its id.
    pub id: String,
    /// How many runs it has.
    pub runs: usize,
    /// Its last run.
    pub last: RunSummary,
}

impl Client {
    /// Lists the conversations, the one that was spoken in last first.
    ///
    /// # Errors
    ///
    /// [`StoreError`] as the store fails.
    pub async fn conversations(&self) -> Result<Vec<ConversationSummary>, StoreError> {
        let rows = self.store().runs(&RunFilter::builder().conversations(true).build()).await?;
        let mut all: indexmap::IndexMap<String, ConversationSummary> = indexmap::IndexMap::new();
        for row in rows {
            let Some(id) = row.conversation.clone() else { continue };
            let known = all.entry(id.clone()).or_insert_with(|| ConversationSummary { id, runs: 0, last: row });
            known.runs += 1;
        }
        let mut all: Vec<_> = all.into_values().collect();
        all.sort_by_key(|conversation| std::cmp::Reverse(conversation.last.at));
        Ok(all)
    }

    /// Lists the runs of a conversation, the last one first.
    ///
    /// # Errors
    ///
    /// [`StoreError`] as the store fails.
    pub async fn conversation(&self, id: &str) -> Result<Vec<RunSummary>, StoreError> {
        self.store().runs(&RunFilter::builder().conversation(id).build()).await
    }

    /// Returns the prompts of a conversation in order: those of the loops of its runs' own brains.
    ///
    /// # Errors
    ///
    /// [`StoreError`] as the store fails.
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

    /// Returns what the loops of a run's brain have before their own messages: its conversation so far.
    ///
    /// # Errors
    ///
    /// [`StoreError`] as the store fails.
    pub async fn history(&self, run: &RunId) -> Result<History, StoreError> {
        match self.store().run(run).await?.after {
            Some(before) => load::history(self.store(), &before).await,
            None => Ok(History::default()),
        }
    }
}
