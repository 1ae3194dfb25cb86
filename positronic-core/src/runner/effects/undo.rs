//! A step that undoes a stage: the author's code for it, and what that sees.

use serde_json::Value;

use crate::definition::{AnyServices, Scope, StepFn};
use crate::error::{Error, Result};
use crate::machine::Undoable;
use crate::record::{Path, Segment};
use crate::runner::worker::Worker;
use crate::runner::worker::frames::Frames;

/// Returns the code of an undo step, which leaves the state as it is, and its scope: the state after the undone stage, with the options and
/// services of its brain. `None` if the step undoes nothing.
pub(super) fn undo_step(worker: &mut Worker, path: &Path) -> Option<Result<(StepFn, Scope)>> {
    let brain = worker.state.owner(path)?;
    let undoable = brain.undoing.as_ref()?.current()?.clone();
    let (owner, state) = (brain.path.clone(), Value::clone(&brain.state));
    let mut scope = worker.scope(path.clone())?;
    Some(code(worker, &owner, &undoable).map(|(undo, services)| {
        scope.options = scope.state.with_json(undoable.options);
        scope.state = scope.state.with_json(undoable.state);
        scope.services = services;
        let run: StepFn = std::sync::Arc::new(move |scope| {
            let (undone, state) = (undo(scope), state.clone());
            Box::pin(async move { undone.await.map(|_| state) })
        });
        (run, scope)
    }))
}

/// Finds the undo of a stage in the code, and the services of its brain.
fn code(worker: &Worker, owner: &Path, undoable: &Undoable) -> Result<(StepFn, AnyServices)> {
    let missing = || Error::new(format!("the brain's code no longer undoes `{}`", undoable.path));
    let mut definition = worker.frames.definition(owner).cloned().ok_or_else(missing)?;
    let mut services = worker.frames.services(owner);
    let mut arms = undoable.arms.iter();
    let mut below = undoable.path.segments().skip(owner.segments().count()).peekable();
    while let Some(segment) = below.next() {
        let Segment::Stage(name) = segment else { return Err(missing()) };
        let stage = definition.stage(name).ok_or_else(missing)?;
        let nested = match below.peek().copied() {
            None => return stage.undo.clone().map(|undo| (undo, services)).ok_or_else(missing),
            Some(Segment::Call(_, index)) => {
                below.next();
                stage.body.child(index).or_else(|| stage.body.nested(None))
            }
            Some(_) if stage.body.as_branch().is_some() => stage.body.nested(arms.next().map(String::as_str)),
            Some(_) => stage.body.nested(None),
        };
        let inner = nested.ok_or_else(missing)?.definition.clone();
        services = Frames::provided(&inner, services)?;
        definition = inner;
    }
    Err(missing())
}
