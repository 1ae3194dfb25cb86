//! The AI SDK's UI message stream, for `useChat`: `POST /api/v1/ai-sdk/{title}`, where the title is that of a brain,
//! `GET /api/v1/ai-sdk/{title}/{chat}/stream` to resume a stream, and `GET /api/v1/ai-sdk/{title}/{chat}` for the messages of a chat.
//!
//! A chat is a conversation. An approval ends the stream; with `lastAssistantMessageIsCompleteWithApprovalResponses` the client sends the
//! message again once the user has answered, and the answers are read from its parts. Meanwhile it may wait for what others decide: a
//! request to resume with `?run=…&seq=…` is answered once the run has gone on; both are in the message's metadata.

mod chunk;
mod encoder;
mod input;
mod messages;
mod parts;

use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use futures::StreamExt as _;
use positronic_core::record::{RunSummary, Seq};
use positronic_core::runner::RunUpdate;
use positronic_server::extension::{Decision, RequestContext, Route, ThreadMessage};
use positronic_server::{Problem, ProblemType, Scope};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::decisions::{Decisions, RefusedAnswer, check_answers, concerns_answer};
use crate::history::{History, LogReader, history};
use crate::leg::Leg;
use crate::projection::Projection;
use crate::shared::{MAX_BODY, Shared, TEXT};
use crate::thread::{Thread, text_question, with_place_of_options};
use encoder::{AiSdk, TurnKind};
use input::ChatRequest;
use messages::{LoadedMessage, LoadedRun};

/// The version of the stream.
const HEADER: (&str, &str) = ("x-vercel-ai-ui-message-stream", "v1");
/// How long a request waits for a run to go on. Some proxies end a request without an answer after 30 seconds.
const WATCH: Duration = Duration::from_secs(25);

/// What a client knows of a run, so that its request waits until there is more.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ResumeQuery {
    /// The run of the message, from its metadata; the last one of the chat by default.
    run: Option<String>,
    /// The number of the first event that the message does not show, from its metadata; 0 for a page that has no message.
    seq: Option<u64>,
}

pub(crate) fn routes(shared: &Arc<Shared>) -> Vec<Route> {
    let (for_post, for_get) = (Arc::clone(shared), Arc::clone(shared));
    let messages = Route::get("/api/v1/ai-sdk/{title}/{chat}", "Get the messages of a chat", messages)
        .scopes(&[Scope::Read])
        .returns::<Vec<LoadedMessage>>(200)
        .problems_as(TEXT, Problem::message)
        .problems(&[ProblemType::NotFound, ProblemType::UnknownBrain]);
    vec![
        messages,
        Route::post("/api/v1/ai-sdk/{title}", "Answer a chat of the AI SDK", move |cx| post(Arc::clone(&for_post), cx))
            .scopes(&[Scope::Read])
            .takes::<ChatRequest>()
            .max_body(MAX_BODY)
            .streams()
            .problems_as(TEXT, Problem::message)
            .problems(&[
                ProblemType::ScopeMissing,
                ProblemType::NotAllowed,
                ProblemType::NotAnApprover,
                ProblemType::NotFound,
                ProblemType::UnknownBrain,
                ProblemType::UnknownCall,
                ProblemType::OptionsInvalid,
                ProblemType::NotWaiting,
                ProblemType::Unprocessable,
                ProblemType::TooManyStreams,
            ]),
        Route::get("/api/v1/ai-sdk/{title}/{chat}/stream", "Resume the stream of a chat", move |cx| {
            resume(Arc::clone(&for_get), cx)
        })
        .scopes(&[Scope::Read])
        .query::<ResumeQuery>()
        .waits()
        .streams()
        .returns_nothing(204)
        .problems_as(TEXT, Problem::message)
        .problems(&[ProblemType::NotFound, ProblemType::UnknownBrain, ProblemType::TooManyStreams]),
    ]
}

