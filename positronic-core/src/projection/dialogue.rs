//! The rules by which messages become a dialogue that every provider accepts.
//!
//! Providers refuse different things: a dialogue that begins with an answer (Anthropic, Google), consecutive user
//! messages (chat templates of Mistral and Gemma), empty messages (Anthropic). Consecutive user messages without files are
//! therefore joined, empty messages left out, and a dialogue that begins with an answer gets [`OPENING`] first. That
//! a dialogue ends with the user is up to the log: a loop without a message has an opening message of the engine in
//! its `LOOP_START`.
//!
//! A request is rebuilt from its log byte for byte, so the log determines the rules: `projection` in `LOOP_START`.
//! Older logs lack it, which is version 0: every message unchanged.

use crate::machine::OPENING;
use crate::record::{Assistant, Message, Transcript};

/// The version of the rules for new loops.
pub(crate) const RULES: u32 = 1;

/// Adds messages to those of a loop.
pub(super) fn extend(dialogue: &mut Transcript, messages: impl IntoIterator<Item = Message>) {
    for message in messages.into_iter().filter_map(without_nothing) {
        match message {
            Message::User { text, files } => {
                if !files.is_empty() || !dialogue.join_user(&text) {
                    dialogue.push(Message::User { text, files });
                }
            }
            other => {
                if dialogue.is_empty() {
                    dialogue.push(Message::user(OPENING));
                }
                dialogue.push(other);
            }
        }
    }
}

/// Converts messages to a whole dialogue.
pub(super) fn dialogue(messages: impl IntoIterator<Item = Message>) -> Vec<Message> {
    let mut joined = joined(messages);
    if joined.first().is_some_and(|first| !matches!(first, Message::User { .. })) {
        joined.insert(0, Message::user(OPENING));
    }
    joined
}

/// Converts messages to a part of a dialogue.
pub(super) fn joined(messages: impl IntoIterator<Item = Message>) -> Vec<Message> {
    let mut joined = Vec::new();
    for message in messages.into_iter().filter_map(without_nothing) {
        match (joined.last_mut(), message) {
            (Some(Message::User { text, files: before }), Message::User { text: more, files })
                if before.is_empty() && files.is_empty() =>
            {
                join(text, &more);
            }
            (_, message) => joined.push(message),
        }
    }
    joined
}

/// Adds the next message of the user.
pub(super) fn join(text: &mut String, more: &str) {
    text.push_str("\n\n");
    text.push_str(more);
}

/// Removes empty parts from a message; `None` if nothing remains. Reasoning alone is not a message: providers require
/// what follows it.
fn without_nothing(message: Message) -> Option<Message> {
    match message {
        Message::User { ref text, ref files } => (!text.trim().is_empty() || !files.is_empty()).then_some(message),
        Message::Assistant { mut parts } => {
            if !parts.iter().any(is_said) {
                parts.retain(|part| !matches!(part, Assistant::Text { .. }));
            }
            let is_anything = parts.iter().any(|part| match part {
                Assistant::Call { .. } | Assistant::File { .. } => true,
                Assistant::Opaque { data } => data.get("type").is_some(),
                said => is_said(said),
            });
            is_anything.then_some(Message::Assistant { parts })
        }
        Message::Tool { .. } => Some(message),
    }
}

fn is_said(part: &Assistant) -> bool {
    matches!(part, Assistant::Text { text } if !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn user(text: &str) -> Message {
        Message::user(text)
    }

    fn assistant(parts: impl IntoIterator<Item = Assistant>) -> Message {
        Message::Assistant { parts: parts.into_iter().collect() }
    }

    fn text(text: &str) -> Assistant {
        Assistant::Text { text: text.to_owned() }
    }

    fn thought() -> Assistant {
        Assistant::Reasoning { text: "hm".to_owned(), data: None }
    }

    #[test]
    fn user_messages_in_a_row_are_joined_and_empty_ones_left_out() {
        let messages = [user("a"), user(" "), user("b"), assistant([text("c")]), user(""), user("d")];

        assert_eq!(dialogue(messages), [user("a\n\nb"), assistant([text("c")]), user("d")]);
    }

    #[test]
    fn an_assistant_message_with_nothing_in_it_is_left_out() {
        let mark = Assistant::Opaque { data: json!({"phase": "commentary"}) };
        let item = Assistant::Opaque { data: json!({"type": "web_search_call"}) };

        assert_eq!(
            dialogue([
                user("a"),
                assistant([thought(), text("\n"), mark]),
                user("b"),
                assistant([thought(), item.clone()])
            ]),
            [user("a\n\nb"), assistant([thought(), item])]
        );
    }

    #[test]
    fn a_dialogue_begins_with_the_user() {
        assert_eq!(dialogue([assistant([text("a")])]), [user(OPENING), assistant([text("a")])]);
        assert_eq!(dialogue([]), []);
    }

    #[test]
    fn a_dialogue_grows_to_what_it_is_when_it_is_made_at_once() {
        let messages = [assistant([text("a")]), user("b"), user("c"), assistant([thought()]), user("d")];
        let mut grown = Transcript::default();
        for message in messages.clone() {
            let before = (grown.clone(), grown.messages());
            extend(&mut grown, [message]);
            assert_eq!(before.0.messages(), before.1, "a request that was sent stays as it was");
        }

        assert_eq!(grown.messages(), dialogue(messages));
    }
}
