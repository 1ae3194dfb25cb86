//! The guards of a loop, in order of registration: each sees what the one before has left.

pub(super) mod answers;
pub(super) mod inputs;
pub(in crate::runner) mod loops;

use std::sync::Arc;

use serde_json::Value;

use crate::definition::{LoopDefinition, LoopGuardCheck, Scope, UntypedReply, Verdict};
use crate::error::{Error, Result};
use crate::machine::{RefusingGuard, Replaced};
use crate::model::{DeltaSink, Piece};
use crate::record::{ModelResponse, Part};
use crate::runner::catch::{caught, caught_now};

/// Why an answer does not pass, and which guard says so.
pub(super) struct RefusedAnswer {
    pub(super) guard: RefusingGuard,
    pub(super) message: String,
}

/// What guards make of the messages for an iteration.
pub(in crate::runner) struct CheckedInputs {
    /// What comes in the place of messages that do not pass.
    pub(super) replaced: Vec<Replaced>,
    /// Why a guard stops the loop.
    pub(super) stopped: Option<Error>,
}

/// Applies a verdict to an answer.
pub(super) fn apply(
    guard: &str,
    verdict: Verdict,
    response: &mut ModelResponse,
    replaced: &mut Vec<Replaced>,
) -> Result<(), RefusedAnswer> {
    let refusal =
        |message, stops| Err(RefusedAnswer { guard: RefusingGuard { name: guard.to_owned(), stops }, message });
    match verdict {
        Verdict::Pass => Ok(()),
        Verdict::Refuse(message) => refusal(message, false),
        Verdict::Stop(message) => refusal(message, true),
        Verdict::Replace(text) => {
            let value = Value::String(response.text());
            replaced.push(Replaced { guard: guard.to_owned(), value, input: None });
            let text = text.as_str().map_or_else(|| text.to_string(), str::to_owned);
            // What the model thought, and what only its provider reads, may have the same contents.
            response.parts.retain(|part| matches!(part, Part::Call { .. }));
            response.parts.insert(0, Part::Text { text });
            Ok(())
        }
    }
}

/// Checks the arguments of a call, and returns why a guard refuses it.
pub(super) async fn check_call(
    definition: Option<&LoopDefinition>,
    scope: &Scope,
    tool: &str,
    arguments: &Arc<Value>,
) -> Result<(), String> {
    for guard in definition.into_iter().flat_map(|definition| &definition.guards) {
        let LoopGuardCheck::Call(check) = &guard.check else { continue };
        let given = (tool.to_owned(), Arc::clone(arguments));
        match verdict(caught_now(|| Ok(check(scope.clone(), given)))).await {
            Verdict::Pass => {}
            Verdict::Refuse(message) | Verdict::Stop(message) => {
                return Err(format!("the guard `{}` refused the call: {message}", guard.name));
            }
            Verdict::Replace(_) => {
                return Err(format!("the guard `{}` cannot replace arguments; refuse the call instead", guard.name));
            }
        }
    }
    Ok(())
}

/// Checks the result of a call and the shorter text for the model, and replaces what a guard says.
pub(super) async fn check_result(
    definition: Option<&LoopDefinition>,
    scope: &Scope,
    tool: &str,
    reply: &mut UntypedReply,
    replaced: &mut Vec<Replaced>,
) -> Result<()> {
    check_value(definition, scope, tool, &mut reply.output, replaced).await?;
    let Some(brief) = &mut reply.brief else { return Ok(()) };
    let mut value = Value::String(std::mem::take(brief));
    check_value(definition, scope, tool, &mut value, replaced).await?;
    *brief = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    Ok(())
}

async fn check_value(
    definition: Option<&LoopDefinition>,
    scope: &Scope,
    tool: &str,
    output: &mut Value,
    replaced: &mut Vec<Replaced>,
) -> Result<()> {
    for guard in definition.into_iter().flat_map(|definition| &definition.guards) {
        let LoopGuardCheck::Result(check) = &guard.check else { continue };
        let given = (tool.to_owned(), Arc::new(output.clone()));
        match verdict(caught_now(|| Ok(check(scope.clone(), given)))).await {
            Verdict::Pass => {}
            Verdict::Refuse(message) | Verdict::Stop(message) => {
                return Err(Error::new(format!("the guard `{}` refused the result: {message}", guard.name)));
            }
            Verdict::Replace(value) => {
                let value = std::mem::replace(output, value);
                replaced.push(Replaced { guard: guard.name.clone(), value, input: None });
            }
        }
    }
    Ok(())
}

/// Runs a check. One that fails lets nothing pass.
pub(super) async fn verdict(check: Result<futures::future::BoxFuture<'static, Result<Verdict>>>) -> Verdict {
    let verdict = match check {
        Ok(check) => caught(check).await,
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
