//! The guards of a loop, in order of registration: each sees what the one before has left.

pub(super) mod answers;
pub(super) mod inputs;
pub(in crate::runner) mod loops;

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;

use super::hook_limit::in_time;
use crate::definition::{CheckFn, CheckedValue, LoopDefinition, LoopGuardCheck, Scope, UntypedReply, Verdict};
use crate::error::caught_now;
use crate::error::{Error, Result};
use crate::machine::{RefusingGuard, Replaced, Veto};
use crate::model::{DeltaSink, Piece};
use crate::record::{ModelResponse, Part, Path};

/// Why an answer, a call or a result does not pass, and which guard says so.
pub(super) struct Refused {
    pub(super) guard: RefusingGuard,
    pub(super) message: String,
}

impl Refused {
    fn new(guard: &str, message: String, stops: bool) -> Self {
        Self { guard: RefusingGuard { name: guard.to_owned(), stops }, message }
    }

    /// Returns the error of a call, which stops the loop if the guard does.
    fn error(&self, what: &str) -> Error {
        let Self { guard: RefusingGuard { name, stops }, message } = self;
        match stops {
            true => Error::permanent(Veto(format!("the guard `{name}` stopped the loop at the {what}: {message}"))),
            false => Error::new(self.sentence(what)),
        }
    }

    /// Returns what the model reads about a call that does not pass.
    pub(super) fn sentence(&self, what: &str) -> String {
        format!("the guard `{}` refused the {what}: {}", self.guard.name, self.message)
    }
}

/// What guards make of the messages for an iteration.
pub(in crate::runner) struct CheckedInputs {
    /// What comes in the place of messages that do not pass.
    pub(super) replaced: Vec<Replaced>,
    /// Why a guard stops the loop.
    pub(super) stopped: Option<Error>,
}

/// Returns what a guard puts in the place of what it has checked; `None` if that passes.
fn replacement(guard: &str, verdict: Verdict) -> Result<Option<Value>, Refused> {
    match verdict {
        Verdict::Pass => Ok(None),
        Verdict::Replace(value) => Ok(Some(value)),
        Verdict::Refuse(message) => Err(Refused::new(guard, message, false)),
        Verdict::Stop(message) => Err(Refused::new(guard, message, true)),
    }
}

/// Applies a verdict to an answer.
pub(super) fn apply(
    guard: &str,
    verdict: Verdict,
    response: &mut ModelResponse,
    replaced: &mut Vec<Replaced>,
) -> Result<(), Refused> {
    let Some(text) = replacement(guard, verdict)? else { return Ok(()) };
    let value = Value::String(response.text());
    replaced.push(Replaced { guard: guard.to_owned(), value, input: None });
    let text = text.as_str().map_or_else(|| text.to_string(), str::to_owned);
    // What the model thought, and what only its provider reads, may have the same contents.
    response.parts.retain(|part| matches!(part, Part::Call { .. }));
    response.parts.insert(0, Part::Text { text });
    Ok(())
}

/// Checks the arguments of a call, and replaces them if a guard says so. The guards ask models at a path.
pub(super) async fn check_call(
    definition: Option<&LoopDefinition>,
    scope: &Scope,
    at: &Path,
    tool: &str,
    arguments: &mut Arc<Value>,
    replaced: &mut Vec<Replaced>,
) -> Result<(), Refused> {
    let of_calls = |check: &LoopGuardCheck| match check {
        LoopGuardCheck::Call(check) => Some(Arc::clone(check)),
        _ => None,
    };
    check_value(definition, of_calls, scope, (tool, at), arguments, replaced).await
}

/// Checks arguments that a person has edited, which no guard can replace.
pub(super) async fn check_edited_call(
    definition: Option<&LoopDefinition>,
    scope: &Scope,
    tool: &str,
    arguments: &Arc<Value>,
) -> Result<()> {
    let (mut arguments, mut replaced) = (Arc::clone(arguments), Vec::new());
    let checked = check_call(definition, scope, &scope.path, tool, &mut arguments, &mut replaced).await;
    checked.map_err(|refused| refused.error("call"))?;
    match replaced.first() {
        None => Ok(()),
        Some(Replaced { guard, .. }) => {
            let message = format!(
                "the guard `{guard}` cannot replace arguments that a person has edited; refuse the call instead"
            );
            Err(Error::new(message))
        }
    }
}

/// Checks the result of a call and the shorter text for the model, and replaces what a guard says.
pub(super) async fn check_result(
    definition: Option<&LoopDefinition>,
    scope: &Scope,
    tool: &str,
    reply: &mut UntypedReply,
    replaced: &mut Vec<Replaced>,
) -> Result<()> {
    let of_results = |check: &LoopGuardCheck| match check {
        LoopGuardCheck::Result(check) => Some(Arc::clone(check)),
        _ => None,
    };
    let (at, refused) = ((tool, &scope.path), |refused: Refused| refused.error("result"));
    let mut output = Arc::new(std::mem::take(&mut reply.output));
    check_value(definition, of_results, scope, at, &mut output, replaced).await.map_err(refused)?;
    reply.output = Arc::unwrap_or_clone(output);
    let Some(brief) = reply.brief.take() else { return Ok(()) };
    let mut brief = Arc::new(Value::String(brief));
    check_value(definition, of_results, scope, at, &mut brief, replaced).await.map_err(refused)?;
    reply.brief = Some(brief.as_str().map_or_else(|| brief.to_string(), str::to_owned));
    Ok(())
}

/// Lets the guards of one kind check the arguments or the output of a call of a tool, and replaces it if a guard says so.
async fn check_value(
    definition: Option<&LoopDefinition>,
    of_kind: impl Fn(&LoopGuardCheck) -> Option<CheckFn<CheckedValue>>,
    scope: &Scope,
    (tool, at): (&str, &Path),
    value: &mut Arc<Value>,
    replaced: &mut Vec<Replaced>,
) -> Result<(), Refused> {
    for guard in definition.into_iter().flat_map(|definition| &definition.guards) {
        let Some(check) = of_kind(&guard.check) else { continue };
        let given = CheckedValue { tool: tool.to_owned(), value: Arc::clone(value), at: at.clone() };
        let verdict = verdict(scope, at, caught_now(|| Ok(check(scope.clone(), given)))).await;
        if let Some(other) = replacement(&guard.name, verdict)? {
            let original = Arc::unwrap_or_clone(std::mem::replace(value, Arc::new(other)));
            replaced.push(Replaced { guard: guard.name.clone(), value: original, input: None });
        }
    }
    Ok(())
}

/// Runs a check. One that fails lets nothing pass.
pub(super) async fn verdict(scope: &Scope, at: &Path, check: Result<BoxFuture<'static, Result<Verdict>>>) -> Verdict {
    let verdict = match check {
        Ok(check) => in_time(scope, at, "it", check).await,
        Err(error) => Err(error),
    };
    verdict.unwrap_or_else(|error| Verdict::Stop(format!("the guard failed: {error}")))
}

/// Streams nothing.
pub(super) struct Silent;

impl DeltaSink for Silent {
    fn piece(&self, _: Piece) {}

    fn restart(&self) {}

    fn has_reader(&self) -> bool {
        false
    }
}
