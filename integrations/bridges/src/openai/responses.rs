//! `/responses`: turns by the ids of their responses, which are those of runs, so that a response outlives its connection.

use std::sync::Arc;

use axum::response::Response;
use futures::StreamExt as _;
use positronic_core::record::{RunSummary, Seq};
use positronic_server::extension::{RequestContext, Route};
use positronic_server::{Problem, ProblemType, Scope};

use super::error::refused;
use super::history::{Remembered, TurnAnswer, unsaid};
use super::input::ResponseRequest;
use super::newest::NewestInput;
use super::response::{ResponseObject, next_turn, read, turn_of};
use super::responses_stream::events;
use super::turn::{Turn, TurnOpening, answer, begin, by_history, named, refuse_other_brain, speech};
use crate::shared::{MAX_BODY, Shared};

pub(super) fn routes(shared: &Arc<Shared>) -> Vec<Route> {
    let (create, find, stop) = (Arc::clone(shared), Arc::clone(shared), Arc::clone(shared));
    let unknown = [ProblemType::NotFound, ProblemType::UnknownRun];
    vec![
        Route::post("/api/v1/openai/v1/responses", "Answer a request of OpenAI's Responses API", move |cx| {
            let shared = Arc::clone(&create);
            let cx = Arc::new(cx);
            async move { Ok(created(&shared, &cx).await.unwrap_or_else(refused)) }
        })
        .scopes(&[Scope::Run])
        .takes::<ResponseRequest>()
        .max_body(MAX_BODY)
        .waits()
        .returns::<ResponseObject>(200)
        .streams()
        .problems(&[
            ProblemType::NotAllowed,
            ProblemType::NotFound,
            ProblemType::UnknownRun,
            ProblemType::UnknownBrain,
            ProblemType::OptionsInvalid,
            ProblemType::NotWaiting,
            ProblemType::Unprocessable,
            ProblemType::TooManyStreams,
        ]),
        Route::get("/api/v1/openai/v1/responses/{response}", "Read a response as it is now", move |cx| {
            let shared = Arc::clone(&find);
            async move { found(&shared, &cx).await }
        })
        .scopes(&[Scope::Read])
        .returns::<ResponseObject>(200)
        .problems(&unknown),
        Route::post("/api/v1/openai/v1/responses/{response}/cancel", "Cancel the run of a response", move |cx| {
            let shared = Arc::clone(&stop);
            async move { Ok(cancelled(&shared, &cx).await.unwrap_or_else(refused)) }
        })
        .scopes(&[Scope::Operate])
        .returns::<ResponseObject>(200)
        .problems(&[ProblemType::NotFound, ProblemType::UnknownRun, ProblemType::RunClosed]),
    ]
}

async fn created(shared: &Shared, cx: &Arc<RequestContext>) -> Result<Response, Problem> {
    let request: ResponseRequest = cx.json()?;
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
    let turn = match (&request.previous_response_id, named(cx, request.metadata.as_ref())) {
        (Some(previous), _) if let NewestInput::Results(results) = &newest.said => {
            let (run, from) = turn_of(previous)?;
            let row = cx.run_row(&run).await?;
            refuse_other_brain(&row, &request.model)?;
            let asked: Vec<_> = read(cx, shared, &row, from).await?.asked.into_iter().map(|call| call.id).collect();
            let conversation = row.conversation.clone().unwrap_or_default();
            answer(cx, &row, &conversation, results, &asked).await?
        }
        (Some(previous), _) => {
            let conversation = continued(cx, previous).await?;
            begin(cx, &conversation, opening, None).await?
        }
        (None, Some(conversation)) => begin(cx, &conversation, opening, None).await?,
        (None, None) => by_history(cx, opening).await?,
    };
    let Turn { run, from, conversation } = turn;
    let row = cx.run_row(&run).await?;
    let background = request.background == Some(true);
    let previous = request.previous_response_id.clone();
    let response = ResponseObject::new(&row, from).requested(previous.clone(), background);
    let remembered = Remembered { cx: Arc::clone(cx), newest, conversation };
    if request.stream == Some(true) {
        let speech = speech(cx, shared, &row, from).await?.boxed();
        return cx.stream(events(speech, response, remembered));
    }
    if background {
        let response = read(cx, shared, &row, from).await?;
        return cx.answer(200, &response.requested(previous, background));
    }
    let mut speech = speech(cx, shared, &row, from).await?.boxed();
    let response = cx.wait(async move {
        let mut response = response;
        while let Some(said) = speech.next().await {
            response.add(said);
        }
        response
    });
    let response = response.await?;
    remembered
        .remember(&request.model, TurnAnswer { text: &response.text(), calls: &response.asked, refusal: None })
        .await;
    cx.answer(200, &response)
}

/// Returns the conversation that a response ends.
async fn continued(cx: &RequestContext, previous: &str) -> Result<String, Problem> {
    let (run, from) = turn_of(previous)?;
    let row = cx.run_row(&run).await?;
    let Some(conversation) = row.conversation.clone() else {
        let detail = "the run of the previous response is outside of a conversation";
        return Err(Problem::new(ProblemType::NotWaiting).detail(detail));
    };
    let last = cx.conversation_rows(&conversation).await?.into_iter().next();
    let log = cx.client().events(&run, Seq(0)).await?;
    if last.is_none_or(|last| last.run != run) || next_turn(&log, from).is_some() {
        let detail = "the conversation has continued since the previous response; fork its run to continue from there";
        return Err(Problem::new(ProblemType::NotWaiting).detail(detail));
    }
    Ok(conversation)
}

async fn found(shared: &Shared, cx: &RequestContext) -> Result<Response, Problem> {
    let (row, from) = row(cx).await?;
    cx.answer(200, &read(cx, shared, &row, from).await?)
}

async fn cancelled(shared: &Shared, cx: &RequestContext) -> Result<Response, Problem> {
    let (row, from) = row(cx).await?;
    cx.cancel(&row, None).await?;
    cx.answer(200, &read(cx, shared, &row, from).await?)
}

async fn row(cx: &RequestContext) -> Result<(RunSummary, Seq), Problem> {
    let (run, from) = turn_of(cx.param("response")?)?;
    Ok((cx.run_row(&run).await?, from))
}
