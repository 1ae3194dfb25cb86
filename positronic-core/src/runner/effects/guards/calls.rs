//! Guards on the arguments of calls and on their results.

use std::sync::Arc;

use serde_json::Value;

use super::verdict::{Refused, as_text, replacement, verdict};
use crate::definition::{CheckFn, CheckedValue, LoopDefinition, LoopGuardCheck, Scope, UntypedReply};
use crate::error::Result;
use crate::machine::Replaced;
use crate::record::Path;

/// Checks the arguments of a call, and replaces them if a guard says so. The guards ask models at a path.
pub(in crate::runner::effects) async fn check_call(
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

/// Checks the result of a call and the shorter text for the model, and replaces what a guard says.
pub(in crate::runner::effects) async fn check_result(
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
    reply.brief = Some(as_text(&brief));
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
        let verdict = verdict(scope, at, &check, given).await;
        if let Some(other) = replacement(&guard.name, verdict)? {
            let original = Arc::unwrap_or_clone(std::mem::replace(value, Arc::new(other)));
            replaced.push(Replaced { guard: guard.name.clone(), value: original, input: None });
        }
    }
    Ok(())
}
