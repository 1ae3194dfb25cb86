//! Placement of a request's context after its history.
//!
//! Providers cache the prefix of a prompt. Context items may change with every request, so they follow the last message
//! instead of going into the system prompt, which stays the same. The next request has that message without them: the
//! two requests share their bytes up to the end of its text.

use positronic_core::record::{Message, ModelRequest};

use super::config::OpenAiConfig;

/// The end of a request's messages, with the context.
pub(super) enum Tail {
    /// Replaces the last message by one with the context.
    Instead(Message),
    /// A message after the last one.
    Behind(Message),
}

/// Places the context; `None` if there is none.
pub(super) fn tail(config: &OpenAiConfig, request: &ModelRequest) -> Option<Tail> {
    let context = request.context_text()?;
    let messages = request.messages.read();
    let with = |text: &str| if text.is_empty() { context.clone() } else { format!("{text}\n\n{context}") };
    Some(match messages.last().map(|entry| &entry.message) {
        Some(Message::User { text, files }) => Tail::Instead(Message::User { text: with(text), files: files.clone() }),
        Some(Message::Tool { call, name, text, files }) if config.context_in_results() => {
            let (call, name, files) = (call.clone(), name.clone(), files.clone());
            Tail::Instead(Message::Tool { call, name, text: with(text), files })
        }
        Some(Message::Tool { .. } | Message::Assistant { .. }) | None => Tail::Behind(Message::user(context)),
    })
}
