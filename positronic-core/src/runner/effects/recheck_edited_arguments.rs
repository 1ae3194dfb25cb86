//! Checks of arguments that a person has edited, before the call runs: against the schema of the tool as it is now, the guards of
//! the loop and the author's conditions. The signal was checked against the recorded schema (`machine/admit/approval.rs`).
//!
//! A call's approval and exit were decided by the proposed arguments. An edit cannot lift a condition: a call that
//! violates one does not run, and its result says why.

use std::sync::Arc;

use serde_json::Value;

use super::guards::check_call;
use super::validate_calls::gate;
use crate::definition::{Invocation, LoopDefinition, Scope, ToolDefinition};
use crate::error::{Error, Result, caught_now};
use crate::machine::Replaced;
use crate::runner::Clock;

/// Checks the edited arguments of a call, whose flags say whether it ended its loop when the model proposed it.
///
/// # Errors
///
/// If a guard refuses or replaces them, the approval's condition fails, or the edit changes whether the call ends its loop.
pub(super) async fn check_edit(
    clock: &dyn Clock,
    loop_at: Option<&LoopDefinition>,
    tool: &ToolDefinition,
    scope: &Scope,
    Invocation { tool: name, arguments, flags, .. }: &Invocation,
) -> Result<()> {
    check_guards(loop_at, scope, name, arguments).await?;
    let refused =
        |error: Error| Error::new(format!("the edited arguments are refused, and the tool did not run: {error}"));
    let mut decoded = Value::clone(arguments);
    tool.accept(&mut decoded).map_err(Error::new).map_err(refused)?;
    if let Some(ends) = tool.exits.as_ref().filter(|_| tool.decl.flags.exit)
        && caught_now(|| ends(arguments)).map_err(refused)? != flags.exit
    {
        let what =
            if flags.exit { "would not end the loop, and the proposed ones would" } else { "would end the loop" };
        return Err(refused(Error::new(format!("they {what}; reject the call and say what to call instead"))));
    }
    // The reason of the approval does not matter: the person who edited has approved these arguments.
    gate(clock, tool, arguments, scope.clone()).await.map_err(refused).map(drop)
}

/// Checks arguments that a person has edited, which no guard can replace.
async fn check_guards(
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
