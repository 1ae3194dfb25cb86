//! Several models, the next of which steps in where one fails.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::time::Instant;

use super::own::{For, mark, sent};
use super::{after, common_form, lock, micros};
use crate::model::{DeltaSink, Model};
use crate::record::{ActionFormat, ModelError, ModelErrorKind, ModelRequest, ModelResponse, RoutingStep};

/// Asks the next model where one has failed in a way that is its own.
///
/// ```
/// # use positronic_core::model::scripted::{Reply, ScriptedModel};
/// # use std::time::Duration;
/// # let model = || ScriptedModel::from_fn(|_| Reply::text("Yes."));
/// # let (main, spare, local) = (model(), model(), model());
/// use positronic_core::model::wrap::Fallback;
///
/// let model = Fallback::new(main).then(spare).then(local).rest(Duration::from_secs(120));
/// ```
///
/// | failure | the next model is asked |
/// |---|---|
/// | too many requests, used-up quota, an overloaded or failing server, no answer in time, a lost connection, a cut or malformed answer | yes |
/// | a missing or wrong key, an unknown model or address | yes: what is wrong with one account is not wrong with the next |
/// | a prompt that is too long | yes: another model may have more room |
/// | a refused request, refused content, a script or cassette without an answer | no: another model would be asked what one must not ask, or what nobody can read |
///
/// [`Fallback::moves_on`] says otherwise. A call that is dropped asks nobody.
///
/// **A model that failed rests** for a minute ([`Fallback::rest`]), or as long as its provider asked to wait, if that is longer, and is
/// passed over by all runs; then it is asked first again. A cut answer and a prompt that was too long say nothing of the model's
/// health, and it does not rest. When all rest, or all others have failed, they are asked nevertheless, soonest first: a rest never fails a request.
///
/// **What a failed model had streamed is void** ([`DeltaSink::restart`]): the next one answers from the beginning.
///
/// The failure is the last model's, with a sentence that names all; where another one's can pass it is that, so that the runner tries
/// again, and all of them are asked anew.
///
/// Settings for one request that name a model ([`Settings::model`](crate::record::Settings)) are for the first; the others answer with
/// their own. `LOOP_MODEL_CALL` and a limit of money go by the first's name; what is paid is by who answered.
pub struct Fallback {
    members: Vec<Member>,
    rest: Duration,
    tries: u32,
    moves_on: Box<dyn Fn(&ModelError) -> bool + Send + Sync>,
}

struct Member {
    model: Arc<dyn Model>,
    rest: Mutex<Option<Rest>>,
}

#[derive(Debug, Clone, Copy)]
struct Rest {
    since: Instant,
    until: Instant,
    kind: ModelErrorKind,
}

impl Fallback {
    /// Makes a fallback whose first model is asked as long as it answers.
    #[must_use]
    pub fn new(first: impl Model) -> Self {
        Self { members: Vec::new(), rest: Duration::from_mins(1), tries: 1, moves_on: Box::new(may_move_on) }
            .then(first)
    }

    /// Adds a model that is asked when those before it have failed.
    #[must_use]
    pub fn then(mut self, model: impl Model) -> Self {
        self.members.push(Member { model: Arc::new(model), rest: Mutex::default() });
        self
    }

    /// Sets for how long a model that failed is passed over; 1 minute. With none, it is asked first every time.
    #[must_use]
    pub fn rest(self, rest: Duration) -> Self {
        Self { rest, ..self }
    }

    /// Sets how often a request is tried with the first model before the next one is asked; 1. The tries between are the
    /// runner's retries, each an event, with its pauses and as many as its policy allows. A failure that cannot pass is not
    /// tried again. In a loop of decisions, an answer that was refused is a try, too.
    #[must_use]
    pub fn tries(self, tries: u32) -> Self {
        Self { tries, ..self }
    }

    /// Sets which failures the next model is asked after.
    #[must_use]
    pub fn moves_on(self, moves_on: impl Fn(&ModelError) -> bool + Send + Sync + 'static) -> Self {
        Self { moves_on: Box::new(moves_on), ..self }
    }

    /// Lists the models in the order in which they are asked now: those that rest last, soonest first.
    fn order(&self, now: Instant) -> (Vec<(usize, &Member)>, Vec<RoutingStep>) {
        let (mut awake, mut resting, mut steps) = (Vec::new(), Vec::new(), Vec::new());
        for (index, member) in self.members.iter().enumerate() {
            match member.resting(now) {
                Some(rest) => resting.push((rest, index, member)),
                None => awake.push((index, member)),
            }
        }
        if let Some((last, _)) = awake.last() {
            steps.extend(resting.iter().filter(|(_, index, _)| index < last).map(|(rest, _, member)| {
                RoutingStep::Resting {
                    model: member.model.name(),
                    kind: rest.kind,
                    left: micros(rest.until.saturating_duration_since(now)),
                }
            }));
        }
        resting.sort_by_key(|(rest, index, _)| (rest.until, *index));
        awake.extend(resting.into_iter().map(|(_, index, member)| (index, member)));
        (awake, steps)
    }

