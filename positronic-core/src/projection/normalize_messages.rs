//! The rules by which messages become a dialogue that every provider accepts.
//!
//! Providers refuse different things: a dialogue that begins with an answer (Anthropic, Google), consecutive user
//! messages (chat templates of Mistral and Gemma), empty messages (Anthropic), calls with an id that is empty, too long or not
//! unique. Consecutive user messages without files are therefore joined, empty messages left out, a dialogue that begins with
//! an answer gets [`OPENING`] first, and [`call_ids`](super::call_ids) gives calls their ids. That a dialogue ends with the user is up to
//! the log: a loop without a message has an opening message of the engine in its `LOOP_START`.
//!
//! A request is rebuilt from its log byte for byte, so these rules do not change for a log that exists.

use super::call_ids::CallIds;
use crate::machine::OPENING;
use crate::record::{Assistant, Message, Transcript};

/// Adds messages to those of a loop.
pub(super) fn extend(dialogue: &mut Transcript, messages: impl IntoIterator<Item = Message>) {
    let mut ids = CallIds::default();
    for message in messages {
        let Some(mut message) = without_nothing(message) else { continue };
        if !matches!(message, Message::User { .. }) && dialogue.is_empty() {
            dialogue.push(Message::user(OPENING));
        }
        ids.name(dialogue, &mut message);
        match message {
            Message::User { text, files } if files.is_empty() && dialogue.join_user(&text) => {}
            message => dialogue.push(message),
        }
    }
}

/// Converts messages to a whole dialogue.
pub(super) fn dialogue(messages: impl IntoIterator<Item = Message>) -> Transcript {
    let mut dialogue = Transcript::default();
    extend(&mut dialogue, messages);
    dialogue
}

/// Returns how many messages of a dialogue others become.
pub(super) fn count(messages: Vec<Message>) -> usize {
    let mut after_text = false;
    let added = messages.into_iter().filter_map(without_nothing).filter(|message| {
        let is_text = matches!(message, Message::User { files, .. } if files.is_empty());
        !(std::mem::replace(&mut after_text, is_text) && is_text)
    });
    added.count()
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
        Message::Assistant { mut parts, by } => {
            if !parts.iter().any(is_said) {
                parts.retain(|part| !matches!(part, Assistant::Text { .. }));
            }
            let is_anything = parts.iter().any(|part| match part {
                Assistant::Call { .. } | Assistant::File { .. } => true,
                Assistant::Opaque { data } => data.get("type").is_some(),
                said => is_said(said),
            });
            is_anything.then_some(Message::Assistant { parts, by })
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
        Message::assistant(parts.into_iter().collect())
    }

    fn whole(messages: impl IntoIterator<Item = Message>) -> Vec<Message> {
        dialogue(messages).messages()
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

        assert_eq!(whole(messages), [user("a\n\nb"), assistant([text("c")]), user("d")]);
    }

    #[test]
    fn an_assistant_message_with_nothing_in_it_is_left_out() {
        let mark = Assistant::Opaque { data: json!({"phase": "commentary"}) };
        let item = Assistant::Opaque { data: json!({"type": "web_search_call"}) };

        assert_eq!(
            whole([
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
        assert_eq!(whole([assistant([text("a")])]), [user(OPENING), assistant([text("a")])]);
        assert_eq!(whole([]), []);
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

        assert_eq!(count(messages.to_vec()) + 1, grown.len(), "with the opening");
        assert_eq!(grown.messages(), whole(messages));
    }
}
