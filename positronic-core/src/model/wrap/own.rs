//! What a model gave for itself alone: sealed thoughts, signatures, items that only its provider understands.
//!
//! Providers refuse a whole request that holds another one's. So where several models answer in one loop, what any but the first
//! gave is kept as `{"of_model": name, "data": …}`, and each model is sent its own alone: the first what stands there plainly, another one
//! what bears its name. Loops in which only the first has answered hold nothing of the kind, and their requests are not touched.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::record::{Assistant, Message, ModelRequest, ModelResponse, Part, Settings, Transcript};

const OF: &str = "of_model";
const DATA: &str = "data";

/// Whom a request is for.
#[derive(Debug, Clone, Copy)]
pub(super) enum For<'a> {
    /// The model that is meant.
    First,
    /// One that answers in its place.
    Other(&'a str),
}

/// Marks what an answer holds for its model alone.
pub(super) fn mark(response: &mut ModelResponse, whose: For<'_>) {
    let For::Other(name) = whose else { return };
    let seal = |data: &mut Value| *data = json!({ OF: name, DATA: data.take() });
    for part in &mut response.parts {
        match part {
            Part::Reasoning { data: Some(data), .. } | Part::Opaque { data } => seal(data),
            Part::Text { .. } | Part::Refusal { .. } | Part::Reasoning { data: None, .. } | Part::Call { .. } => {}
        }
    }
    response.calls.iter_mut().filter_map(|call| call.data.as_mut()).for_each(seal);
}

/// Returns the request as a model is sent it: without what others gave, and, unless it is the first, without the name of the
/// first's model.
pub(super) fn sent<'a>(request: &'a ModelRequest, whom: For<'_>) -> Cow<'a, ModelRequest> {
    let renames = matches!(whom, For::Other(_)) && request.settings.model.is_some();
    let holds = request.messages.read().iter().any(|entry| is_touched(&entry.message, whom));
    if !renames && !holds {
        return Cow::Borrowed(request);
    }
    let mut own = request.clone();
    if renames {
        own.settings = Arc::new(Settings { model: None, ..Settings::clone(&own.settings) });
    }
    if holds {
        own.messages =
            Transcript::new(request.messages.messages().into_iter().filter_map(|message| told(message, whom)));
    }
    Cow::Owned(own)
}

/// Says whose a datum is: none for the first model's.
fn owner(data: &Value) -> Option<&str> {
    let fields = data.as_object().filter(|fields| fields.len() == 2 && fields.contains_key(DATA))?;
    fields.get(OF)?.as_str()
}

/// Returns the data that a model is sent of this.
fn own(data: Value, whom: For<'_>) -> Option<Value> {
    match (owner(&data), whom) {
        (None, For::First) => Some(data),
        (Some(owner), For::Other(name)) if owner == name => match data {
            Value::Object(mut fields) => fields.remove(DATA),
            _ => None,
        },
        _ => None,
    }
}

fn is_touched(message: &Message, whom: For<'_>) -> bool {
    let touched = |data: &Value| matches!(whom, For::Other(_)) || owner(data).is_some();
    match message {
        Message::Assistant { parts } => parts.iter().any(|part| match part {
            Assistant::Reasoning { data, .. } | Assistant::Call { data, .. } => data.as_ref().is_some_and(touched),
            Assistant::Opaque { data } => touched(data),
            Assistant::Text { .. } => false,
        }),
        Message::User { .. } | Message::Tool { .. } => false,
    }
}

fn told(message: Message, whom: For<'_>) -> Option<Message> {
    let Message::Assistant { parts } = message else { return Some(message) };
    let part = |part| match part {
        Assistant::Reasoning { text, data } => {
            Some(Assistant::Reasoning { text, data: data.and_then(|data| own(data, whom)) })
        }
        Assistant::Call { call, name, arguments, data } => {
            Some(Assistant::Call { call, name, arguments, data: data.and_then(|data| own(data, whom)) })
        }
        Assistant::Opaque { data } => own(data, whom).map(|data| Assistant::Opaque { data }),
        Assistant::Text { text } => Some(Assistant::Text { text }),
    };
    let parts: Vec<_> = parts.into_iter().filter_map(part).collect();
    // A message of nothing is refused by some servers.
    (!parts.is_empty()).then_some(Message::Assistant { parts })
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

    /// The message that an answer goes back as.
    fn message(response: &ModelResponse) -> Message {
        let parts = response.parts.iter().map(|part| match part.clone() {
            Part::Text { text } | Part::Refusal { text } => Assistant::Text { text },
            Part::Reasoning { text, data } => Assistant::Reasoning { text, data },
            Part::Opaque { data } => Assistant::Opaque { data },
            Part::Call { .. } => {
                let call = response.calls[0].clone();
                let ProposedCall { name, arguments, data, .. } = call;
                Assistant::Call { call: "1".to_owned(), name, arguments, data }
            }
        });
        Message::Assistant { parts: parts.collect() }
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

    /// Counts what is sent of the sealed data.
    fn sealed(request: &ModelRequest) -> usize {
        serde_json::to_string(&request.messages.messages()).unwrap().matches(r#"{"sealed":1}"#).count()
    }

    #[test]
    fn each_model_is_sent_its_own_data_alone() {
        let (first, other) = (For::First, For::Other("b/other"));
        for (answered_by, asked, kept) in [
            (first, first, 3),
            (first, other, 0),
            (other, first, 0),
            (other, other, 3),
            (other, For::Other("c/third"), 0),
        ] {
            let mut response = answer();
            mark(&mut response, answered_by);
            let request = request([message(&response)], None);
            let sent = sent(&request, asked);
            assert_eq!(sealed(&sent), kept, "{answered_by:?} → {asked:?}");
            let text = serde_json::to_string(&sent.messages.messages()).unwrap();
            assert!(!text.contains(OF) && text.contains("look") && text.contains("hm"), "{text}");
        }
    }

    #[test]
    fn a_request_of_the_first_alone_is_not_touched_and_its_name_stays_with_it() {
        let plain = request([message(&answer())], Some("gpt-5"));

        assert!(matches!(sent(&plain, For::First), Cow::Borrowed(_)));
        assert_eq!(sent(&plain, For::Other("b/other")).settings.model, None);
        assert!(matches!(sent(&request([], None), For::Other("b/other")), Cow::Borrowed(_)));
    }

    #[test]
    fn a_message_of_sealed_items_alone_is_left_out() {
        let opaque = Message::Assistant { parts: vec![Assistant::Opaque { data: json!(7) }] };

        assert_eq!(sent(&request([opaque], None), For::Other("b/other")).messages.len(), 0);
    }
}
