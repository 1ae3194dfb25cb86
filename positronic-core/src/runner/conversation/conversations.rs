//! The conversations of a store: their lists, prompts and budgets, without a brain's code.

use serde::Serialize;

use super::budget::standing;
use crate::machine::RunState;
use crate::projection::Prompts;
use crate::record::{Budget, Prompt, RunId, RunSummary, Seq, SharedBudget};
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

/// The conversations of a store, from [`Client::conversations`]: their lists, prompts and costs, without a brain's code.
#[derive(Debug, Clone)]
pub struct Conversations {
    client: Client,
}

impl Conversations {
    pub(in crate::runner) const fn new(client: Client) -> Self {
        Self { client }
    }

    /// Lists the conversations, the most recent one first.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn list(&self) -> Result<Vec<ConversationSummary>, StoreError> {
        let mut all: indexmap::IndexMap<String, ConversationSummary> = indexmap::IndexMap::new();
        let mut pages = RunPages::new(self.client.store(), RunFilter::builder().conversations(true).build());
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
    pub async fn runs(&self, id: &str) -> Result<Vec<RunSummary>, StoreError> {
        RunPages::new(self.client.store(), RunFilter::builder().conversation(id).build()).all().await
    }

    /// Returns the prompts of a conversation in order: those of the loops that people talk to, as [`Prompts::spoken`](crate::projection::Prompts::spoken) lists them.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn prompts(&self, id: &str) -> Result<Vec<(RunId, Prompt)>, StoreError> {
        let mut prompts = Vec::new();
        for row in self.runs(id).await?.into_iter().rev() {
            let log = self.client.events(&row.run, Seq(0)).await?;
            let of_run = Prompts::default().in_run(&row.run).with(log.iter().map(|event| &**event));
            prompts.extend(of_run.spoken().map(|prompt| (row.run.clone(), prompt.clone())));
        }
        Ok(prompts)
    }

    /// Returns the budget of a conversation with its usage so far, including that of an open run; `None` without
    /// a budget. `instead` replaces the recorded budget, as [`Conversation::budget`](super::conversation::Conversation::budget) does.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn budget(&self, id: &str, instead: Option<&Budget>) -> Result<Option<SharedBudget>, StoreError> {
        let store = self.client.store();
        let filter = RunFilter::builder().conversation(id).limit(1).build();
        let last = match store.runs(&filter).await?.pop() {
            Some(last) => load::state(store, &last.run).await?,
            None => RunState::default(),
        };
        standing(store, id, &last, instead).await
    }
}