    async fn ask(&self, request: &ModelRequest, deltas: &dyn DeltaSink) -> Result<ModelResponse, ModelError> {
        let (order, mut steps) = self.order(Instant::now());
        let mut failures: Vec<(String, ModelError)> = Vec::new();
        for (index, member) in order {
            if !failures.is_empty() {
                deltas.restart();
            }
            let name = member.model.name();
            let whom = if index == 0 { For::First } else { For::Other(&name) };
            let began = Instant::now();
            let mut error = match member.model.call(&sent(request, whom), deltas).await {
                Ok(mut response) => {
                    member.is_well(began);
                    mark(&mut response, whom);
                    return after(steps, Ok(response));
                }
                Err(error) => error,
            };
            let again = error.is_retryable() && request.attempt.saturating_add(1) < self.tries;
            let moves_on = !again && (self.moves_on)(&error);
            steps.append(&mut error.via);
            if moves_on {
                steps.push(RoutingStep::Failed { model: name.clone(), kind: error.kind, message: error.to_string() });
                member.rest_after(&error, self.rest);
                failures.push((name, error));
            } else {
                failures.push((name, error));
                return Err(ModelError { via: steps, ..last_of(failures) });
            }
        }
        Err(ModelError { via: steps, ..hopeful_of(failures) })
    }
}

impl Member {
    fn resting(&self, now: Instant) -> Option<Rest> {
        lock(&self.rest).filter(|rest| rest.until > now)
    }

    /// Ends a rest, as a request shows that was sent within it; one that was sent before knows nothing of it.
    fn is_well(&self, sent: Instant) {
        let mut rest = lock(&self.rest);
        if rest.is_some_and(|rest| rest.since <= sent) {
            *rest = None;
        }
    }

    fn rest_after(&self, error: &ModelError, rest: Duration) {
        let rest = match error.kind {
            ModelErrorKind::RateLimited
            | ModelErrorKind::QuotaExhausted
            | ModelErrorKind::Server
            | ModelErrorKind::Timeout
            | ModelErrorKind::Connection
            | ModelErrorKind::Auth
            | ModelErrorKind::NotFound => rest.max(error.wait().unwrap_or_default()),
            ModelErrorKind::Truncated
            | ModelErrorKind::Malformed
            | ModelErrorKind::ContextTooLong
            | ModelErrorKind::BadRequest
            | ModelErrorKind::Filtered
            | ModelErrorKind::Unscripted => return,
        };
        let since = Instant::now();
        let Some(until) = since.checked_add(rest) else { return };
        let mut now = lock(&self.rest);
        // Who asked for a longer rest gets it, whatever else fails meanwhile.
        if now.is_none_or(|now| now.until < until) {
            *now = Some(Rest { since, until, kind: error.kind });
        }
    }
}

const fn may_move_on(error: &ModelError) -> bool {
    match error.kind {
        ModelErrorKind::RateLimited
        | ModelErrorKind::QuotaExhausted
        | ModelErrorKind::Server
        | ModelErrorKind::Timeout
        | ModelErrorKind::Connection
        | ModelErrorKind::Truncated
        | ModelErrorKind::Malformed
        | ModelErrorKind::Auth
        | ModelErrorKind::NotFound
        | ModelErrorKind::ContextTooLong => true,
        ModelErrorKind::BadRequest | ModelErrorKind::Filtered | ModelErrorKind::Unscripted => false,
    }
}

/// Returns the failure of those that failed that is most likely to pass, and soonest; else the last.
fn hopeful_of(mut failures: Vec<(String, ModelError)>) -> ModelError {
    let can_pass = failures.iter().enumerate().filter(|(_, (_, error))| error.is_retryable());
    let soonest = can_pass.min_by_key(|(_, (_, error))| error.wait().unwrap_or_default()).map(|(place, _)| place);
    if let Some(place) = soonest {
        let failure = failures.remove(place);
        failures.push(failure);
    }
    last_of(failures)
}

/// Returns the last failure, with a sentence that names the others.
fn last_of(mut failures: Vec<(String, ModelError)>) -> ModelError {
    let Some((name, error)) = failures.pop() else {
        return ModelError::new(ModelErrorKind::BadRequest, "the fallback has no model");
    };
    if failures.is_empty() {
        return error;
    }
    let others: Vec<_> = failures.iter().map(|(name, error)| format!("{name}: {error}")).collect();
    let message = format!("{name}: {}; {} failed, too: {}", error.message, others.len(), others.join("; "));
    ModelError { message, ..error }
}

impl fmt::Debug for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.members.iter().map(|member| member.model.name())).finish()
    }
}

impl Fallback {
    fn first(&self) -> Option<&dyn Model> {
        self.members.first().map(|member| &*member.model)
    }
}

impl Model for Fallback {
    fn name(&self) -> String {
        self.first().map(Model::name).unwrap_or_default()
    }

    fn call<'a>(
        &'a self,
        request: &'a ModelRequest,
        deltas: &'a dyn DeltaSink,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        self.ask(request, deltas).boxed()
    }

    fn inner(&self) -> Option<&dyn Model> {
        self.first()
    }

    fn action_format(&self) -> ActionFormat {
        common_form(self.members.iter().map(|member| member.model.action_format()))
    }

    fn wire(&self, request: &ModelRequest) -> String {
        self.first().map(|first| first.wire(&sent(request, For::First))).unwrap_or_default()
    }
}
