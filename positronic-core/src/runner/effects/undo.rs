//! A step that undoes a stage: the author's code for it, and what that sees.

use std::sync::Arc;

use serde_json::Value;

use super::link::RunLink;
use crate::definition::{AnyServices, BrainDefinition, LoopStage, NestedDefinition, Scope, StepFn, ToolBody};
use crate::error::{Error, Result};
use crate::machine::{RunState, Undoable};
use crate::record::{EventKind, Path, Segment, Seq};
use crate::runner::client::child_ends::{UNDOES, cancel_children};
use crate::runner::worker::Worker;
use crate::runner::worker::loaded_code::Frames;
use crate::runner::worker::restore::configured_again;
use crate::runner::worker::shared::Shared;

/// The number of events per read of the log.
const CHUNK: usize = 1024;

/// Returns the code of an undo step, which leaves the state as it is, and its scope: the state after the undone stage, with the options of its
/// brain. `None` if the step undoes nothing.
pub(super) fn undo_step(worker: &mut Worker, path: &Path) -> Option<Result<(StepFn, Scope)>> {
    let brain = worker.state.owner(path)?;
    let undoable = brain.undoing.as_ref()?.current()?.clone();
    let (owner, state) = (brain.path.clone(), Value::clone(&brain.state));
    let mut scope = worker.scope(path.clone())?;
    scope.options = scope.state.with_json(Arc::clone(&undoable.options));
    scope.state = scope.state.with_json(Arc::clone(&undoable.state));
    let Some(definition) = worker.frames.definition(&owner).cloned() else { return Some(Err(missing(&undoable.path))) };
    let (shared, link) = (Arc::clone(&worker.shared), Arc::clone(&worker.link));
    let undone = Arc::new(Undone { shared, link, owner, definition, undoable });
    let run: StepFn = Arc::new(move |scope| {
        let (undone, state) = (Arc::clone(&undone), state.clone());
        Box::pin(async move {
            undone.cancel_children().await;
            let (undo, services) = undone.code(&scope).await?;
            undo(Scope { services, ..scope }).await.map(|_| state)
        })
    });
    Some(Ok((run, scope)))
}

fn missing(path: &Path) -> Error {
    Error::new(format!("the brain's code no longer undoes `{path}`"))
}

/// A stage that is undone by a brain around it.
struct Undone {
    shared: Arc<Shared>,
    link: Arc<RunLink>,
    /// The path of the brain that undoes it.
    owner: Path,
    /// The code of that brain.
    definition: Arc<BrainDefinition>,
    undoable: Undoable,
}

impl Undone {
    /// Cancels the children of a run that is undone: they must not go on while what they are part of is taken back.
    async fn cancel_children(&self) {
        let state = self.shared.state().clone();
        if self.owner.is_root() && !state.children.is_empty() {
            cancel_children(&self.shared.runner.client(), &self.shared.run, &state, UNDOES).await;
        }
    }

    /// Finds the undo of the stage in the code, and the services of its brain. `scope` has those of the brain that undoes it.
    async fn code(&self, scope: &Scope) -> Result<(StepFn, AnyServices)> {
        let missing = || missing(&self.undoable.path);
        let (mut definition, mut services) = (Arc::clone(&self.definition), Arc::clone(&scope.services));
        let (mut at, mut arms) = (self.owner.clone(), self.undoable.arms.iter().map(String::as_str));
        let mut below = self.undoable.path.segments().skip(self.owner.segments().count()).peekable();
        while let Some(segment) = below.next() {
            let Segment::Stage(name) = segment else { return Err(missing()) };
            let stage = definition.stage(name).ok_or_else(missing)?;
            at = at.stage(name);
            let next = below.peek().copied();
            if next.is_none() {
                return stage.undo.clone().map(|undo| (undo, services)).ok_or_else(missing);
            }
            let called = below.next_if(|next| matches!(next, Segment::Call(..)));
            let nested = match (called, stage.body.as_loop()) {
                (Some(Segment::Call(iteration, index)), Some(stage)) => {
                    at = at.call(iteration, index);
                    let scope = Scope { services: Arc::clone(&services), ..scope.clone() };
                    Some(self.called(&at, stage, scope).await?)
                }
                (Some(Segment::Call(first, index)), None) => {
                    at = at.call(first, index);
                    let arm = stage.body.as_branch().and_then(|_| arms.next());
                    stage.body.child(index).or_else(|| stage.body.nested(arm)).cloned()
                }
                _ => stage.body.nested(stage.body.as_branch().and_then(|_| arms.next())).cloned(),
            };
            definition = nested.ok_or_else(missing)?.definition;
            services = Frames::provided(&definition, services)?;
        }
        Err(missing())
    }

    /// Finds the brain that a model has called, in the configuration of its loop as of then.
    async fn called(&self, call: &Path, stage: &LoopStage, mut scope: Scope) -> Result<NestedDefinition> {
        let missing = || missing(&self.undoable.path);
        let then = self.state_at(call).await?;
        let (brain, frame) = then.owner(call).zip(then.loop_at(call)).ok_or_else(missing)?;
        let tool = &then.call(call).ok_or_else(missing)?.tool;
        scope.options = scope.state.with_json(Arc::clone(&brain.options));
        scope.path = frame.path.clone();
        let definition = configured_again(frame, brain, stage, scope, &self.link).await?;
        match definition.tools.get(tool.as_str()).map(|tool| &tool.body) {
            Some(ToolBody::Brain(nested)) => Ok(nested.clone()),
            Some(ToolBody::Function { .. }) | None => Err(missing()),
        }
    }

    /// Reads the state of the run when a brain had begun.
    async fn state_at(&self, brain: &Path) -> Result<RunState> {
        let (mut state, mut from) = (RunState::default(), Seq(0));
        loop {
            let events =
                self.shared.runner.store.read(&self.shared.run, from, CHUNK).await.map_err(Error::transient)?;
            from = events.last().ok_or_else(|| missing(&self.undoable.path))?.seq.next();
            for event in &events {
                state.fold(event)?;
                if matches!(event.kind, EventKind::BrainStart(_)) && event.path == *brain {
                    return Ok(state);
                }
            }
        }
    }
}
