//! A stored conversation: the logs of its runs, its files and tools.

use std::sync::Arc;

use positronic_core::machine::RunState;
use positronic_core::projection::{FileOrigin, RunFile, files};
use positronic_core::record::Speaker;
use positronic_core::record::{
    Event, EventKind, FileRef, RunSummary, Seq, SharedBudget, Timestamp, ToolDecl, UserMessage,
};
use positronic_core::runner::Client;

use crate::app::Failure;
use crate::render::{Style, View, budget_usage, chat_text, is_own};

/// A stored conversation.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) id: String,
    /// Its runs with their logs, in order.
    pub(crate) runs: Vec<(RunSummary, Vec<Arc<Event>>)>,
    /// The budget of all its prompts, with its usage.
    pub(super) budget: Option<SharedBudget>,
}

impl Recorded {
    /// Reads a conversation; it is empty before its first message.
    pub(crate) async fn read(client: &Client, id: &str) -> Result<Self, Failure> {
        let mut runs = Vec::new();
        for row in client.conversations().runs(id).await?.into_iter().rev() {
            let log = client.events(&row.run, Seq(0)).await?;
            runs.push((row, log));
        }
        Ok(Self { id: id.to_owned(), runs, budget: client.conversations().budget(id, None).await? })
    }

    /// Renders the last `most` runs as a transcript; with `all`, also hidden prompts.
    pub(crate) fn text(&self, most: usize, style: &Style, all: bool, now: Timestamp) -> String {
        let older = self.runs.len().saturating_sub(most);
        self.runs.iter().skip(older).map(|(_, log)| chat_text(&View::replay(log, now), style, all)).collect()
    }

    /// Renders the usage of its budget, if it has one.
    pub(crate) fn budget(&self) -> Option<String> {
        budget_usage(self.budget.as_ref()?, None).map(|standing| format!("budget of the conversation: {standing}"))
    }

    /// Returns the tools of the last model request.
    pub(crate) fn tools(&self) -> Result<Option<Vec<ToolDecl>>, Failure> {
        for (row, log) in self.runs.iter().rev() {
            let is_asked = |event: &&Arc<Event>| matches!(event.kind, EventKind::LoopModelCall { question: None, .. });
            if let Some(asked) = log.iter().rev().find(is_asked) {
                // Not those of the request: with structured actions it describes the tools in its text.
                let before = log.iter().take_while(|event| event.seq < asked.seq).map(|event| &**event);
                let state = RunState::replay(before);
                let state = state.map_err(|error| Failure::environment(format!("the log of {}: {error}", row.run)))?;
                return Ok(state.loop_at(&asked.path).map(|frame| frame.prepared.tools.tools().to_vec()));
            }
        }
        Ok(None)
    }

    /// Lists the files in the order of their events, without duplicates of name and content, each with whether a person has
    /// attached it.
    pub(crate) fn files(&self) -> Vec<(FileRef, bool)> {
        let mut listed: Vec<(FileRef, bool)> = Vec::new();
        for RunFile { file, origin, .. } in
            self.runs.iter().flat_map(|(_, log)| files(log.iter().map(|event| &**event)))
        {
            if !listed.iter().any(|(known, _)| *known == file) {
                listed.push((file, origin == FileOrigin::Message));
            }
        }
        listed
    }

    /// Returns the last message of a person, without its id.
    pub(crate) fn last_message(&self) -> Option<UserMessage> {
        let mut events = self.runs.iter().flat_map(|(_, log)| log).rev().filter(|event| is_own(&event.path));
        events.find_map(|event| match &event.kind {
            EventKind::LoopStart { input: Some(text), files, from: Speaker::Person, hidden: false, .. }
            | EventKind::LoopMessage { text, files, from: Speaker::Person, .. } => {
                Some(UserMessage::new(text).files(files.iter().cloned()))
            }
            _ => None,
        })
    }
}
