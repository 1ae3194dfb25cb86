//! `POST /runs`: starts a run.

use axum::response::Response;
use positronic_core::record::{RunId, SignalId, Start, UserMessage};
use positronic_core::store::StoreError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::start_rules::{conversation, given_options, of_conversation, of_start, user_for};
use super::wait::{Wait, WaitQuery};
use crate::api::conversations::messages::{MessageRequest, send_once};
use crate::api::idempotency::Key;
use crate::api::run_item::RunItem;
use crate::auth::{Scope, may_start};
use crate::problem::{Problem, ProblemType};
use crate::routes::{RequestContext, Route, created};

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post("/api/v1/runs", "Start a run", start)
            .scopes(&[Scope::Run])
            .query::<WaitQuery>()
            .takes::<NewRunBody>()
            .idempotent()
            .returns::<StartedRun>(201)
            .problems(&[
                ProblemType::TooManyStreams,
                ProblemType::UnknownBrain,
                ProblemType::OptionsInvalid,
                ProblemType::NotAllowed,
                ProblemType::Unprocessable,
                ProblemType::Conflict,
            ]),
    ]
}

/// A run to start.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewRunBody {
    /// The title of the brain.
    brain: String,
    /// The options, which match the brain's schema; its default options by default.
    #[serde(default)]
    options: Option<Value>,
    /// The user that the run belongs to: that of the caller by default.
    #[serde(default)]
    user: Option<String>,
    /// Words that lists of runs are filtered by: at most 16, each of 1 to 64 bytes without control characters.
    #[serde(default)]
    tags: Vec<String>,
    /// The conversation that the run continues. An `Idempotency-Key` then needs a `message`, since it is the id of the message.
    #[serde(default)]
    conversation: Option<String>,
    /// A message for the brain's first loop.
    #[serde(default)]
    message: Option<String>,
}

/// A started run.
#[derive(Serialize, JsonSchema)]
struct StartedRun {
    #[serde(flatten)]
    run: RunItem,
    /// What its brain has returned, if it has completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
}

async fn start(cx: RequestContext) -> Result<Response, Problem> {
    let (app, caller, wait) = (&cx.app, cx.caller()?, Wait::of(&cx)?);
    let body: NewRunBody = cx.json()?;
    let definition = app.brain(&body.brain)?;
    may_start(&app.settings, caller, &body.brain)?;
    let runner = app.starter(&body.brain).await?;
    let given = given_options(app, &definition, body.options)?;
    let options = given.unwrap_or_else(|| app.settings.brains.default_options(&definition));
    app.read_options(&definition, &options)?;
    let user = user_for(caller, body.user.clone())?;
    let (actor, key) = (cx.actor()?, Key::of(&cx)?);
    if let (Some(id), Some(text)) = (&body.conversation, &body.message) {
        let message = UserMessage::new(text);
        let sent = send_once(
            &cx,
            &key,
            id,
            MessageRequest { definition, options: Some(options), user: body.user, tags: body.tags, message },
        )
        .await?;
        let mut response = answer(&cx, wait, &sent.run).await?;
        key.mark(&mut response, sent.is_replay);
        return Ok(response);
    }
    if let Some(id) = &body.conversation {
        if key.is_given() {
            let detail = "with `conversation`, an `Idempotency-Key` needs a `message`: add one, or omit the header";
            return Err(Problem::new(ProblemType::Unprocessable).detail(detail));
        }
        let conversation = conversation(&runner, id, user).tags(body.tags).actor(actor);
        let run = conversation.start_definition(definition, options).await.map_err(of_conversation)?;
        return answer(&cx, wait, run.id()).await;
    }
    let message = body.message.map(UserMessage::new);
    let run = RunId::new(key.id("run"));
    let is_known = match app.client.store().run(&run).await {
        Ok(_) => true,
        Err(StoreError::NoSuchRun { .. }) => false,
        Err(error) => return Err(error.into()),
    };
    let id = Some(SignalId::new(run.as_str()));
    let start = Start { id, user, tags: body.tags, actor, message, ..Start::default() };
    runner.start_definition(definition, options, start).await.map_err(of_start)?;
    let mut response = answer(&cx, wait, &run).await?;
    key.mark(&mut response, is_known);
    Ok(response)
}

/// Answers with the run that was started, after the wait.
async fn answer(cx: &RequestContext, wait: Wait, run: &RunId) -> Result<Response, Problem> {
    let app = &cx.app;
    wait.wait(app, run).await?;
    let place = cx.answer_place().await;
    let row = app.client.store().run(run).await?;
    let result = app.result(run, row.status).await?;
    let items = app.run_items(std::slice::from_ref(&row)).await?;
    let item = items.into_iter().next().ok_or(ProblemType::UnknownRun)?;
    let mut response = created("runs/", run.as_str(), &StartedRun { run: item, result })?;
    if let Some(place) = place {
        response.extensions_mut().insert(place);
    }
    Ok(response)
}
