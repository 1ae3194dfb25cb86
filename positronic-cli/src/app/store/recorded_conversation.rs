//! A stored conversation: the logs of its runs, its files, tools and exports.

use std::path::Path;
use std::sync::Arc;

use positronic_core::machine::RunState;
use positronic_core::projection::{FileOrigin, Prompts, RunFile, files};
use positronic_core::record::Speaker;
use positronic_core::record::{
    Event, EventKind, FileRef, RunSummary, Seq, SharedBudget, Timestamp, ToolDecl, UserMessage,
};
use positronic_core::runner::Client;
use serde_json::{Value, json};

use crate::app::{Failure, write_file};
use crate::cli::Format;
use crate::render::{Style, View, budget_usage, chat_text, conversation_markdown, is_own};

/// The version of the exported JSON.
const VERSION: u32 = 1;

/// A stored conversation.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) id: String,
    /// Its runs with their logs, in order.
    pub(crate) runs: Vec<(RunSummary, Vec<Arc<Event>>)>,
    /// The budget of all its prompts, with its usage.
    budget: Option<SharedBudget>,
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

    /// Renders the conversation as Markdown.
    pub(crate) fn markdown(&self, all: bool) -> String {
        let runs = self.runs.iter().map(|(row, log)| (row, View::replay(log, Timestamp::default())));
        conversation_markdown(&self.id, runs, all)
    }

    /// Renders the conversation as JSON with every recorded prompt.
    pub(crate) fn json(&self) -> Value {
        let mut prompts = Vec::new();
        for (row, log) in &self.runs {
            let recorded = Prompts::default().in_run(&row.run).with(log.iter().map(|event| &**event));
            for prompt in recorded.spoken() {
                let (run, brain, started, status) = (&row.run, &row.brain, row.started, row.status);
                prompts
                    .push(json!({"run": run, "brain": brain, "started": started, "status": status, "prompt": prompt}));
            }
        }
        let user = self.runs.last().and_then(|(row, _)| row.user.clone());
        let mut json = json!({"positronic_conversation": VERSION, "id": self.id, "user": user, "prompts": prompts});
        if let (Some(fields), Some(budget)) = (json.as_object_mut(), &self.budget) {
            fields.insert("budget".to_owned(), json!(budget));
        }
        json
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

/// Returns the format that a file's name suggests.
pub(crate) fn format_of(file: Option<&Path>) -> Format {
    let ending = file.and_then(Path::extension).map(|ending| ending.to_string_lossy().to_lowercase());
    match ending.as_deref() {
        Some("md" | "markdown") => Format::Markdown,
        _ => Format::Json,
    }
}

/// Writes a conversation to a file atomically.
pub(crate) fn write_conversation(file: &Path, recorded: &Recorded, format: Format, all: bool) -> Result<(), Failure> {
    let text = match format {
        Format::Markdown => recorded.markdown(all),
        Format::Json => serde_json::to_string_pretty(&recorded.json()).map_err(Failure::environment)? + "\n",
    };
    write_file(file, &text)
}
