//! A conversation as Markdown, to be read and passed on.

use std::fmt::Write as _;
use std::time::Duration;

use positronic_core::projection::result_text;
use positronic_core::record::{CallState, Output, OutputKind, PromptState, ToolOutput};

use super::Answered;
use crate::display::figures::{duration, size};
use crate::display::text::{one_line, sanitise};
use crate::markdown::code;

pub(super) fn markdown(id: &str, prompts: &[Answered<'_>]) -> String {
    let mut text = format!("# Conversation {}\n", one_line(id, true));
    for Answered { row, prompt } in prompts {
        _ = write!(text, "\n---\n\n");
        if !prompt.visible {
            _ = write!(text, "*People are not shown this prompt.*\n\n");
        }
        match &prompt.input {
            Some(input) => quoted(&mut text, input),
            None => _ = writeln!(text, "*Begun by the system.*"),
        }
        let mut listed = false;
        for output in prompt.shown() {
            let item = item(output);
            let words = output.kind.text().map(|said| sanitise(said.trim(), true)).unwrap_or_default();
            let is_said = matches!(output.kind, OutputKind::Message { engine: false, .. });
            if item.is_none() && words.is_empty() && !is_said {
                continue;
            }
            // Items of a list stand together.
            if !(listed && item.is_some()) {
                text.push('\n');
            }
            listed = item.is_some();
            match (item, &output.kind) {
                (Some(item), _) => _ = writeln!(text, "- {item}"),
                (None, OutputKind::Message { text: said, engine: false }) => quoted(&mut text, said),
                (None, _) => _ = writeln!(text, "{words}"),
            }
        }
        let open = match prompt.state {
            PromptState::Completed => None,
            PromptState::Running => Some("it is not over"),
            PromptState::WaitingForApproval => Some("it waits for an approval"),
            PromptState::WaitingForWebhook => Some("it waits for an answer"),
        };
        if let Some(open) = open {
            _ = write!(text, "\n*{open}: run `{}`, {}*\n", row.run, row.status.as_str());
        }
    }
    while text.contains("\n\n\n") {
        text = text.replace("\n\n\n", "\n\n");
    }
    text
}

fn quoted(text: &mut String, said: &str) {
    for line in sanitise(said.trim(), true).lines() {
        _ = writeln!(text, "> {line}");
    }
}

/// Writes what stands in a list: calls, and what they show.
fn item(output: &Output) -> Option<String> {
    Some(match &output.kind {
        OutputKind::Tool(tool) => call(tool, output.duration),
        OutputKind::File(file) => {
            let name = one_line(&file.name, true);
            format!("file **{name}** ({}, {}), {}", one_line(&file.media_type, true), size(file.size), code(&file.uri))
        }
        OutputKind::Widget(widget) => one_line(&widget.fallback, true),
        OutputKind::Custom(custom) => one_line(&custom.fallback, true),
        _ => return None,
    })
}

fn call(tool: &ToolOutput, took: Option<u64>) -> String {
    let took = took.filter(|took| *took >= 1_000);
    let took = took.map_or_else(String::new, |took| format!(" ({})", duration(Duration::from_micros(took))));
    let arguments = tool.edited.as_ref().unwrap_or(&tool.arguments).to_string();
    let with = if tool.edited.is_some() { ", edited by a person" } else { "" };
    let came = match (&tool.result, tool.state) {
        (Some(result), _) => code(&result_text(result)),
        (None, CallState::Pending) => "waits for an approval".to_owned(),
        (None, CallState::Waiting) => "waits for an answer".to_owned(),
        (None, _) => "is not over".to_owned(),
    };
    format!("{} {}{with} → {came}{took}", code(&tool.tool), code(&arguments))
}
