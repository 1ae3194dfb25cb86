//! The records of a run as text for people and snapshots.

use std::fmt::Write as _;

use super::messages::result_text;
use super::prompts::Prompts;
use crate::record::{OutputKind, Part, Prompt};

/// Writes the records of all loops as text: a heading per loop, a line per output.
#[must_use]
pub fn transcript(prompts: &Prompts) -> String {
    let mut text = String::new();
    for prompt in prompts.iter() {
        one(prompt, &mut text);
    }
    text
}

fn one(prompt: &Prompt, text: &mut String) {
    _ = writeln!(text, "# {}", prompt.path);
    if let Some(input) = &prompt.input {
        _ = writeln!(text, "user: {input}");
    }
    for output in &prompt.output {
        match &output.kind {
            OutputKind::Message { text: said, engine } => {
                _ = writeln!(text, "{}: {said}", if *engine { "engine" } else { "user" });
            }
            OutputKind::Text { parts, .. } => {
                for part in &**parts {
                    match part {
                        Part::Text { text: said } => _ = writeln!(text, "assistant: {said}"),
                        Part::Refusal { text: said } => _ = writeln!(text, "assistant refuses: {said}"),
                        Part::Reasoning { text: thought, .. } if !thought.is_empty() => {
                            _ = writeln!(text, "thinks: {thought}");
                        }
                        Part::Reasoning { .. } | Part::Call { .. } | Part::Opaque { .. } => {}
                    }
                }
            }
            OutputKind::Tool(tool) => {
                _ = write!(text, "{}({})", tool.tool, tool.arguments);
                if let Some(edited) = &tool.edited {
                    _ = write!(text, " edited to {edited}");
                }
                match &tool.result {
                    Some(result) => _ = writeln!(text, " -> {}", result_text(result)),
                    None => _ = writeln!(text, " …"),
                }
            }
            OutputKind::File(file) => _ = writeln!(text, "file: {} ({} bytes)", file.name, file.size),
            OutputKind::Custom(custom) => _ = writeln!(text, "{}: {}", custom.kind, custom.fallback),
            OutputKind::Widget(widget) => {
                let again = if widget.replaces.is_some() { ", in the place of an earlier one" } else { "" };
                _ = writeln!(text, "widget{again}: {}", widget.fallback);
            }
        }
    }
    if let Some(outcome) = &prompt.outcome {
        _ = writeln!(text, "= {}", serde_json::to_string(outcome).unwrap_or_default());
    }
}
