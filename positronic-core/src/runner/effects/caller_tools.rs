//! The caller's own tools in a loop that takes them. Their calls are checked as those of the loop's tools; then they wait for the caller.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::definition::{LoopDefinition, StageDefinition, ToolBody, ToolDefinition};
use crate::error::{Error, Result};
use crate::record::{CallerTool, Dialogue, Path, Segment, ToolDecl, ToolSet};
use crate::runner::worker::Worker;
use crate::tools::Schema;

/// Adds the caller's tools to an iteration of a loop that takes them.
pub(super) fn offer(worker: &Worker, path: &Path, definition: &mut LoopDefinition) -> Result<()> {
    let tools = &worker.state.caller_tools;
    if tools.is_empty() || !takes(worker, path) {
        return Ok(());
    }
    let own: Vec<_> = definition.tools.values().map(|tool| &tool.decl).collect();
    if let Some((tool, own)) = CallerTool::collision(tools, &own) {
        return Err(Error::new(format!(
            "the caller's tool `{tool}` has the name of the loop's tool `{own}`; the caller has to rename it"
        )));
    }
    for tool in tools.iter() {
        add(tool.decl(), definition);
    }
    Ok(())
}

fn takes(worker: &Worker, path: &Path) -> bool {
    let Some(Segment::Stage(name)) = path.last() else { return false };
    let brain = worker.frames.definition(&path.parent().unwrap_or_default());
    brain
        .and_then(|brain| brain.stage(name))
        .and_then(|stage: &StageDefinition| stage.body.as_loop())
        .is_some_and(|stage| stage.caller_tools)
}

/// Adds the caller's tools that an iteration was prepared with, after a restart.
pub(in crate::runner) fn restore(prepared: &ToolSet, definition: &mut LoopDefinition) {
    for decl in prepared.tools().iter().filter(|tool| tool.flags.caller) {
        add(decl.clone(), definition);
    }
}

fn add(decl: ToolDecl, definition: &mut LoopDefinition) {
    let schema = Arc::new(Schema::new(Value::clone(&decl.parameters)));
    let tool = ToolDefinition {
        schema,
        foreign: true,
        timeout: Duration::MAX,
        retries: 0,
        decodes: Arc::new(|_| Ok(())),
        owner: None,
        gate: None,
        exits: None,
        dialogue: Dialogue::Whole,
        body: ToolBody::Function {
            execute: Arc::new(|_, _| Box::pin(async { Err(Error::new("the caller runs this tool")) })),
            waits: None,
        },
        decl,
    };
    definition.tools.insert(tool.decl.id.clone(), Arc::new(tool));
}
