//! Token estimate of a request.

use crate::record::encoding::document::encoded_len;
use crate::record::{Assistant, Message, ModelRequest, OutputFormat};

/// Approximate bytes per token, in English and in JSON.
const BYTES: u64 = 4;
/// Tokens of a message besides its text.
const MESSAGE: u64 = 4;

/// Estimates the tokens of a request, without the answer: a quarter of its bytes. Without a tokenizer, it can be off by
/// half, and by more in languages other than English.
#[must_use]
pub fn estimate_tokens(request: &ModelRequest) -> u64 {
    let context = request.context.iter().map(|item| item.text.len());
    let mut bytes: usize = request.system.len() + context.sum::<usize>();
    for tool in request.tools.tools() {
        bytes += tool.id.as_str().len() + tool.description.len() + encoded_len(&tool.parameters);
    }
    bytes += match &request.settings.output {
        OutputFormat::Text => 0,
        OutputFormat::JsonSchema { schema, .. } => encoded_len(schema),
    };
    let messages = request.messages.read();
    let mut tokens = 0_u64;
    for entry in messages.iter() {
        bytes += message_len(&entry.message);
        let files = entry.message.files().map(|file| file.file().estimated_tokens()).fold(MESSAGE, u64::saturating_add);
        tokens = tokens.saturating_add(files);
    }
    u64::try_from(bytes).unwrap_or(u64::MAX).div_ceil(BYTES).saturating_add(tokens)
}

fn message_len(message: &Message) -> usize {
    match message {
        Message::User { text, .. } => text.len(),
        Message::Tool { name, text, .. } => name.len() + text.len(),
        Message::Assistant { parts, .. } => parts
            .iter()
            .map(|part| match part {
                Assistant::Text { text } => text.len(),
                Assistant::Reasoning { text, data } => text.len().max(data.as_ref().map_or(0, encoded_len)),
                Assistant::Call { name, arguments, .. } => name.len() + arguments.len(),
                Assistant::File { data, .. } => data.as_ref().map_or(0, encoded_len),
                Assistant::Opaque { data } => encoded_len(data),
            })
            .sum(),
    }
}
