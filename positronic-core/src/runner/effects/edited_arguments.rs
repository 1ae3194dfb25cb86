//! Checks of arguments that a person has edited, against the author's conditions.
//!
//! A call's approval and exit were decided by the proposed arguments. An edit cannot lift a condition: a call that
//! violates one does not run, and its result says why.

use std::sync::Arc;

use serde_json::Value;

use crate::definition::{Scope, ToolDefinition};
use crate::error::{Error, Result};
use crate::runner::catch::{caught, caught_now, owner_scope};

/// Checks edited arguments against a tool's conditions. `exits` says whether the call ended its loop when the model
/// proposed it.
///
/// # Errors
///
/// If the approval's condition fails, or the edit changes whether the call ends its loop.
pub(super) async fn check(tool: &ToolDefinition, arguments: &Arc<Value>, exits: bool, scope: Scope) -> Result<()> {
    let refused =
        |error: Error| Error::new(format!("the edited arguments are refused, and the tool did not run: {error}"));
    let mut decoded = Value::clone(arguments);
    caught_now(|| tool.accept(&mut decoded).map_err(Error::new)).map_err(refused)?;
    if let Some(ends) = tool.exits.as_ref().filter(|_| tool.decl.flags.exit)
        && caught_now(|| ends(arguments)).map_err(refused)? != exits
    {
        let what = if exits { "would not end the loop, and the proposed ones would" } else { "would end the loop" };
        return Err(refused(Error::new(format!("they {what}; reject the call and say what to call instead"))));
    }
    if let Some(gate) = &tool.gate {
        // The reason of the approval does not matter: the person who edited has approved these arguments.
        let scope = owner_scope(Some(tool), scope).map_err(refused)?;
        let verdict = caught_now(|| Ok(gate(Arc::clone(arguments), scope))).map_err(refused)?;
        caught(verdict).await.map_err(refused)?;
    }
    Ok(())
}
