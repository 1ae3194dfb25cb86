//! A conversation as Markdown.
//!
//! Texts of people, models and tools are in quotations and code, and cannot break out of them. Every other line is this
//! module's: who spoke, what was called, who decided.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use positronic_core::projection::result_text;
use positronic_core::projection::timeline::Timeline;
use positronic_core::record::{
    CallState, Event, Output, OutputKind, Path, Prompt, PromptState, RunSummary, Timestamp, ToolOutput,
};

use super::remarks::Remarks;
use crate::render::extent;
use crate::render::figures::{duration, size};
use crate::render::markdown::{code, escaped, fits_in_line, quoted_markdown, whole_block};
use crate::render::words::approval;

/// After every event.
const LAST: Timestamp = Timestamp(i64::MAX);

/// A run of a conversation, with its prompts to render.
pub(crate) struct Chapter<'a> {
    pub(crate) row: &'a RunSummary,
    pub(crate) log: &'a [Arc<Event>],
    pub(crate) prompts: Vec<Prompt>,
}

pub(crate) fn conversation_markdown(id: &str, chapters: &[Chapter<'_>]) -> String {
    let mut text = format!("# Conversation {}\n", escaped(id));
    for Chapter { row, log, prompts } in chapters {
        let remarks = Remarks::of(&Timeline::of(log.iter().map(|event| &**event)));
        for one in prompts {
            _ = write!(text, "\n---\n\n");
            prompt(&mut text, one, &remarks);
            let open = match one.state {
                PromptState::Completed => None,
                PromptState::WaitingForApproval => Some("it waits for an approval"),
                PromptState::WaitingForWebhook => Some("it waits for an answer"),
                _ => Some("it is not over"),
            };
            if let Some(open) = open.filter(|_| remarks.end.is_none()) {
                _ = write!(text, "\n*{open}: run `{}`, {}*\n", row.run, row.status.as_str());
            }
        }
        let apart: Vec<&str> = remarks.between(&Path::root(), Timestamp(0), LAST).collect();
        if prompts.is_empty() && !(apart.is_empty() && remarks.end.is_none()) {
            _ = write!(text, "\n---\n");
        }
        remarked(&mut text, apart.into_iter(), false);
        if let Some(end) = &remarks.end {
            _ = write!(text, "\n*the run `{}` {}*\n", row.run, escaped(end));
        }
    }
    while text.contains("\n\n\n") {
        text = text.replace("\n\n\n", "\n\n");
    }
    text
}

fn prompt(text: &mut String, prompt: &Prompt, remarks: &Remarks) {
    if !prompt.visible {
        _ = write!(text, "*This prompt is hidden from people.*\n\n");
    }
    match &prompt.input {
        Some(input) => said(text, "User", input),
        None => _ = writeln!(text, "*Begun by the system.*"),
    }
    let (mut listed, mut last) = (false, Timestamp(0));
    for output in prompt.shown() {
        let item = item(output);
        let words = output.kind.text().unwrap_or_default();
        let is_said = matches!(output.kind, OutputKind::Message { engine: false, .. });
        if item.is_none() && words.trim().is_empty() && !is_said {
            continue;
        }
        listed = remarked(text, remarks.between(&prompt.path, last, output.at), listed);
        last = last.max(output.at);
        // Items of a list have no empty lines between them.
        if !(listed && item.is_some()) {
            text.push('\n');
        }
        listed = item.is_some();
        match (item, &output.kind) {
            (Some(item), _) => _ = writeln!(text, "- {item}"),
            (None, OutputKind::Message { text: message, engine: false }) => said(text, "User", message),
            (None, _) => said(text, "Assistant", &words),
        }
    }
    remarked(text, remarks.between(&prompt.path, last, LAST), listed);
}

/// Renders remarks as list items, and returns whether the text ends with a list.
fn remarked<'a>(text: &mut String, remarks: impl Iterator<Item = &'a str>, mut listed: bool) -> bool {
    for remark in remarks {
        if !listed {
            text.push('\n');
        }
        _ = writeln!(text, "- *{}*", escaped(remark));
        listed = true;
    }
    listed
}

fn said(text: &mut String, speaker: &str, said: &str) {
    _ = write!(text, "**{speaker}:**\n\n");
    quoted_markdown(text, said.trim_end());
}

/// Renders a call or its output as a list item.
fn item(output: &Output) -> Option<String> {
    Some(match &output.kind {
        OutputKind::Tool(tool) => {
            let decided = tool.approval.as_ref().and_then(approval).map(|said| format!("\n  - *{}*", escaped(&said)));
            call(tool, output.duration) + &decided.unwrap_or_default()
        }
        OutputKind::File(file) => {
            format!(
                "file {} ({}, {}), {}",
                code(&file.name),
                escaped(&file.media_type),
                size(file.size),
                code(&file.uri)
            )
        }
        OutputKind::Widget(widget) => format!("shown: {}", code(&widget.fallback)),
        OutputKind::Custom(custom) => format!("shown: {}", code(&custom.fallback)),
        _ => return None,
    })
}

fn call(tool: &ToolOutput, took: Option<Duration>) -> String {
    let took = took.filter(|took| *took >= Duration::from_millis(1));
    let took = took.map_or_else(String::new, |took| format!(" ({})", duration(took)));
    let arguments = tool.edited.as_ref().unwrap_or(&tool.arguments).to_string();
    let came = match (&tool.result, tool.state) {
        (Some(result), _) => code(&result_text(result)),
        (None, CallState::Pending) => "waits for an approval".to_owned(),
        (None, CallState::Waiting) => "waits for an answer".to_owned(),
        (None, _) => "is not over".to_owned(),
    };
    // Arguments that do not fit in a line follow in full: a person may have decided about them.
    match fits_in_line(&arguments) {
        true => format!("{} {} → {came}{took}", code(&tool.tool), code(&arguments)),
        false => {
            let given = tool.edited.as_ref().unwrap_or(&tool.arguments);
            let mut below = String::new();
            whole_block(&mut below, &serde_json::to_string_pretty(given).unwrap_or_default(), "  ");
            let size = extent(given).map_or_else(String::new, |extent| format!(" ({extent})"));
            format!("{}{size} → {came}{took}\n\n{}", code(&tool.tool), below.trim_end_matches('\n'))
        }
    }
}
