//! Exports of a conversation: as JSON with every recorded prompt, and as Markdown.

use std::path::Path;

use positronic_core::projection::Prompts;
use positronic_core::record::Timestamp;
use serde_json::{Value, json};

use super::recorded_conversation::Recorded;
use crate::app::{Failure, write_file};
use crate::cli::Format;
use crate::render::{View, conversation_markdown};

/// The version of the exported JSON.
const VERSION: u32 = 1;

impl Recorded {
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
