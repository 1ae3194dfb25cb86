//! AG-UI 1.0 over server-sent events: `POST /api/v1/ag-ui/{title}`, where the title is that of a brain.
//!
//! A thread is a conversation; its legs are what the protocol calls runs. What waits for people ends a leg with interrupts, and the
//! next leg brings the answers in `resume`:
//!
//! ```text
//! POST {messages: […, user]} ──▶ RUN_STARTED … RUN_FINISHED {outcome: interrupt, interrupts: [{id, responseSchema}]}
//! POST {resume: [{interruptId, status: resolved, payload}]} ──▶ RUN_STARTED, MESSAGES_SNAPSHOT … RUN_FINISHED {outcome: success}
//! POST {resume: [{interruptId, status: resolved}]} ──▶ waits for what others decide
//! POST {messages: […, user], tools} ──▶ RUN_STARTED … TOOL_CALL_END, RUN_FINISHED {outcome: success, pendingToolCallIds}
//! POST {messages: […, tool]} ──▶ RUN_STARTED, MESSAGES_SNAPSHOT …
//! POST {messages: []} ──▶ attaches to the thread: the messages, and what happens now
//! ```

mod earlier_run;
mod encoder;
mod event;
mod input;
mod interrupt;
mod leg_end;
mod messages;

use std::sync::Arc;

use axum::response::Response;
use positronic_core::record::RunSummary;
use positronic_server::extension::{RequestContext, Route, SentTo, ThreadMessage};
use positronic_server::{Problem, ProblemType, Scope};
use serde_json::Value;

use crate::answer_form::decision;
use crate::decisions::{Decisions, RefusedAnswer, check_answers, concerns_answer};
use crate::history::history;
use crate::leg::Leg;
use crate::shared::{MAX_BODY, Shared, TEXT};
use crate::thread::{Thread, open_calls, question, with_place_of_options};
use earlier_run::EarlierRun;
use encoder::AgUi;
use input::{ResumeStatus, RunAgentInput};

pub(crate) fn routes(shared: &Arc<Shared>) -> Vec<Route> {
    let shared = Arc::clone(shared);
    let leg = move |cx| leg(Arc::clone(&shared), cx);
    vec![
        Route::post("/api/v1/ag-ui/{title}", "Run a brain as an agent of AG-UI", leg)
            .scopes(&[Scope::Read])
            .takes::<RunAgentInput>()
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
    ]
}

async fn leg(shared: Arc<Shared>, cx: RequestContext) -> Result<Response, Problem> {
    let input: RunAgentInput = cx.json()?;
    let said = input.said()?;
    let thread = Thread::find(&cx, &input.thread_id).await?;
    let mut encoder = AgUi::new(input.thread_id.clone(), input.run_id.clone());
    let title = cx.param("title")?;
    let takes_tools = cx.brains()?.iter().any(|brain| brain.title == title && brain.takes_caller_tools());
    if let Some(row) = thread.last() {
        record_results(&cx, row, &input).await?;
    }
    let mut leg = thread.last().map(|row| shared.attach(row));
    let mut refused = Vec::new();
    let message = thread.unsaid(&cx, said).await?;
    let options = input.forwarded_props.get("options").filter(|options| !options.is_null()).cloned();
    if thread.last().is_none() && message.is_none() && options.is_none() {
        let detail = "the thread has not begun: send a user's message, or `forwardedProps.options`";
        return Err(Problem::new(ProblemType::Unprocessable).detail(detail));
    }
    if thread.last().is_none() || message.is_some() {
        let (id, text) = message.map_or((input.run_id.as_str(), None), |(id, text)| (id, Some(text)));
        let sent = ThreadMessage::builder().thread(&input.thread_id).brain(title);
        let caller_tools = takes_tools.then(|| input.caller_tools()).transpose()?;
        let sent = sent.id(id).text(text.clone()).options(options).caller_tools(caller_tools).build();
        // Before the answers, so that a run which waits for them has the message when it goes on.
        match send(&cx, &thread, sent).await {
            Ok(sent) => {
                encoder = encoder.own_message(id, text);
                leg = leg.filter(|leg| input.has_answers() && leg.run == sent.run);
                leg = leg.or_else(|| Some(shared.from(sent.run, sent.from)));
            }
            Err(problem) if input.has_answers() && problem.kind() == ProblemType::NotWaiting => {
                refused.push(RefusedAnswer { question: id.to_owned(), problem });
            }
            Err(problem) => return Err(problem),
        }
    }
    let Some(mut leg) = leg else { return Err(ProblemType::Internal.into()) };
    if let Some(row) = thread.last() {
        refused.extend(resume(&cx, row, &input, &mut leg).await?);
    }
    leg.answers_calls = takes_tools;
    let viewer = cx.viewer()?;
    let earlier = match thread.rows() {
        [own, earlier @ ..] if own.run == leg.run => earlier,
        earlier => earlier,
    };
    let earlier = history(cx.client(), earlier, |run| EarlierRun::new(run, viewer.clone())).await?;
    let encoder = encoder.with_refused_answers(refused).with_history(earlier);
    let frames = leg.open(viewer, shared.public_state.clone(), encoder).await?;
    cx.stream(frames)
}

