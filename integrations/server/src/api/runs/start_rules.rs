//! The rules of a start: the options, the user and the runner of a new run; and why it does not begin.

use positronic_core::definition::BrainDefinition;
use positronic_core::runner::{Conversation, ConversationError, Runner, StartError};
use serde_json::Value;

use crate::api::brain_options::options_invalid;
use crate::app::App;
use crate::auth::Caller;
use crate::problem::{FieldError, Problem, ProblemType};
use crate::redact::{shown, with_secrets};

/// Returns the options of a new run. The default options of the brain, as the caller has seen them, stand for themselves; any other
/// ones with marks are refused, since a caller must not get the secrets of the defaults into options of its own.
pub(crate) fn given_options(
    app: &App,
    definition: &BrainDefinition,
    options: Option<Value>,
) -> Result<Option<Value>, Problem> {
    let (Some(given), Some(redact)) = (&options, &app.settings.redact) else { return Ok(options) };
    let default = app.settings.brains.default_options(definition);
    if *given == shown(redact, &default) {
        Ok(Some(default))
    } else {
        with_secrets(Some(redact), &Value::Null, given.clone()).map(Some)
    }
}

/// Returns the user of a new run: a caller that sees only the runs of its user starts them only for it.
pub(crate) fn user_for(caller: &Caller, asked: Option<String>) -> Result<Option<String>, Problem> {
    match (caller.only_user(), asked) {
        (Some(own), Some(asked)) if own != asked => {
            Err(Problem::new(ProblemType::NotAllowed).detail(format!("the caller acts for the user `{own}`")))
        }
        (Some(own), _) => Ok(Some(own.to_owned())),
        (None, asked) => Ok(asked.or_else(|| caller.user_id().map(str::to_owned))),
    }
}

pub(crate) fn conversation(runner: &Runner, id: &str, user: Option<String>) -> Conversation {
    let conversation = runner.conversation(id);
    match user {
        Some(user) => conversation.user(user),
        None => conversation,
    }
}

impl App {
    /// Returns the runner that starts runs of a brain.
    pub(crate) async fn starter(&self, title: &str) -> Result<Runner, Problem> {
        let found = self.settings.brains.runner(title).await;
        found.map_err(|none| Problem::new(ProblemType::Unprocessable).detail(none))
    }
}

pub(crate) fn of_start(error: StartError) -> Problem {
    match error {
        StartError::Options { reason, .. } => options_invalid(&reason),
        StartError::Name { field, .. } => {
            let errors = vec![FieldError::new(format!("/{field}"), error.to_string())];
            Problem::new(ProblemType::Unprocessable).detail(error).errors(errors)
        }
        StartError::Tag { index, .. } => {
            let errors = vec![FieldError::new(format!("/tags/{index}"), error.to_string())];
            Problem::new(ProblemType::Unprocessable).detail(error).errors(errors)
        }
        StartError::Started { .. } => Problem::new(ProblemType::KeyReused).detail(error),
        StartError::Store(error) => error.into(),
        StartError::NoListener { .. }
        | StartError::NoCallerTools { .. }
        | StartError::CallerTools(_)
        | StartError::Message(_)
        | StartError::State { .. } => Problem::new(ProblemType::Unprocessable).detail(error),
        other => Problem::new(ProblemType::Internal).detail(other),
    }
}

pub(crate) fn of_conversation(error: ConversationError) -> Problem {
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
