//! Events of requests to models.

use positronic_core::record::{
    CODE, Event, EventKind, ModelErrorKind, Question, ResponseMetadata, Settings, Timestamp,
};
use serde::Serialize;

use super::open::{OpenSpan, OpenSpans, SpanRole};
use super::span::{Chat, Operation, Outcome};

pub(super) fn model_event(spans: &mut OpenSpans, event: &Event) {
    let path = &event.path;
    match &event.kind {
        EventKind::LoopModelCall { attempt, model, question } => {
            if model == CODE {
                return;
            }
            let mut chat = chat(spans, event, question.as_ref());
            let (provider, name) = model.split_once('/').unwrap_or(("", model));
            (chat.provider, chat.attempt) = (provider.to_owned(), *attempt);
            if chat.model.is_empty() {
                name.clone_into(&mut chat.model);
            }
            spans.begin(path, SpanRole::Chat, (event.seq, event.at), Operation::Chat(Box::new(chat)));
        }
        EventKind::LoopModelResult { parts, metadata, duration } => {
            chat_end(spans, event, Outcome::Done, Some(metadata), |chat| {
                (chat.parts, chat.measured) = (Some(parts.clone()), Some(*duration));
            });
        }
        EventKind::LoopAnswerRefused { message, parts, metadata, duration, .. } => {
            let outcome = Outcome::failure("answer_refused", message.clone());
            chat_end(spans, event, outcome, Some(metadata), |chat| {
                (chat.parts, chat.measured) = (Some(parts.clone()), Some(*duration));
                chat.retried = true;
            });
        }
        EventKind::LoopAnswerBroken { metadata } => {
            if let Some(OpenSpan { operation: Operation::Chat(chat), .. }) = spans.find(path, SpanRole::Chat) {
                chat.broken.push((**metadata).clone());
            }
        }
        EventKind::LoopModelRetry { error, .. } => {
            let outcome = Outcome::failure(kind(error.kind), error.message.clone());
            chat_end(spans, event, outcome, None, |chat| {
                (chat.error, chat.retried) = (Some(error.clone()), true);
            });
        }
        _ => {}
    }
}

fn chat(spans: &OpenSpans, event: &Event, question: Option<&Question>) -> Chat {
    let of = |settings: &Settings| Chat {
        model: settings.model.clone().unwrap_or_default(),
        temperature: settings.temperature,
        max_tokens: settings.max_output_tokens,
        ..Chat::default()
    };
    if let Some(question) = question {
        let system = Some(question.system.as_str()).filter(|system| !system.is_empty()).map(Into::into);
        return Chat { system, question: Some(question.text.clone()), ..of(&question.settings) };
    }
    let Some(open) = event.path.parent().and_then(|stage| spans.loops.get(&stage)) else { return Chat::default() };
    let chat = open.settings.current.as_ref().map(of).unwrap_or_default();
    Chat { system: open.system.current.clone(), ..chat }
}

fn chat_end(
    spans: &mut OpenSpans,
    event: &Event,
    outcome: Outcome,
    metadata: Option<&ResponseMetadata>,
    complete: impl FnOnce(&mut Chat),
) {
    let path = &event.path;
    let at: Timestamp = event.at;
    spans.end(path, SpanRole::Chat, at, outcome, |open| {
        let OpenSpan { operation: Operation::Chat(chat), .. } = open else { return };
        if let Some(metadata) = metadata {
            chat.provider.clone_from(&metadata.provider);
            if !metadata.model.is_empty() {
                chat.model.clone_from(&metadata.model);
            }
            chat.answer = Some(metadata.clone());
        }
        complete(chat);
    });
    let Some(metadata) = metadata.filter(|metadata| metadata.provider != CODE) else { return };
    for open in spans.open.iter_mut().filter(|open| path.is_within(&open.path)) {
        if let Operation::Agent(agent) = &mut open.operation
            && agent.provider.is_none()
        {
            agent.provider = Some(metadata.provider.clone());
        }
    }
}
/// Returns the name of a value of a list, as in the log.
pub(crate) fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => "other".to_owned(),
    }
}

fn kind(kind: ModelErrorKind) -> String {
    word(&kind)
}
