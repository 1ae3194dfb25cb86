//! The events of a streamed response.

use std::collections::VecDeque;

use futures::stream::{BoxStream, Stream, StreamExt as _, unfold};
use positronic_server::extension::Frame;
use serde_json::{Value, json};

use super::history::{Remembered, TurnAnswer};
use super::response::{Growth, ResponseObject, text_part};
use super::speech::Speech;

/// Encodes a response as it grows.
struct Events {
    response: ResponseObject,
    /// The number of the next event.
    next: u64,
    /// The text in progress.
    text: String,
}

/// Returns the events of a response.
pub(super) fn events(
    speech: BoxStream<'static, Speech>,
    response: ResponseObject,
    remembered: Remembered,
) -> impl Stream<Item = Frame> + Send + 'static {
    let mut events = Events { response, next: 0, text: String::new() };
    let created = events.whole("response.created");
    let first = VecDeque::from([created, events.whole("response.in_progress")]);
    unfold((speech, events, first, remembered), |(mut speech, mut events, mut frames, remembered)| async move {
        loop {
            if let Some(frame) = frames.pop_front() {
                return Some((frame, (speech, events, frames, remembered)));
            }
            let said = speech.next().await?;
            let is_over = matches!(said, Speech::Over { .. });
            let grown = events.response.add(said);
            if is_over {
                // The client may send the next request at once.
                let response = &events.response;
                remembered
                    .remember(
                        &response.model,
                        TurnAnswer { text: &response.text(), calls: &response.asked, refusal: None },
                    )
                    .await;
            }
            for grown in grown {
                frames.extend(events.grown(grown));
            }
        }
    })
}

impl Events {
    fn grown(&mut self, grown: Growth) -> Vec<Frame> {
        match grown {
            Growth::Text { index, is_new, piece } => {
                let mut frames = Vec::new();
                if is_new {
                    self.text.clear();
                    frames.extend(self.begin(index, &text_part("")));
                }
                self.text.push_str(&piece);
                frames.push(self.part("response.output_text.delta", index, json!({ "delta": piece, "logprobs": [] })));
                frames
            }
            Growth::TextDone { index } => {
                let text = std::mem::take(&mut self.text);
                let done = self.part("response.output_text.done", index, json!({ "text": text, "logprobs": [] }));
                [vec![done], self.end(index, &text_part(&text))].concat()
            }
            Growth::Called { index, call } => {
                let begun = self.response.call_item(index, &call, "", "in_progress");
                let done = self.response.call_item(index, &call, &call.arguments, "completed");
                let (id, arguments) = (self.response.item_id(index), &call.arguments);
                let delta = json!({ "item_id": id, "output_index": index, "delta": arguments });
                let whole = json!({ "item_id": id, "output_index": index, "name": call.tool, "arguments": arguments });
                vec![
                    self.event("response.output_item.added", json!({ "output_index": index, "item": begun })),
                    self.event("response.function_call_arguments.delta", delta),
                    self.event("response.function_call_arguments.done", whole),
                    self.event("response.output_item.done", json!({ "output_index": index, "item": done })),
                ]
            }
            Growth::Refused { index, refusal } => {
                let part = |refusal: &str| json!({ "type": "refusal", "refusal": refusal });
                let begin = self.begin(index, &part(""));
                let delta = self.part("response.refusal.delta", index, json!({ "delta": refusal }));
                let done = self.part("response.refusal.done", index, json!({ "refusal": refusal }));
                [begin, vec![delta, done], self.end(index, &part(&refusal))].concat()
            }
            Growth::Over => vec![match self.response.status {
                "completed" => self.whole("response.completed"),
                "incomplete" => self.whole("response.incomplete"),
                // The protocol has no event for a cancelled response.
                _ => self.whole("response.failed"),
            }],
        }
    }

    fn begin(&mut self, index: usize, part: &Value) -> Vec<Frame> {
        let item = self.response.item(index, &[], "in_progress");
        let added = self.event("response.output_item.added", json!({ "output_index": index, "item": item }));
        vec![added, self.part("response.content_part.added", index, json!({ "part": part }))]
    }

    fn end(&mut self, index: usize, part: &Value) -> Vec<Frame> {
        let item = self.response.item(index, std::slice::from_ref(part), "completed");
        let done = self.part("response.content_part.done", index, json!({ "part": part }));
        vec![done, self.event("response.output_item.done", json!({ "output_index": index, "item": item }))]
    }

    /// Returns an event about the only part of an item.
    fn part(&mut self, kind: &str, index: usize, mut fields: Value) -> Frame {
        if let Some(fields) = fields.as_object_mut() {
            fields.insert("item_id".to_owned(), self.response.item_id(index).into());
            fields.insert("output_index".to_owned(), index.into());
            fields.insert("content_index".to_owned(), 0.into());
        }
        self.event(kind, fields)
    }

    fn whole(&mut self, kind: &str) -> Frame {
        let response = json!({ "response": self.response });
        self.event(kind, response)
    }

    fn event(&mut self, kind: &str, mut fields: Value) -> Frame {
        if let Some(fields) = fields.as_object_mut() {
            fields.insert("type".to_owned(), kind.into());
            fields.insert("sequence_number".to_owned(), self.next.into());
        }
        self.next += 1;
        Frame::json(&fields)
    }
}
