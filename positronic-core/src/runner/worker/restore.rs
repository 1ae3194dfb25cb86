//! Restores the code of open frames after a restart. Code that differs from the run's is refused (`code_difference.rs`).

use std::pin::pin;
use std::sync::Arc;

use futures::future::BoxFuture;

use super::code_difference::{difference, tool_difference};
use super::loaded_code::Frames;
use super::stop_reason::ResumeError;
use super::worker::Worker;
use crate::definition::{AnyServices, BrainDefinition, LoopDefinition, LoopStage, NestedDefinition, Scope, ToolBody};
use crate::error::caught_now;
use crate::machine::{BrainFrame, CallPhase, LoopFrame, LoopPhase, RunState};
use crate::record::{Path, RunId, Segment};
use crate::runner::effects::caller_tools;
use crate::runner::effects::continued::stay;
use crate::runner::effects::link::RunLink;
use crate::runner::effects::plugin_hooks::found_again;

/// Restores the code of the open frames: the author's configurations rerun on the state that they saw. Plugins may take any
/// time for that, so it is abandoned when the runner releases its runs. Returns `false` if another writer ended or
/// paused the run meanwhile.
pub(super) async fn restore(
    worker: &mut Worker,
    state: &RunState,
    definition: &Arc<BrainDefinition>,
) -> Result<bool, ResumeError> {
    let (shared, link) = (Arc::clone(&worker.shared), Arc::clone(&worker.link));
    let mut restored = pin!(Frames::restored(&shared.run, state, definition, &link));
    loop {
        tokio::select! {
            biased;
            frames = &mut restored => {
                worker.frames = frames?;
                worker.frames.forget_closed(&worker.state, &[&Path::root()]);
                return Ok(true);
            }
            () = shared.runner.state.registry.left() => return Err(ResumeError::Leaves),
            () = shared.bell.notified() => {
                worker.catch_up().await?;
                if worker.state.has_ended() || worker.state.paused.is_some() {
                    return Ok(false);
                }
            }
        }
    }
}

impl Frames {
    /// Finds the definitions, services and tools of all open frames. Configurations rerun on the state that they
    /// saw.
    pub(in crate::runner) async fn restored(
        run: &RunId,
        state: &RunState,
        definition: &Arc<BrainDefinition>,
        link: &Arc<RunLink>,
    ) -> Result<Self, ResumeError> {
        let mut frames = Self::new(run, state.start.user.as_deref(), link.max_bytes());
        if let Some(root) = &state.root {
            frames.restore(root, definition, &(Arc::new(()) as AnyServices), link).await?;
        }
        Ok(frames)
    }

    /// Boxed, because brains nest.
    fn restore<'a>(
        &'a mut self,
        frame: &'a BrainFrame,
        definition: &'a Arc<BrainDefinition>,
        outer: &'a AnyServices,
        link: &'a Arc<RunLink>,
    ) -> BoxFuture<'a, Result<(), ResumeError>> {
        Box::pin(self.restore_brain(frame, definition, outer, link))
    }

    async fn restore_brain(
        &mut self,
        frame: &BrainFrame,
        definition: &Arc<BrainDefinition>,
        outer: &AnyServices,
        link: &Arc<RunLink>,
    ) -> Result<(), ResumeError> {
        if let Some(difference) = difference(frame, definition) {
            return Err(ResumeError::Changed { difference });
        }
        // Services depend on the outside world, where a retry may succeed: a failure delays the run.
        let provided = Self::provided(definition, Arc::clone(outer));
        let services = provided.map_err(|error| ResumeError::Services { reason: error.to_string() })?;
        self.begin(frame, Arc::clone(definition), Arc::clone(&services));
        let Some(body) = frame.current().and_then(|stage| definition.stage(&stage.name)).map(|stage| &stage.body)
        else {
            return Ok(());
        };
        if let (Some(inner), Some(nested)) =
            (frame.stage.as_brain(), body.nested(frame.arm.as_ref().map(|arm| arm.name.as_str())))
        {
            self.restore(inner, &nested.definition, &services, link).await
        } else if let Some(group) = frame.stage.as_group() {
            for (index, inner) in &group.open {
                if let Some(nested) = body.child(*index) {
                    self.restore(inner, &nested.definition, &services, link).await?;
                }
            }
            Ok(())
        } else if let (Some(loop_at), Some(stage)) = (frame.stage.as_loop(), body.as_loop()) {
            let scope = self.scope(frame, loop_at.path.clone(), link);
            self.restore_loop(loop_at, frame, stage, scope, &services, link).await
        } else {
            Ok(())
        }
    }

    async fn restore_loop(
        &mut self,
        loop_at: &LoopFrame,
        brain: &BrainFrame,
        stage: &LoopStage,
        scope: Scope,
        services: &AnyServices,
        link: &Arc<RunLink>,
    ) -> Result<(), ResumeError> {
        // A loop between iterations is configured after the claim, so that a crash of its closure counts.
        if matches!(loop_at.phase, LoopPhase::Prepare) {
            return Ok(());
        }
        let yielded = match configured_again(loop_at, brain, stage, scope, link).await {
            Ok(yielded) => yielded,
            Err(error) => {
                self.broken.push((loop_at.path.clone(), error.to_string()));
                return Ok(());
            }
        };
        self.restore_calls(loop_at, &yielded, services, link).await?;
        self.set_loop(loop_at.path.clone(), Arc::new(yielded));
        Ok(())
    }

    async fn restore_calls(
        &mut self,
        loop_at: &LoopFrame,
        definition: &LoopDefinition,
        services: &AnyServices,
        link: &Arc<RunLink>,
    ) -> Result<(), ResumeError> {
        for call in loop_at.batch.iter().filter(|call| call.result().is_none()) {
            let declared = loop_at.prepared.tools.tools().iter().find(|tool| tool.id.as_str() == call.tool);
            // A missing tool gives the call a typed result; a tool with other parameters would misread its
            // arguments.
            let Some((declared, tool)) = declared.and_then(|tool| Some((tool, definition.tools.get(&tool.id)?))) else {
                continue;
            };
            if let Some(difference) = tool_difference(declared, tool) {
                return Err(ResumeError::Changed {
                    difference: format!("the call `{}` is open, and {difference}", call.path),
                });
            }
            if let (CallPhase::Brain(inner), ToolBody::Brain(NestedDefinition { definition, .. })) =
                (&call.phase, &tool.body)
            {
                self.restore(inner, definition, services, link).await?;
            }
        }
        Ok(())
    }
}

/// Returns the configuration of an iteration that has begun: the author's closure reruns on the state that it saw.
///
/// # Errors
///
/// The error of the closure.
pub(in crate::runner) async fn configured_again(
    loop_at: &LoopFrame,
    brain: &BrainFrame,
    stage: &LoopStage,
    mut scope: Scope,
    link: &RunLink,
) -> crate::Result<LoopDefinition> {
    scope.state = scope.state.with_json(Arc::clone(&loop_at.seen));
    scope.plugins = loop_at.seen_plugins.clone();
    let mut yielded = caught_now(|| stage.configured(scope.clone()))?;
    if let Some(Segment::Stage(name)) = loop_at.path.last() {
        stay(&mut yielded, brain, name, Some(loop_at));
    }
    scope.link = Arc::new(link.read_only());
    scope.path = loop_at.path.iteration(loop_at.iteration);
    yielded.begun = Some(Arc::clone(&loop_at.prepared.tools));
    let mut yielded = found_again(yielded, scope).await;
    caller_tools::restore(&loop_at.prepared.tools, &mut yielded);
    Ok(yielded)
}
