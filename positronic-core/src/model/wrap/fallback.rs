//! Fallback to other models after a failure.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::own::{Target, mark, sent};
use super::{after, common_form};
use crate::model::{DeltaSink, Model};
use crate::record::encoding::micros::whole;
use crate::record::{ActionFormat, ModelError, ModelErrorKind, ModelRequest, ModelResponse, RoutingStep};

/// Asks the next model after a failure of the previous one.
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
/// | failure | asks the next model |
/// |---|---|
/// | rate limit, exhausted quota, overloaded or failing server, timeout, lost connection, truncated or malformed answer | yes |
/// | missing or wrong API key, unknown model or URL | yes: the next account may be valid |
/// | prompt too long | yes: another model may have a larger context |
/// | unsupported file or tool of the provider | yes: another model may support it |
/// | rejected request, filtered content, missing reply in a script or cassette | no: another model must not see filtered content or would reject the request, too |
///
/// [`Fallback::moves_on`] overrides this. A dropped call asks no further model.
///
/// **A model that failed rests** for a minute ([`Fallback::rest`]), or for the provider's requested wait if that is longer: all
/// runs skip it; afterwards it comes first again. Truncated answers, long prompts and unsupported files do not indicate an unhealthy
/// model, and cause no rest. If all models rest, or all others have failed, the resting ones are asked, shortest rest first: a rest never fails a request.
///
/// **The streamed output of a failed model is discarded** ([`DeltaSink::restart`]): the next one answers from the beginning.
///
/// If all fail, the error is a retryable one if there is any, else the last model's, with a message that names all; after a
/// retryable error the runner tries again, with all models.
///
/// A model set for one request ([`Settings::model`](crate::record::Settings)) applies to the first; the others use their
/// own. `LOOP_MODEL_CALL` and a cost limit use the first's name; the price is that of the answering model.
pub struct Fallback {
    members: Vec<Candidate>,
    rest: Duration,
    tries: u32,
    moves_on: Box<dyn Fn(&ModelError) -> bool + Send + Sync>,
}

struct Candidate {
    model: Arc<dyn Model>,
    rest: Mutex<Option<Cooldown>>,
}

#[derive(Debug, Clone, Copy)]
struct Cooldown {
    since: Instant,
    until: Instant,
    kind: ModelErrorKind,
}

impl Fallback {
    /// Creates a fallback with its first model.
    #[must_use]
    pub fn new(first: impl Model) -> Self {
        Self { members: Vec::new(), rest: Duration::from_mins(1), tries: 1, moves_on: Box::new(may_move_on) }
            .then(first)
    }

    /// Adds a model that is asked when the previous ones have failed.
    #[must_use]
    pub fn then(mut self, model: impl Model) -> Self {
        self.members.push(Candidate { model: Arc::new(model), rest: Mutex::default() });
        self
    }

    /// Sets how long a failed model rests; 1 minute by default. Zero disables resting.
    #[must_use]
    pub fn rest(self, rest: Duration) -> Self {
        Self { rest, ..self }
    }

    /// Sets how often a request is tried with the first model before the next one is asked; 1 by default. Repeated tries are the
    /// runner's retries, each an event, with the waits and the limit of its policy. A failure that is not retryable is tried
    /// once. In a loop with structured actions, a rejected answer also counts as a try.
    #[must_use]
    pub fn tries(self, tries: u32) -> Self {
        Self { tries, ..self }
    }

    /// Sets after which failures the next model is asked.
    #[must_use]
    pub fn moves_on(self, moves_on: impl Fn(&ModelError) -> bool + Send + Sync + 'static) -> Self {
        Self { moves_on: Box::new(moves_on), ..self }
    }

    /// Lists the models in the order of asking: resting ones last, shortest rest first.
    fn order(&self, now: Instant) -> (Vec<(usize, &Candidate)>, Vec<RoutingStep>) {
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
                    left: whole(rest.until.saturating_duration_since(now)),
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
            let target = if index == 0 { Target::First(&name) } else { Target::Other(&name) };
            let began = Instant::now();
            let mut error = match member.model.call(&sent(request, target), deltas).await {
                Ok(mut response) => {
                    member.end_rest(began);
                    mark(&mut response, target);
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
        Err(ModelError { via: steps, ..retryable_of(failures) })
    }
}

impl Candidate {
    fn resting(&self, now: Instant) -> Option<Cooldown> {
        self.rest.lock().filter(|rest| rest.until > now)
    }

    /// Ends a rest after a successful request, if it was sent during that rest.
    fn end_rest(&self, sent: Instant) {
        let mut rest = self.rest.lock();
        if rest.is_some_and(|rest| rest.since <= sent) {
            *rest = None;
        }
    }

    fn rest_after(&self, error: &ModelError, rest: Duration) {
        if !may_move_on(error) || is_of_request(error) {
            return;
        }
        let rest = rest.max(error.retry_after.unwrap_or_default());
        let since = Instant::now();
        let Some(until) = since.checked_add(rest) else { return };
        let mut now = self.rest.lock();
        // The longest requested rest wins.
        if now.is_none_or(|now| now.until < until) {
            *now = Some(Cooldown { since, until, kind: error.kind });
        }
    }
}

const fn may_move_on(error: &ModelError) -> bool {
    !matches!(error.kind, ModelErrorKind::BadRequest | ModelErrorKind::Filtered | ModelErrorKind::Unscripted)
}

/// Returns whether the failure is one of this request or answer, and says nothing about the next one.
const fn is_of_request(error: &ModelError) -> bool {
    matches!(
        error.kind,
        ModelErrorKind::Truncated
            | ModelErrorKind::Malformed
            | ModelErrorKind::ContextTooLong
            | ModelErrorKind::Unsupported
    )
}

/// Returns the retryable failure with the shortest wait, else the last failure.
fn retryable_of(mut failures: Vec<(String, ModelError)>) -> ModelError {
    let can_pass = failures.iter().enumerate().filter(|(_, (_, error))| error.is_retryable());
    let soonest = can_pass.min_by_key(|(_, (_, error))| error.retry_after.unwrap_or_default()).map(|(index, _)| index);
    if let Some(index) = soonest {
        let failure = failures.remove(index);
        failures.push(failure);
    }
    last_of(failures)
}

/// Returns the last failure, with a message that names the others.
fn last_of(mut failures: Vec<(String, ModelError)>) -> ModelError {
    let Some((name, error)) = failures.pop() else {
        return ModelError::new(ModelErrorKind::BadRequest, "the fallback has no model");
    };
    if failures.is_empty() {
        return error;
    }
    let others: Vec<_> = failures.iter().map(|(name, error)| format!("{name}: {error}")).collect();
    let message = format!("{name}: {}; {} more failed: {}", error.message, others.len(), others.join("; "));
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
        self.first().map(|first| first.wire(&sent(request, Target::First(&first.name())))).unwrap_or_default()
    }
}
