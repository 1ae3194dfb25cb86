//! Data that is private to a model: encrypted reasoning, signatures, items that only its provider understands.
//!
//! Providers reject a request with another provider's private data. So if several models answer in one loop, the data of all
//! but the first is stored as `{"of_model": name, "data": …}`, and each model is sent only its own: the first the unmarked
//! data, another one the data with its name. Loops in which only the first has answered have no marks and are not changed.
//! A first model that is a wrapper itself may have marked its answer; such data is marked again, with the first's name, so that
//! each wrapper reads its own marks.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::record::{Assistant, Message, ModelRequest, ModelResponse, Part, Settings, Transcript};

const OF: &str = "of_model";
const DATA: &str = "data";

/// The target of a request.
#[derive(Debug, Clone, Copy)]
pub(super) enum Target<'a> {
    /// The intended model, by its name.
    First(&'a str),
    /// A model that answers instead.
    Other(&'a str),
}

/// Marks the private data of an answer.
pub(super) fn mark(response: &mut ModelResponse, target: Target<'_>) {
    let seal = |data: &mut Value| match target {
        Target::First(_) if owner(data).is_none() => {}
        Target::First(name) | Target::Other(name) => *data = json!({ OF: name, DATA: data.take() }),
    };
    for part in &mut response.parts {
        match part {
            Part::Reasoning { data: Some(data), .. }
            | Part::Citations { data: Some(data), .. }
            | Part::File { data: Some(data), .. }
            | Part::Opaque { data } => seal(data),
            Part::ProviderTool(used) => used.data.iter_mut().for_each(seal),
            Part::Text { .. }
            | Part::Refusal { .. }
            | Part::Reasoning { data: None, .. }
            | Part::Citations { data: None, .. }
            | Part::File { data: None, .. }
            | Part::Call { .. } => {}
        }
    }
    response.calls.iter_mut().filter_map(|call| call.data.as_mut()).for_each(seal);
}

/// Returns the request as sent to a model: without the private data of others, and, unless it is the first, without the
/// first's model name.
pub(super) fn sent<'a>(request: &'a ModelRequest, target: Target<'_>) -> Cow<'a, ModelRequest> {
    let renames = matches!(target, Target::Other(_)) && request.settings.model.is_some();
    let holds = request.messages.read().iter().any(|entry| is_touched(&entry.message, target));
    if !renames && !holds {
        return Cow::Borrowed(request);
    }
    let mut own = request.clone();
    if renames {
        own.settings = Arc::new(Settings { model: None, ..Settings::clone(&own.settings) });
    }
    if holds {
        own.messages = Transcript::new(
            request.messages.messages().into_iter().filter_map(|message| project_message(message, target)),
        );
    }
    Cow::Owned(own)
}

/// Returns the owner of private data; `None` for the first model.
fn owner(data: &Value) -> Option<&str> {
    let fields = data.as_object().filter(|fields| fields.len() == 2 && fields.contains_key(DATA))?;
    fields.get(OF)?.as_str()
}

/// Returns private data if it belongs to the target.
fn own(data: Value, target: Target<'_>) -> Option<Value> {
    match (owner(&data), target) {
        (None, Target::First(_)) => Some(data),
        (Some(owner), Target::First(name) | Target::Other(name)) if owner == name => match data {
            Value::Object(mut fields) => fields.remove(DATA),
            _ => None,
        },
        _ => None,
    }
}

fn is_touched(message: &Message, target: Target<'_>) -> bool {
    let touched = |data: &Value| matches!(target, Target::Other(_)) || owner(data).is_some();
    match message {
        Message::Assistant { parts, .. } => parts.iter().any(|part| match part {
            Assistant::Reasoning { data, .. } | Assistant::Call { data, .. } | Assistant::File { data, .. } => {
                data.as_ref().is_some_and(touched)
            }
            Assistant::Opaque { data } => touched(data),
            Assistant::Text { .. } => false,
        }),
        Message::User { .. } | Message::Tool { .. } => false,
    }
}

fn project_message(message: Message, target: Target<'_>) -> Option<Message> {
    let Message::Assistant { parts, by } = message else { return Some(message) };
    let part = |part| match part {
        Assistant::Reasoning { text, data } => {
            Some(Assistant::Reasoning { text, data: data.and_then(|data| own(data, target)) })
        }
        Assistant::Call { call, name, arguments, data } => {
            Some(Assistant::Call { call, name, arguments, data: data.and_then(|data| own(data, target)) })
        }
        Assistant::File { file, data } => Some(Assistant::File { file, data: data.and_then(|data| own(data, target)) }),
        Assistant::Opaque { data } => own(data, target).map(|data| Assistant::Opaque { data }),
        Assistant::Text { text } => Some(Assistant::Text { text }),
    };
    let parts: Vec<_> = parts.into_iter().filter_map(part).collect();
    // Some servers reject an empty message.
    (!parts.is_empty()).then_some(Message::Assistant { parts, by })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Path, ProposedCall};

    fn answer() -> ModelResponse {
        let data = || Some(json!({ "sealed": 1 }));
        let call =
            ProposedCall { provider_id: None, name: "look".to_owned(), arguments: "{}".to_owned(), data: data() };
        let thought = Part::Reasoning { text: "hm".to_owned(), data: data() };
        let parts = vec![thought, Part::Opaque { data: json!({ "sealed": 1 }) }, Part::Call { index: 0 }];
        ModelResponse { parts, calls: vec![call], ..ModelResponse::default() }
    }

    /// Returns an answer as a message of the next request.
    fn message(response: &ModelResponse) -> Message {
        let parts = response.parts.iter().filter_map(|part| match part {
            Part::Call { .. } => {
                let call = response.calls[0].clone();
                let ProposedCall { name, arguments, data, .. } = call;
                Some(Assistant::Call { call: "1".to_owned(), name, arguments, data })
            }
            part => part.sent_back(),
        });
        Message::assistant(parts.collect())
    }

    fn request(messages: impl IntoIterator<Item = Message>, model: Option<&str>) -> ModelRequest {
        ModelRequest {
            path: Path::root().stage("Chat").iteration(0),
            attempt: 0,
            system: "".into(),
            context: [].into(),
            tools: Arc::default(),
            messages: Transcript::new(messages),
            settings: Arc::new(Settings { model: model.map(str::to_owned), ..Settings::default() }),
        }
    }

    /// Counts the private data in a request.
    fn sealed(request: &ModelRequest) -> usize {
        serde_json::to_string(&request.messages.messages()).unwrap().matches(r#"{"sealed":1}"#).count()
    }

    #[test]
    fn model_is_sent_only_its_own_data() {
        let (first, other) = (Target::First("a/first"), Target::Other("b/other"));
        for (answered_by, asked, count) in [
            (first, first, 3),
            (first, other, 0),
            (other, first, 0),
            (other, other, 3),
            (other, Target::Other("c/third"), 0),
        ] {
            let mut response = answer();
            mark(&mut response, answered_by);
            let request = request([message(&response)], None);
            let sent = sent(&request, asked);
            assert_eq!(sealed(&sent), count, "{answered_by:?} → {asked:?}");
            let text = serde_json::to_string(&sent.messages.messages()).unwrap();
            assert!(!text.contains(OF) && text.contains("look") && text.contains("hm"), "{text}");
        }
    }

    #[test]
    fn models_of_a_wrapper_within_a_wrapper_are_sent_their_own_data() {
        // The outer wrapper has the members a (with the inner members a and b) and c.
        let (a, b, c) = (Target::First("a"), Target::Other("b"), Target::Other("c"));
        for (answered_by, counts) in [([a, a], [3, 0, 0]), ([b, a], [0, 3, 0]), ([c, c], [0, 0, 3])] {
            let [inner, outer] = answered_by;
            let mut response = answer();
            if !matches!(outer, Target::Other(_)) {
                mark(&mut response, inner);
            }
            mark(&mut response, outer);
            let request = request([message(&response)], None);
            let found = [
                sealed(&sent(&sent(&request, a), a)),
                sealed(&sent(&sent(&request, a), b)),
                sealed(&sent(&request, c)),
            ];
            assert_eq!(found, counts, "{answered_by:?}");
        }
    }

    #[test]
    fn request_of_the_first_model_is_unchanged_and_its_name_is_not_sent_to_others() {
        let plain = request([message(&answer())], Some("gpt-5"));

        assert!(matches!(sent(&plain, Target::First("a/first")), Cow::Borrowed(_)));
        assert_eq!(sent(&plain, Target::Other("b/other")).settings.model, None);
        assert!(matches!(sent(&request([], None), Target::Other("b/other")), Cow::Borrowed(_)));
    }

    #[test]
    fn message_with_only_private_items_of_others_is_omitted() {
        let opaque = Message::assistant(vec![Assistant::Opaque { data: json!(7) }]);

        assert_eq!(sent(&request([opaque], None), Target::Other("b/other")).messages.len(), 0);
    }
}
