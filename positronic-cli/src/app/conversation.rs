//! A stored conversation: the logs of its runs, its files, tools and exports.

use std::path::Path;
use std::sync::Arc;

use positronic_core::machine::RunState;
use positronic_core::projection::Prompts;
use positronic_core::record::{
    Event, EventKind, FileOutput, OutputKind, Prompt, RunId, RunSummary, Seq, SharedBudget, SideOutput, Timestamp,
    ToolDecl,
};
use positronic_core::runner::Client;
use serde_json::{Value, json};

use crate::app::{Failure, write_file};
use crate::cli::Format;
use crate::render::{Chapter, Style, View, conversation_markdown, is_own, standing, talk_text};

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

/// A prompt with its run.
#[derive(Debug)]
struct Answered<'a> {
    row: &'a RunSummary,
    prompt: Prompt,
}

impl Recorded {
    /// Reads a conversation; it is empty before its first message.
    pub(crate) async fn read(client: &Client, id: &str) -> Result<Self, Failure> {
        let mut runs = Vec::new();
        for row in client.conversation(id).await?.into_iter().rev() {
            let log = client.events(&row.run, Seq(0)).await?;
            runs.push((row, log));
        }
        Ok(Self { id: id.to_owned(), runs, budget: client.budget(id, None).await? })
    }

    /// Renders the last `most` runs as a transcript; with `all`, also hidden prompts.
    pub(crate) fn text(&self, most: usize, style: &Style, all: bool, now: Timestamp) -> String {
        let older = self.runs.len().saturating_sub(most);
        let mut text = String::new();
        for (_, log) in self.runs.iter().skip(older) {
            let mut view = View::new();
            for event in log {
                view.apply(event);
            }
            if !view.is_ended() {
                view.tick(now);
            }
            text.push_str(&talk_text(&view, style, all));
        }
        text
    }

    /// Renders the usage of its budget, if it has one.
    pub(crate) fn budget(&self) -> Option<String> {
        standing(self.budget.as_ref()?, None).map(|standing| format!("budget of the conversation: {standing}"))
    }

    /// Lists the prompts of the runs' own brains in order; with `all`, also hidden ones.
    fn prompts(&self, all: bool) -> Vec<Answered<'_>> {
        let mut prompts = Vec::new();
        for (row, log) in &self.runs {
            prompts.extend(own_prompts(&row.run, log, all).into_iter().map(|prompt| Answered { row, prompt }));
        }
        prompts
    }

    /// Renders the conversation as Markdown.
    pub(crate) fn markdown(&self, all: bool) -> String {
        let chapters =
            self.runs.iter().map(|(row, log)| Chapter { row, log, prompts: own_prompts(&row.run, log, all) });
        conversation_markdown(&self.id, &chapters.collect::<Vec<_>>())
    }

    /// Renders the conversation as JSON with every recorded prompt.
    pub(crate) fn json(&self) -> Value {
        let prompt = |one: &Answered<'_>| {
            let row = one.row;
            json!({
                "run": row.run,
                "brain": row.brain,
                "started": row.started,
                "status": row.status,
                "prompt": one.prompt,
            })
        };
        let user = self.runs.last().and_then(|(row, _)| row.user.clone());
        let prompts: Vec<Value> = self.prompts(true).iter().map(prompt).collect();
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

    /// Lists the files in the order of their creation, without duplicates of name and content.
    pub(crate) fn files(&self) -> Vec<FileOutput> {
        let mut files: Vec<FileOutput> = Vec::new();
        for event in self.runs.iter().flat_map(|(_, log)| log) {
            if let EventKind::LoopOutput { output: SideOutput::File(file), .. } = &event.kind
                && !files.contains(file)
            {
                files.push(file.clone());
            }
        }
        files
    }

    /// Returns the last message of a person.
    pub(crate) fn last_message(&self) -> Option<String> {
        let prompts = self.prompts(false);
        let said = |prompt: &Prompt| {
            let later = prompt.output.iter().rev().find_map(|output| match &output.kind {
                OutputKind::Message { text, engine: false } => Some(text.clone()),
                _ => None,
            });
            later.or_else(|| prompt.input.clone())
        };
        prompts.iter().rev().find_map(|one| said(&one.prompt))
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

/// Lists the prompts of a run's own brain in order; with `all`, also hidden ones.
fn own_prompts(run: &RunId, log: &[Arc<Event>], all: bool) -> Vec<Prompt> {
    let prompts = Prompts::default().in_run(run).with(log.iter().map(|event| &**event));
    prompts.iter().filter(|prompt| is_own(&prompt.path) && (all || prompt.visible)).cloned().collect()
}