/// Sends a message to a thread.
async fn send(cx: &RequestContext, thread: &Thread, message: ThreadMessage) -> Result<SentTo, Problem> {
    if !thread.is_conversation() {
        let detail = "the thread is a run outside of a conversation, which takes no messages here";
        return Err(Problem::new(ProblemType::NotWaiting).detail(detail));
    }
    let sent = cx.send(message).await;
    sent.map_err(|problem| with_place_of_options(problem, "`forwardedProps.options`"))
}

/// Records the results of open calls of the page's tools.
async fn record_results(cx: &RequestContext, row: &RunSummary, input: &RunAgentInput) -> Result<(), Problem> {
    let open = open_calls(cx, row).await?;
    let open: Vec<_> = open.iter().map(|item| item.call.id_in(&row.run).to_string()).collect();
    let results = input.results(&open);
    if results.is_empty() {
        return Ok(());
    }
    cx.answer_calls(row, &results).await.map(drop)
}

/// Sends the answers to interrupts, and tells the leg which ones the client has seen and not answered. Those that are refused do not end
/// the leg: a client forgets its interrupts, or learns which ones are still open, only at the end of a leg without an error.
async fn resume(
    cx: &RequestContext,
    row: &RunSummary,
    input: &RunAgentInput,
    leg: &mut Leg,
) -> Result<Vec<RefusedAnswer>, Problem> {
    let entries = || input.resume.iter().flatten();
    check_answers(entries().filter(|entry| entry.answer().is_some()).count())?;
    let (mut decisions, mut refused) = (Decisions::new(cx), Vec::new());
    for (index, entry) in entries().enumerate() {
        let id = &entry.interrupt_id;
        let Some(payload) = entry.answer() else {
            if entry.status == ResumeStatus::Resolved {
                leg.seen.insert(id.clone());
            }
            continue;
        };
        match answer(&mut decisions, row, input, (id, payload), &format!("/resume/{index}/payload")).await {
            Ok(()) => {}
            Err(problem) if concerns_answer(problem.kind()) => {
                refused.push(RefusedAnswer { question: id.clone(), problem });
            }
            Err(problem) => return Err(problem),
        }
    }
    Ok(refused)
}

async fn answer(
    decisions: &mut Decisions<'_>,
    row: &RunSummary,
    input: &RunAgentInput,
    (id, payload): (&str, &Value),
    pointer: &str,
) -> Result<(), Problem> {
    decisions.check_scope(row, id)?;
    let open = question(decisions.cx(), row, id).await?;
    let decision = decision(open.as_ref(), payload, pointer)?;
    // The same answer is the same decision, however often it is sent.
    decisions.send(row, id, decision, &format!("{}/{id}/{payload}", input.thread_id)).await
}
