//! Validation of the calls of an answer: the tool, the arguments, and whether an approval is required.
//!
//! What a person is asked about has been decoded as the tool's code decodes it. Near misses are repaired, and the call says so.

use std::sync::Arc;

use serde_json::Value;

use super::guards::{Refused, check_call};
use super::state_owner::owner_scope;
use crate::definition::{LoopDefinition, Scope, ToolDefinition};
use crate::error::{Error, Result, caught, caught_now};
use crate::machine::{Replaced, Validated};
use crate::record::{
    ArgumentMistake, CallFlags, Gate, Path, ProposedCall, Repair, Segment, ToolCall, ToolSet, check_depth,
    check_numbers,
};
use crate::runner::Clock;
use crate::runner::clock::limited;
use crate::tools::{near_name, parse_arguments};

/// The answer of an iteration whose calls are validated.
pub(super) struct IterationAnswer<'a> {
    pub(super) clock: &'a dyn Clock,
    /// The iteration.
    pub(super) path: &'a Path,
    pub(super) tools: &'a ToolSet,
    pub(super) definition: Option<&'a LoopDefinition>,
    pub(super) scope: &'a Scope,
}

impl IterationAnswer<'_> {
    /// Returns the scope of the author's code for a call.
    fn scope(&self, index: u32) -> Scope {
        let iteration = match self.path.last() {
            Some(Segment::Iteration(iteration)) => iteration,
            _ => 0,
        };
        Scope { path: self.path.parent().unwrap_or_default().call(iteration, index), ..self.scope.clone() }
    }
}

/// Validates the calls of an answer, unless a guard of one of them stops the loop.
pub(super) async fn validate_calls(
    calls: Vec<ProposedCall>,
    answer: &IterationAnswer<'_>,
) -> Result<Vec<Validated>, Refused> {
    let mut validated = Vec::with_capacity(calls.len());
    for (index, call) in (0..).zip(calls) {
        validated.push(validate(call, index, answer).await?);
    }
    Ok(validated)
}

async fn validate(
    ProposedCall { name, arguments, provider_id, data }: ProposedCall,
    index: u32,
    answer: &IterationAnswer<'_>,
) -> Result<Validated, Refused> {
    let mut made = ToolCall {
        tool: name,
        arguments: Arc::default(),
        provider_id,
        data,
        flags: CallFlags::default(),
        gate: None,
        repair: None,
    };
    let (mut repair, mut replaced) = (Repair::default(), Vec::new());
    let completed = complete(&mut made, (&mut repair, &mut replaced), &arguments, index, answer).await;
    let refused = match completed {
        Ok(()) => None,
        Err(Invalid::Refused(reason)) => Some(reason),
        Err(Invalid::Stops(refused)) => return Err(refused),
    };
    if !repair.is_empty() {
        made.repair = Some(Box::new(repair));
    }
    Ok(Validated { call: made, refused, replaced })
}

/// What is wrong with a call.
enum Invalid {
    /// It gets this reason as its error.
    Refused(String),
    /// A guard stops the loop.
    Stops(Refused),
}

impl From<String> for Invalid {
    fn from(reason: String) -> Self {
        Self::Refused(reason)
    }
}

/// Sets the tool, the arguments, the flags and the gate of a call, up to the first that is invalid.
async fn complete(
    call: &mut ToolCall,
    (repair, replaced): (&mut Repair, &mut Vec<Replaced>),
    arguments: &str,
    index: u32,
    answer: &IterationAnswer<'_>,
) -> Result<(), Invalid> {
    let (json, invalid) = match read_arguments(arguments) {
        Ok((json, mistakes)) => {
            repair.arguments = mistakes;
            (json, None)
        }
        Err(reason) => (Value::String(arguments.to_owned()), Some(reason)),
    };
    call.arguments = Arc::new(json);
    let tool = find_tool(&call.tool, repair, answer)?;
    if call.tool != tool.decl.id.as_str() {
        tool.decl.id.as_str().clone_into(&mut call.tool);
    }
    if let Some(reason) = invalid {
        return Err(format!("the arguments {reason}").into());
    }
    repair.arguments.extend(fit_arguments(&mut call.arguments, tool)?);
    call.flags = tool.decl.flags;
    // Most calls have neither a guard nor a gate.
    if answer.definition.is_some_and(|definition| !definition.guards.is_empty()) {
        guarded(call, replaced, tool, index, answer).await?;
    }
    call.flags.exit = call.flags.exit && ends_loop(&call.arguments, tool)?;
    if tool.gate.is_some() {
        // After an error, it is unknown whether the call needs an approval, so it does not run.
        let needed = gate(answer.clock, tool, &call.arguments, answer.scope(index)).await;
        call.gate = needed.map_err(|error| format!("cannot determine whether the call needs an approval: {error}"))?;
    }
    Ok(())
}

