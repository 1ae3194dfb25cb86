//! `/chat/completions`, as one answer or as a stream of its pieces.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::response::Response;
use futures::stream::{BoxStream, StreamExt as _, unfold};
use positronic_core::record::{Seq, Usage};
use positronic_server::extension::{Frame, RequestContext, Route};
use positronic_server::{Problem, ProblemType, Scope};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::error::{error, failed, refused};
use super::history::{Remembered, TurnAnswer, unsaid};
use super::input::CompletionRequest;
use super::speech::{AskedCall, Speech, TurnEnd};
use super::turn::{TurnOpening, begin, by_history, named, speech};
use crate::shared::{MAX_BODY, Shared};

/// A chat completion of OpenAI's API.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "OpenAiCompletion")]
struct Completion {
    id: String,
    object: &'static str,
    created: i64,
    model: String,
    choices: Value,
    usage: Value,
}

pub(super) fn routes(shared: &Arc<Shared>) -> Vec<Route> {
    let shared = Arc::clone(shared);
    let handler = move |cx| {
        let shared = Arc::clone(&shared);
        async move {
            let cx = Arc::new(cx);
            Ok(complete(&shared, &cx).await.unwrap_or_else(refused))
        }
    };
    vec![
        Route::post("/api/v1/openai/v1/chat/completions", "Answer a chat completion of OpenAI's API", handler)
            .scopes(&[Scope::Run])
            .takes::<CompletionRequest>()
            .max_body(MAX_BODY)
            .waits()
            .returns::<Completion>(200)
            .streams()
            .problems(&[
                ProblemType::NotAllowed,
                ProblemType::NotFound,
                ProblemType::UnknownBrain,
                ProblemType::OptionsInvalid,
                ProblemType::NotWaiting,
                ProblemType::Unprocessable,
                ProblemType::TooManyStreams,
            ]),
    ]
}

/// What all pieces of an answer have.
struct ChunkHeader {
    id: String,
    created: i64,
    model: String,
}

/// Returns what a turn has answered.
fn answered<'a>(text: &'a str, end: &'a TurnEnd) -> TurnAnswer<'a> {
    let (calls, refusal): (&[AskedCall], _) = match end {
        TurnEnd::Called(calls) => (calls, None),
        TurnEnd::Waiting(refusal) => (&[], Some(refusal.as_str())),
        TurnEnd::Completed | TurnEnd::CutOff | TurnEnd::Failed(_) | TurnEnd::Cancelled | TurnEnd::Broken(_) => {
            (&[], None)
        }
    };
    TurnAnswer { text, calls, refusal }
}

async fn complete(shared: &Shared, cx: &Arc<RequestContext>) -> Result<Response, Problem> {
    let request: CompletionRequest = cx.json()?;
    request.check()?;
    let newest = request.newest()?;
    let said = unsaid(cx, &request.model, &newest).await?;
    let opening = TurnOpening {
        brain: &request.model,
        newest: &said,
        options: request.options.clone(),
        caller_tools: request.caller_tools()?,
        asked: newest.last_calls(),
        program: &shared.program,
    };
    let named = named(cx, request.metadata.as_ref());
    let turn = match &named {
        Some(conversation) => begin(cx, conversation, opening, None).await?,
        None => by_history(cx, opening).await?,
    };
    let row = cx.run_row(&turn.run).await?;
    let created = row.started.0 / 1_000_000;
    let header = ChunkHeader { id: id(turn.run.as_str(), turn.from), created, model: request.model.clone() };
    let remembered = Remembered { cx: Arc::clone(cx), newest, conversation: turn.conversation };
    let speech = speech(cx, shared, &row, turn.from).await?.boxed();
    if request.stream == Some(true) {
        let usage = request.stream_options.is_some_and(|options| options.include_usage);
        return cx.stream(frames(speech, header, remembered, usage));
    }
    let (text, over) = cx.wait(whole(speech)).await?;
    let (end, usage) = over.ok_or(ProblemType::TimedOut)?;
    remembered.remember(&header.model, answered(&text, &end)).await;
    let (calls, refusal, finish_reason) = match end {
        TurnEnd::Completed => (Vec::new(), None, "stop"),
        TurnEnd::CutOff => (Vec::new(), None, "length"),
        TurnEnd::Called(asked) => (asked, None, "tool_calls"),
        TurnEnd::Waiting(refusal) => (Vec::new(), Some(refusal), "stop"),
        TurnEnd::Failed(message) => return failed(cx, "run_failed", &message),
        TurnEnd::Cancelled => return failed(cx, "run_cancelled", "the run was cancelled"),
        TurnEnd::Broken(message) => return failed(cx, "run_unavailable", &message),
    };
    let content = Some(text).filter(|text| !text.is_empty() || (refusal.is_none() && calls.is_empty()));
    let mut message = json!({ "role": "assistant", "content": content, "refusal": refusal });
    if let (false, Some(fields)) = (calls.is_empty(), message.as_object_mut()) {
        fields.insert("tool_calls".to_owned(), calls.iter().map(tool_call).collect());
    }
    let choice = json!({ "index": 0, "message": message, "finish_reason": finish_reason, "logprobs": null });
    let ChunkHeader { id, created, model } = header;
    let object = "chat.completion";
    cx.answer(200, &Completion { id, object, created, model, choices: json!([choice]), usage: usage_of(&usage) })
}

