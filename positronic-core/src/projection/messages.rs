//! Conversion of a loop's record into model messages: pure and lossy.
//!
//! | output | what the model reads |
//! |---|---|
//! | message | a user message |
//! | text | an assistant message, with the calls of its iteration in it |
//! | tool | a tool message with its result, paired with its call |
//! | file | its contents, or one line, in the tool message of the call that made it |
//! | widget | nothing |
//! | custom | what its type says, in the tool message of the call that made it |
//!
//! An answer of calls without text has no text output: its first call begins the assistant message.
//!
//! A file's line is part of a tool message, because providers allow nothing between an assistant's calls and their
//! results.

use serde_json::Value;

use super::result_text::result_text;
use crate::record::encoding::scratch::with_scratch;
use crate::record::{
    Assistant, Attachment, FileRef, MadeBy, Message, Output, OutputKind, Part, Prompt, ToolId, ToolOutput,
};

/// Converts consecutive outputs into messages. The outputs of an iteration must be passed together.
#[must_use]
pub fn messages(outputs: &[Output]) -> Vec<Message> {
    // An answer of calls alone has no output of its own.
    let mut messages = Vec::with_capacity(outputs.len() + 1);
    let mut rest = outputs;
    while let Some((first, after)) = rest.split_first() {
        if let (Some(parts), Some(by)) = (first.kind.parts(), first.kind.made_by()) {
            let of_iteration = after.iter().take_while(|output| is_of_batch(&output.kind)).count();
            let is_call = matches!(first.kind, OutputKind::Tool(_));
            let batch = if is_call { rest } else { after };
            let (batch, after) = batch.split_at(of_iteration + usize::from(is_call));
            rest = after;
            messages.push(assistant(parts, by, batch));
            tool_messages(batch, &mut messages);
            continue;
        }
        rest = after;
        // A call without the answer of its iteration does not occur in a log; providers would refuse its result alone.
        if let OutputKind::Message { text, files, .. } = &first.kind {
            messages.push(said(text, files));
        }
    }
    messages
}

/// Converts whole records into messages, one after the other, each from its opening message on. The result of an open
/// call is empty.
#[must_use]
pub fn prompts_to_messages<'a>(prompts: impl IntoIterator<Item = &'a Prompt>) -> Vec<Message> {
    let mut all = Vec::new();
    for prompt in prompts {
        all.extend(opening(prompt));
        all.extend(messages(&prompt.output));
    }
    all
}

/// Returns the opening message of a loop, unless the engine opened it.
pub(super) fn opening(prompt: &Prompt) -> Option<Message> {
    Some(said(prompt.input.as_ref()?, &prompt.files))
}

/// Returns a message of the user.
pub(super) fn said(text: &str, files: &[FileRef]) -> Message {
    Message::User { text: text.to_owned(), files: files.iter().cloned().map(Attachment::from).collect() }
}

/// Returns whether an output belongs to the answer before it.
fn is_of_batch(kind: &OutputKind) -> bool {
    matches!(kind, OutputKind::Tool(call) if call.answer.is_none()) || kind.is_aside()
}

fn assistant(parts: &[Part], by: &MadeBy, batch: &[Output]) -> Message {
    let calls: Vec<&ToolOutput> = batch.iter().filter_map(as_tool).collect();
    // Allocated exactly, because it lives as long as the run, and most answers have one part.
    let mut sent = Vec::with_capacity(parts.len());
    sent.extend(parts.iter().filter_map(|part| match part {
        Part::Call { index } => {
            let call = calls.get(usize::try_from(*index).ok()?)?;
            Some(Assistant::Call {
                call: provider_id(call),
                name: wire_name(&call.tool),
                arguments: arguments_text(&call.arguments),
                data: call.data.clone(),
            })
        }
        part => part.sent_back(),
    }));
    Message::Assistant { parts: sent, by: by.clone() }
}

fn as_tool(output: &Output) -> Option<&ToolOutput> {
    match &output.kind {
        OutputKind::Tool(tool) => Some(tool),
        _ => None,
    }
}

fn tool_messages(batch: &[Output], messages: &mut Vec<Message>) {
    for output in batch {
        match (&output.kind, messages.last_mut()) {
            (OutputKind::Tool(tool), _) => messages.push(Message::Tool {
                call: provider_id(tool),
                name: wire_name(&tool.tool),
                text: tool_text(tool),
                files: Vec::new(),
            }),
            (OutputKind::File(output), Some(Message::Tool { text, files, .. })) => {
                add_line(text, &output.file.line());
                files.extend(output.content.then(|| Attachment::from(output.file.clone())));
            }
            (OutputKind::Custom(custom), Some(Message::Tool { text, .. })) => {
                if let Some(model_text) = &custom.model_text {
                    add_line(text, model_text);
                }
            }
            _ => {}
        }
    }
}

fn add_line(text: &mut String, line: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(line);
}

/// Returns the provider's id of the call, or a generated one.
fn provider_id(call: &ToolOutput) -> String {
    call.provider_id.clone().unwrap_or_else(|| call.public_id().as_str().to_owned())
}

/// Returns the tool's name for a provider. A model may invent a name that no provider accepts, so invalid characters
/// are removed.
fn wire_name(tool: &str) -> String {
    if ToolId::is_valid(tool) {
        return ToolId::wire_name_of(tool).into_owned();
    }
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let name: String = tool.chars().take(64).map(|letter| if fits(letter) { letter } else { '_' }).collect();
    if name.is_empty() { "unnamed".to_owned() } else { name }
}

/// Returns the arguments as JSON text. Text that is not JSON is wrapped in an object, because some servers parse the
/// arguments of earlier calls.
fn arguments_text(arguments: &Value) -> String {
    match arguments {
        Value::String(raw) => serde_json::json!({ "not_json": raw }).to_string(),
        other => {
            // Takes a third of `to_string`, whose formatter grows the text piece by piece.
            with_scratch(|buffer| {
                let written = serde_json::to_writer(&mut *buffer, other);
                written.ok().and_then(|()| std::str::from_utf8(buffer).ok()).unwrap_or_default().to_owned()
            })
        }
    }
}

fn tool_text(tool: &ToolOutput) -> String {
    let result = tool.result.as_ref().map(result_text).unwrap_or_default();
    match &tool.edited {
        Some(edited) => format!("A person changed the arguments before the call ran: {edited}\n\n{result}"),
        None => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_made_up_name_goes_back_as_one_that_providers_accept() {
        assert_eq!(wire_name("docs.search"), "docs_search");
        assert_eq!(wire_name("delete everything!"), "delete_everything_");
        assert_eq!(wire_name("löschen"), "l_schen");
        assert_eq!(wire_name(&"x ".repeat(50)), "x_".repeat(32));
        assert_eq!(wire_name(""), "unnamed");
    }
}
