//! `POST /runs`: starts a run.

use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use positronic_core::record::{RunId, SignalId, Start, UserMessage, sha256};
use positronic_core::runner::{Conversation, ConversationError, Runner, StartError};
use positronic_core::store::StoreError;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::items::RunItem;
use crate::app::App;
use crate::auth::{Caller, Scope};
use crate::problem::{FieldError, Problem, ProblemType};
use crate::routes::{Call, Route, created};

/// The header with the client's own id of a request.
const KEY: &str = "idempotency-key";
/// The longest key.
const MAX_KEY: usize = 255;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post("/api/v1/runs", "Start a run", start)
            .scopes(&[Scope::Run])
            .takes::<NewRun>()
            .idempotent()
            .returns::<RunItem>(201)
            .problems(&[
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
struct NewRun {
    /// The title of the brain.
    brain: String,
    /// The options, which match the brain's schema; its default options by default.
    #[serde(default)]
    options: Option<Value>,
    /// The user that the run belongs to: that of the caller by default.
    #[serde(default)]
    user: Option<String>,
    /// The conversation that the run continues. An `Idempotency-Key` has no effect then.
    #[serde(default)]
    conversation: Option<String>,
    /// A message for the brain's first loop.
    #[serde(default)]
    message: Option<String>,
}

async fn start(call: Call) -> Result<Response, Problem> {
    let (app, caller) = (&call.app, call.caller()?);
    let body: NewRun = call.json()?;
    let definition = app.brain(&body.brain)?;
    let runner = app.starter(&body.brain).await?;
    let options = body.options.unwrap_or_else(|| app.options.brains.default_options(&definition));
    let user = user_for(caller, body.user)?;
    let message = body.message.map(UserMessage::new);
    let actor = call.actor()?;
    if let Some(id) = &body.conversation {
        let conversation = conversation(&runner, id, user).actor(actor);
        let run = match message {
            Some(message) => conversation.send_definition(definition, options, message).await,
            None => conversation.start_definition(definition, options).await,
        };
        let run = run.map_err(of_conversation)?;
        return answer(app, run.id(), None, false).await;
    }
    let key = idempotency_key(&call)?;
    let run = run_id(caller, &key);
    let is_known = match app.client.store().run(&run).await {
        Ok(_) => true,
        Err(StoreError::NoSuchRun { .. }) => false,
        Err(error) => return Err(error.into()),
    };
    let id = Some(SignalId::new(run.as_str()));
    let start = Start { id, user, actor, message, ..Start::default() };
    runner.start_definition(definition, options, start).await.map_err(of_start)?;
    answer(app, &run, Some(&key), is_known).await
}

/// Returns the user of a new run: a caller that sees only the runs of its user starts them only for it.
pub(super) fn user_for(caller: &Caller, asked: Option<String>) -> Result<Option<String>, Problem> {
    match (caller.only_user(), asked) {
        (Some(own), Some(asked)) if own != asked => {
            Err(Problem::new(ProblemType::NotAllowed).detail(format!("the caller acts for the user `{own}`")))
        }
        (Some(own), _) => Ok(Some(own.to_owned())),
        (None, asked) => Ok(asked.or_else(|| caller.user_id().map(str::to_owned))),
    }
}

pub(super) fn conversation(runner: &Runner, id: &str, user: Option<String>) -> Conversation {
    let conversation = runner.conversation(id);
    match user {
        Some(user) => conversation.user(user),
        None => conversation,
    }
}

impl App {
    /// Returns the runner that starts runs of a brain.
    pub(crate) async fn starter(&self, title: &str) -> Result<Runner, Problem> {
        let found = self.options.brains.runner(title).await;
        found.map_err(|none| Problem::new(ProblemType::Unprocessable).detail(none))
    }
}

/// Returns the `Idempotency-Key` of a request, or a new one.
pub(super) fn idempotency_key(call: &Call) -> Result<String, Problem> {
    let Some(header) = call.parts.headers.get(KEY) else {
        return crate::auth::secret().map_err(|error| Problem::new(ProblemType::Internal).detail(error));
    };
    // The draft's form is a quoted string.
    let key = header.to_str().unwrap_or_default().trim().trim_matches('"');
    if (1..=MAX_KEY).contains(&key.len()) {
        return Ok(key.to_owned());
    }
    Err(Problem::new(ProblemType::InvalidBody).detail(format!("`Idempotency-Key`: expected 1 to {MAX_KEY} characters")))
}

/// Returns the id of the run that a caller starts under a key: a key of one caller says nothing about those of others.
fn run_id(caller: &Caller, key: &str) -> RunId {
    RunId::new(derived_id(caller, key).to_string())
}

/// Returns a UUID (version 8) of a caller's key.
pub(super) fn derived_id(caller: &Caller, key: &str) -> uuid::Uuid {
    let mut bytes = [0_u8; 16];
    let hash = sha256(format!("{}\n{key}", caller.subject()).as_bytes());
    for (byte, digits) in bytes.iter_mut().zip(hash.as_bytes().chunks_exact(2)) {
        let digits = std::str::from_utf8(digits).unwrap_or_default();
        *byte = u8::from_str_radix(digits, 16).unwrap_or_default();
    }
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

async fn answer(app: &App, run: &RunId, key: Option<&str>, is_replay: bool) -> Result<Response, Problem> {
    let row = app.client.store().run(run).await?;
    let mut response = created(&format!("runs/{run}"), &app.run_item(&row, 0).await?)?;
    mark(&mut response, key, is_replay);
    Ok(response)
}

/// Adds the key of the request, and whether it is a repeated one.
pub(super) fn mark(response: &mut Response, key: Option<&str>, is_replay: bool) {
    if let Some(key) = key.and_then(|key| HeaderValue::try_from(key).ok()) {
        response.headers_mut().insert(HeaderName::from_static(KEY), key);
    }
    if is_replay {
        response
            .headers_mut()
            .insert(HeaderName::from_static("idempotency-replayed"), HeaderValue::from_static("true"));
    }
}

pub(super) fn of_start(error: StartError) -> Problem {
    match error {
        StartError::Options { reason, .. } => {
            let errors = vec![FieldError::new("/options", &reason)];
            Problem::new(ProblemType::OptionsInvalid).detail(reason).errors(errors)
        }
        StartError::Started { .. } => Problem::new(ProblemType::KeyReused).detail(error),
        StartError::Store(error) => error.into(),
        StartError::NoListener { .. } | StartError::Message(_) => {
            Problem::new(ProblemType::Unprocessable).detail(error)
        }
        other => Problem::new(ProblemType::Internal).detail(other),
    }
}

pub(super) fn of_conversation(error: ConversationError) -> Problem {
    match error {
        ConversationError::Start(error) => of_start(error),
        ConversationError::Signal(error) => error.into(),
        ConversationError::Store(error) => error.into(),
        ConversationError::NotYours { .. } => Problem::new(ProblemType::NotFound).detail(error),
        ConversationError::Busy { .. } | ConversationError::Open { .. } => {
            Problem::new(ProblemType::NotWaiting).detail(error)
        }
        other => Problem::new(ProblemType::Unprocessable).detail(other),
    }
}
