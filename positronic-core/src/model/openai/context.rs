//! The context of a request, behind its history.
//!
//! Providers cache the beginning of a prompt that they have seen before. A context item may change with every request, so the
//! items stand behind the last message instead of in the system prompt, which stays as it is. The next request has that message
//! without them: the two begin with the same bytes, up to the end of its text.

use super::config::OpenAiConfig;
use crate::record::{ContextItem, Message, ModelRequest};

/// The last messages of a request, with its context.
pub(super) enum Tail {
    /// The last message, with the context behind its text.
    Instead(Message),
    /// A message behind the last one.
    Behind(Message),
}

/// Places the context; `None` where there is none.
pub(super) fn tail(config: &OpenAiConfig, request: &ModelRequest) -> Option<Tail> {
    let context = text(&request.context)?;
    let messages = request.messages.read();
    let with = |text: &str| if text.is_empty() { context.clone() } else { format!("{text}\n\n{context}") };
    Some(match messages.last().map(|entry| &entry.message) {
        Some(Message::User { text }) => Tail::Instead(Message::User { text: with(text) }),
        Some(Message::Tool { call, name, text }) if config.context_in_results() => {
            Tail::Instead(Message::Tool { call: call.clone(), name: name.clone(), text: with(text) })
        }
        Some(Message::Tool { .. } | Message::Assistant { .. }) | None => Tail::Behind(Message::User { text: context }),
    })
}

/// Writes the items one after the other, each with its name.
fn text(items: &[ContextItem]) -> Option<String> {
    let items = items.iter().filter(|item| !item.text.is_empty());
    let items: Vec<_> = items
        .map(|ContextItem { name, text }| format!("<context name=\"{}\">\n{text}\n</context>", name.replace('"', "'")))
        .collect();
    (!items.is_empty()).then(|| items.join("\n\n"))
}
