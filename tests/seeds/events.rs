//! The `LOOP_*` events of a run as text.

use std::fmt::Write as _;

use positronic_core::record::{Change, EventKind, Part, SideOutput, ToolResult, WaitSpec};
use positronic_core::testing::Story;
use serde_json::{Value, json};

/// Writes one line for each `LOOP_*` event: its number in the log, its path, its name, and what is special to it.
pub(crate) fn loop_events(story: &Story) -> String {
    let mut text = String::new();
    for event in story.log().iter().filter(|event| event.kind.name().starts_with("LOOP_")) {
        let line = format!("{} {} {} {}", event.seq, event.path, event.kind.name(), details(&event.kind));
        _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

fn details(kind: &EventKind) -> String {
    use EventKind as E;
    match kind {
        E::LoopStart { input, .. } => input.as_deref().map(quoted).unwrap_or_default(),
        E::LoopIteration(iteration) => {
            let tools = iteration.tools.iter().flatten().map(|tool| tool.id.to_string());
            let context = iteration.context.iter().flatten().filter_map(|item| item.body.as_ref());
            let context = context.map(|item| format!("{}={}", item.name, shortened(&quoted(&item.text))));
            tools.chain(context).collect::<Vec<_>>().join(" ")
        }
        E::LoopModelCall { question, .. } => {
            question.as_ref().map(|_| "a plugin's question".to_owned()).unwrap_or_default()
        }
        E::LoopModelResult { parts, .. } => texts(parts),
        E::LoopAnswerRefused { message, parts, .. } => format!("{} because {message}", texts(parts)),
        E::LoopToolCall(call) => format!("{} {}", call.tool, call.arguments),
        E::LoopToolStart { attempt: 0, .. } => String::new(),
        E::LoopToolStart { attempt, .. } => format!("attempt {attempt}"),
        E::LoopToolRetry { attempt, message, .. } => format!("attempt {attempt} failed: {message}"),
        E::LoopToolResult { result, change, .. } => format!("{}{}", result_text(result), changed(change.as_ref())),
        E::LoopBrainStart { title, options } => format!("{title} {options}"),
        E::LoopBrainComplete { result, error, .. } => {
            json!(result.as_ref().or(error.clone().map(Value::from).as_ref())).to_string()
        }
        E::LoopApprovalRequested { reason, .. } => quoted(reason),
        E::LoopApprovalDecided { decision, reason, .. } => {
            format!("{decision:?} {}", reason.as_deref().map(quoted).unwrap_or_default())
        }
        E::LoopWait { waits, output, change } => {
            let waits: Vec<_> =
                waits.iter().map(|WaitSpec { webhook, identifier, .. }| format!("{webhook}:{identifier}")).collect();
            let after = if output.is_null() { String::new() } else { format!(" after {output}") };
            format!("for {}{after}{}", waits.join(" or "), changed(change.as_ref()))
        }
        E::LoopResume { wait, payload, .. } => format!("wait {wait}: {payload}"),
        E::LoopExit { call, tool } => format!("{tool} at {call}"),
        E::LoopMaxIterations { limit } => limit.to_string(),
        E::LoopOutput { output: SideOutput::File(output), .. } => {
            format!("file {} {}", output.file.name, output.file.media_type)
        }
        E::LoopOutput { output: SideOutput::Widget(widget), .. } => format!("widget {} {}", widget.kind, widget.data),
        E::LoopPluginChanged { plugin, .. } => plugin.clone(),
        E::LoopComplete { outcome, change, .. } => format!("{}{}", json!(outcome), changed(change.as_ref())),
        other => {
            let mut fields = other.to_value();
            fields.as_object_mut().unwrap().remove("type");
            fields.to_string()
        }
    }
}

fn quoted(text: &str) -> String {
    json!(text).to_string()
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(100) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}

/// Returns the reasoning and the texts of an answer; its calls are events of their own.
fn texts(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text { text } | Part::Reasoning { text, .. } => Some(quoted(text)),
        _ => None,
    });
    texts.collect::<Vec<_>>().join(" ")
}

fn result_text(result: &ToolResult) -> String {
    match result {
        ToolResult::Success { output, .. } => output.to_string(),
        ToolResult::Error { message } => format!("error: {message}"),
        other => json!(other).to_string(),
    }
}

fn changed(change: Option<&Change>) -> String {
    match change {
        None => String::new(),
        Some(Change::Patch(patch)) => format!(" changes {}", json!(patch)),
        Some(Change::State(state)) => format!(" new state {state}"),
    }
}