async fn post(shared: Arc<Shared>, cx: RequestContext) -> Result<Response, Problem> {
    let input: ChatRequest = cx.json()?;
    if input.trigger.as_deref() == Some("regenerate-message") {
        let detail = "an answer cannot be made again here; fork the run";
        return Err(Problem::new(ProblemType::Unprocessable).detail(detail));
    }
    let said = input.said()?;
    let thread = Thread::find(&cx, &input.id).await?;
    let is_answer = said.is_empty() || !input.answers.is_empty();
    let (leg, mut encoder) = match (thread.last(), thread.unsaid(&cx, said).await?) {
        (Some(row), None) if is_answer => (shared.attach(row), AiSdk::new(TurnKind::Rest)),
        (Some(row), None) => {
            let (from, turn) = last_turn(&cx, row).await?;
            (shared.from(row.run.clone(), from), AiSdk::new(turn))
        }
        // Before the answers, so that a run which waits for them has the message when it goes on.
        (last, message) => match (send(&cx, &shared, (&thread, &input), message).await, last) {
            (Err(problem), Some(row)) if is_answer && problem.kind() == ProblemType::NotWaiting => {
                let refused = RefusedAnswer { question: input.id.clone(), problem };
                (shared.attach(row), AiSdk::new(TurnKind::Message).with_refused_answers(vec![refused]))
            }
            (sent, _) => sent?,
        },
    };
    let mut leg = leg;
    if let Some(row) = thread.last().filter(|_| is_answer) {
        encoder = encoder.with_refused_answers(answered(&cx, (&thread, row), &input, &mut leg).await?);
    }
    stream(&cx, &shared, leg, encoder).await
}

/// Sends a message to a chat: as the answer to a question for a text, if the request has no other one to it.
async fn send(
    cx: &RequestContext,
    shared: &Shared,
    (thread, input): (&Thread, &ChatRequest),
    message: Option<(&str, String)>,
) -> Result<(Leg, AiSdk), Problem> {
    if let (Some(row), Some((_, text))) = (thread.last(), &message)
        && let Some(question) = text_question(cx, row).await?
        && !input.answers.contains_key(&question)
    {
        let mut decisions = Decisions::new(cx);
        decisions.check_scope(row, &question)?;
        let leg = shared.attach(row);
        let reply = Decision::Reply { payload: text.as_str().into(), wait: None };
        decisions.send(row, &question, reply, &format!("{}/{question}/{text}", input.id)).await?;
        return Ok((leg, AiSdk::new(TurnKind::Message)));
    }
    if !thread.is_conversation() {
        let detail = "the chat is a run outside of a conversation, which takes no messages here";
        return Err(Problem::new(ProblemType::NotWaiting).detail(detail));
    }
    if message.is_none() && input.options.is_none() {
        let detail = "the chat has not begun: send a user's message, or `options`";
        return Err(Problem::new(ProblemType::Unprocessable).detail(detail));
    }
    let (id, text) = message.map_or((input.id.as_str(), None), |(id, text)| (id, Some(text)));
    let sent = ThreadMessage::builder().thread(&input.id).brain(cx.param("title")?).id(id).text(text);
    let sent = cx.send(sent.options(input.options.clone()).build()).await;
    let sent = sent.map_err(|problem| with_place_of_options(problem, "`options` in the body"))?;
    let turn = if sent.from == Seq(0) { TurnKind::First } else { TurnKind::Message };
    Ok((shared.from(sent.run, sent.from), AiSdk::new(turn)))
}

/// Finds the chat in the path. One that has not begun is one of a brain of this server.
async fn chat(cx: &RequestContext) -> Result<Thread, Problem> {
    let thread = Thread::find(cx, cx.param("chat")?).await?;
    if thread.last().is_none() {
        cx.has_brain(cx.param("title")?)?;
    }
    Ok(thread)
}

/// Replays the message of the last turn, and continues with what happens now. For a client that knows the message up to an event, it
/// waits until the run has that event.
async fn resume(shared: Arc<Shared>, cx: RequestContext) -> Result<Response, Problem> {
    let (known, thread) = (cx.query::<ResumeQuery>()?, chat(&cx).await?);
    let Some(row) = thread.last() else { return Ok(cx.no_content()) };
    let is_news = match known {
        ResumeQuery { run: Some(_), seq: None } => {
            return Err(Problem::new(ProblemType::InvalidQuery)
                .detail("`run` needs a `seq`; both are in the message's metadata"));
        }
        ResumeQuery { run, seq: Some(seq) } if run.as_ref().is_none_or(|run| **run == *row.run.as_str()) => {
            has_new_event(&cx, row, Seq(seq)).await?
        }
        // The chat has a further run.
        ResumeQuery { run: Some(_), .. } => true,
        ResumeQuery { run: None, .. } => !row.status.is_over(),
    };
    if !is_news {
        return Ok(cx.no_content());
    }
    let (from, turn) = last_turn(&cx, row).await?;
    stream(&cx, &shared, shared.from(row.run.clone(), from), AiSdk::new(turn)).await
}