/// Lets the guards check a call, with arguments that fit its tool also after they have replaced them.
async fn guarded(
    call: &mut ToolCall,
    replaced: &mut Vec<Replaced>,
    tool: &ToolDefinition,
    index: u32,
    answer: &IterationAnswer<'_>,
) -> Result<(), Invalid> {
    let (scope, at) = (answer.scope(index), answer.path.about_answer());
    let checked = check_call(answer.definition, &scope, &at, &call.tool, &mut call.arguments, replaced).await;
    if let Err(Refused { guard, message }) = checked {
        return Err(match guard.stops {
            true => Invalid::Stops(Refused { guard, message: format!("its call of `{}`: {message}", call.tool) }),
            false => Invalid::Refused(Refused { guard, message }.sentence("call")),
        });
    }
    if let Some(Replaced { guard, .. }) = replaced.last() {
        let fit = fit_arguments(&mut call.arguments, tool);
        fit.map_err(|reason| format!("the guard `{guard}` replaced the arguments, and {reason}"))?;
    }
    Ok(())
}

/// Reads the JSON of arguments, with what was repaired in it.
fn read_arguments(arguments: &str) -> Result<(Value, Vec<ArgumentMistake>), String> {
    let text = if arguments.trim().is_empty() { "{}" } else { arguments };
    let (mut json, mistakes) = parse_arguments(text).map_err(|error| format!("are not valid JSON: {error}"))?;
    check_numbers(text).map_err(|number| format!("have {number}"))?;
    check_depth(&json).map_err(|deep| format!("cannot be taken: {deep}"))?;
    json.sort_all_objects();
    Ok((json, mistakes))
}

/// Finds the tool of a name, or of one that is nearly the same.
fn find_tool<'a>(
    name: &str,
    repair: &mut Repair,
    &IterationAnswer { tools, definition, .. }: &IterationAnswer<'a>,
) -> Result<&'a ToolDefinition, String> {
    let decl = tools.find(name).or_else(|| {
        let near = near_name(tools, name)?;
        repair.name = Some(name.to_owned());
        Some(near)
    });
    decl.zip(definition).and_then(|(decl, definition)| definition.tools.get(&decl.id)).map(|tool| &**tool).ok_or_else(
        || {
            let known: Vec<_> = tools.tools().iter().map(|tool| format!("`{}`", tool.id.wire_name())).collect();
            format!("there is no tool `{name}`; the tools are {}", known.join(", "))
        },
    )
}

/// Decodes arguments as the tool's code does, and returns what was repaired in them.
fn fit_arguments(arguments: &mut Arc<Value>, tool: &ToolDefinition) -> Result<Vec<ArgumentMistake>, String> {
    let arguments = Arc::make_mut(arguments);
    tool.accept_near(arguments).map_err(|reason| format!("the arguments do not match the schema: {reason}"))
}

/// Returns whether a call of an exit tool ends the loop.
fn ends_loop(arguments: &Arc<Value>, tool: &ToolDefinition) -> Result<bool, String> {
    let Some(exits) = &tool.exits else { return Ok(true) };
    caught_now(|| exits(arguments)).map_err(|error| format!("cannot determine whether the call ends the loop: {error}"))
}

/// Returns the approval that a call needs by its tool's condition, which gets as much time as one try of the tool.
pub(super) async fn gate(
    clock: &dyn Clock,
    tool: &ToolDefinition,
    arguments: &Arc<Value>,
    scope: Scope,
) -> Result<Option<Gate>> {
    let Some(gate) = &tool.gate else { return Ok(None) };
    let scope = owner_scope(Some(tool), scope)?;
    let verdict = caught_now(|| Ok(gate(Arc::clone(arguments), scope)))?;
    let late = || Err(Error::new(format!("the approval's condition took longer than {:?}", tool.timeout)));
    limited(clock, tool.timeout, caught(verdict)).await.unwrap_or_else(late)
}