fn tool_call(AskedCall { id, tool, arguments }: &AskedCall) -> Value {
    json!({ "id": id, "type": "function", "function": { "name": tool, "arguments": arguments } })
}

fn id(run: &str, from: Seq) -> String {
    format!("chatcmpl-{run}-{from}")
}

/// Collects an answer.
async fn whole(mut speech: BoxStream<'static, Speech>) -> (String, Option<(TurnEnd, Usage)>) {
    let mut answer = String::new();
    while let Some(said) = speech.next().await {
        match said {
            Speech::Text { text, .. } => answer.push_str(&text),
            Speech::TextEnded { .. } => {}
            Speech::Over { end, usage } => return (answer, Some((end, usage))),
        }
    }
    (answer, None)
}

fn frames(
    speech: BoxStream<'static, Speech>,
    header: ChunkHeader,
    remembered: Remembered,
    with_usage: bool,
) -> impl futures::Stream<Item = Frame> + Send + 'static {
    let first = header.piece(&json!({ "role": "assistant", "content": "" }), None);
    let state = (speech, header, remembered, String::new(), VecDeque::from([first]));
    unfold(Some(state), move |state| async move {
        let (mut speech, header, remembered, mut answer, mut frames) = state?;
        loop {
            if let Some(frame) = frames.pop_front() {
                let is_last = frame == Frame::word("[DONE]");
                let next = (!is_last).then_some((speech, header, remembered, answer, frames));
                return Some((frame, next));
            }
            match speech.next().await? {
                Speech::Text { text, .. } => {
                    answer.push_str(&text);
                    frames.push_back(header.piece(&json!({ "content": text }), None));
                }
                Speech::TextEnded { .. } => {}
                Speech::Over { end, usage } => {
                    // The client may send the next message at once.
                    remembered.remember(&header.model, answered(&answer, &end)).await;
                    frames.extend(header.end(end, with_usage.then_some(&usage)));
                    frames.push_back(Frame::word("[DONE]"));
                }
            }
        }
    })
}

impl ChunkHeader {
    fn piece(&self, delta: &Value, finish_reason: Option<&str>) -> Frame {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": null });
        self.chunk(&json!([choice]), None)
    }

    fn chunk(&self, choices: &Value, usage: Option<&Usage>) -> Frame {
        let Self { id, created, model } = self;
        let mut chunk = json!({
            "id": id, "object": "chat.completion.chunk", "created": created, "model": model, "choices": choices,
        });
        if let (Some(usage), Some(fields)) = (usage, chunk.as_object_mut()) {
            fields.insert("usage".to_owned(), usage_of(usage));
        }
        Frame::json(&chunk)
    }

    fn end(&self, end: TurnEnd, usage: Option<&Usage>) -> Vec<Frame> {
        let mut frames = match end {
            TurnEnd::Completed => vec![self.piece(&json!({}), Some("stop"))],
            TurnEnd::CutOff => vec![self.piece(&json!({}), Some("length"))],
            TurnEnd::Called(calls) => {
                let pieces = (0..).zip(&calls).map(|(index, call): (u32, _)| {
                    let mut call = tool_call(call);
                    if let Some(fields) = call.as_object_mut() {
                        fields.insert("index".to_owned(), index.into());
                    }
                    self.piece(&json!({ "tool_calls": [call] }), None)
                });
                pieces.chain([self.piece(&json!({}), Some("tool_calls"))]).collect()
            }
            TurnEnd::Waiting(refusal) => vec![self.piece(&json!({ "refusal": refusal }), Some("stop"))],
            TurnEnd::Failed(message) => return vec![Frame::json(&error(&message, "run_error", "run_failed", None))],
            TurnEnd::Cancelled => {
                return vec![Frame::json(&error("the run was cancelled", "run_error", "run_cancelled", None))];
            }
            TurnEnd::Broken(message) => {
                return vec![Frame::json(&error(&message, "run_error", "run_unavailable", None))];
            }
        };
        frames.extend(usage.map(|usage| self.chunk(&json!([]), Some(usage))));
        frames
    }
}

fn usage_of(usage: &Usage) -> Value {
    json!({
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.total(),
        "prompt_tokens_details": { "cached_tokens": usage.cached },
        "completion_tokens_details": { "reasoning_tokens": usage.reasoning },
    })
}