/// Returns the messages of a chat, of its latest runs, as far as they fit; none if it has not begun.
async fn messages(cx: RequestContext) -> Result<Response, Problem> {
    let thread = chat(&cx).await?;
    let viewer = cx.viewer()?;
    let History { mut messages, left_out } =
        history(cx.client(), thread.rows(), |run| LoadedRun::new(run, viewer.clone())).await?;
    if let Some(first) = messages.first_mut().filter(|_| left_out > 0) {
        first.leave_out(left_out);
    }
    cx.answer(200, &messages)
}

/// Returns the event with which the last message of the assistant begins.
async fn last_turn(cx: &RequestContext, row: &RunSummary) -> Result<(Seq, TurnKind), Problem> {
    let mut projection = Projection::new(&row.run, cx.viewer()?, None);
    let mut turn = (Seq(0), TurnKind::First);
    let mut log = LogReader::new(cx.client(), &row.run);
    while let Some(events) = log.next().await? {
        for event in events {
            if projection.event(&event).iter().any(|placed| placed.item.turn_message().is_some()) {
                turn = (event.seq, TurnKind::Message);
            }
        }
    }
    Ok(turn)
}

/// Waits until a run has an event that a client can see, and returns whether it got it in time.
async fn has_new_event(cx: &RequestContext, row: &RunSummary, seq: Seq) -> Result<bool, Problem> {
    let mut updates = cx.client().follow(&row.run, seq);
    let grown = async {
        while let Some(update) = updates.next().await {
            if let RunUpdate::Event(event) = update?
                && !event.kind.is_about_workers()
            {
                return Ok(true);
            }
        }
        Ok(false)
    };
    let grown = cx.wait(tokio::time::timeout(WATCH, grown)).await?;
    grown.unwrap_or(Ok(false))
}

async fn stream(cx: &RequestContext, shared: &Shared, leg: Leg, encoder: AiSdk) -> Result<Response, Problem> {
    let frames = leg.open(cx.viewer()?, shared.public_state.clone(), encoder).await?;
    cx.stream_with_header(HEADER, frames)
}

/// Sends the decisions and the answers of a request to the runs that have asked. If the run of the leg has recorded another decision than
/// that of the client, the leg begins with that one, which the client does not have yet.
async fn answered(
    cx: &RequestContext,
    (thread, row): (&Thread, &RunSummary),
    input: &ChatRequest,
    leg: &mut Leg,
) -> Result<Vec<RefusedAnswer>, Problem> {
    let mut refused = Vec::new();
    let approvals = input.decided().map(|(approval, approved)| {
        let decision = if approved {
            Decision::Approve { arguments: input.edited_arguments.get(&approval.id).cloned() }
        } else {
            Decision::Reject { reason: approval.reason.clone().filter(|reason| !reason.trim().is_empty()) }
        };
        (approval.id.as_str(), decision)
    });
    let replies =
        input.answers.iter().map(|(id, answer)| (id.as_str(), Decision::Reply { payload: answer.clone(), wait: None }));
    let answers: Vec<_> = approvals.chain(replies).collect();
    check_answers(answers.len())?;
    let askers = thread.askers(cx, answers.iter().map(|(id, _)| *id).collect()).await?;
    let mut decisions = Decisions::new(cx);
    for (id, decision) in answers {
        let asker = askers.get(id).copied();
        // The same answer is the same decision, however often it is sent.
        let key = format!("{}/{id}/{decision:?}", input.id);
        let sent = match (decisions.check_scope(row, id), asker) {
            (Ok(()), Some(asker)) => decisions.send(asker, id, decision, &key).await,
            (Ok(()), None) => Err(decisions.refuse_unknown(row, id)),
            (refused, _) => refused,
        };
        match sent {
            Ok(()) => {}
            Err(problem) if concerns_answer(problem.kind()) => {
                let answer = RefusedAnswer { question: id.to_owned(), problem };
                let decided = answer.decided_at().filter(|_| asker.is_some_and(|asker| asker.run == leg.run));
                leg.start = decided.map_or(leg.start, |decided| decided.min(leg.start));
                refused.push(answer);
            }
            Err(problem) => return Err(problem),
        }
    }
    Ok(refused)
}
