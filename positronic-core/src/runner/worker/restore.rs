//! Restores the code of open frames after a restart, and refuses code that differs from the run's.

use std::pin::pin;
use std::sync::Arc;

use futures::future::BoxFuture;

use super::loaded_code::Frames;
use super::stop_reason::Stop;
use super::worker::Worker;
use crate::definition::{
    AnyServices, BrainDefinition, LoopDefinition, LoopStage, NestedDefinition, Scope, StageDefinition, ToolBody,
    ToolDefinition, encode,
};
use crate::error::caught_now;
use crate::machine::{BrainFrame, CallPhase, LoopFrame, LoopPhase, RunState};
use crate::record::{Change, EventKind, Path, RunId, Segment, ToolDecl};
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
) -> Result<bool, Stop> {
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
            () = shared.runner.state.registry.left() => return Err(Stop::Leaves),
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
    ) -> Result<Self, Stop> {
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
    ) -> BoxFuture<'a, Result<(), Stop>> {
        Box::pin(self.restore_brain(frame, definition, outer, link))
    }

    async fn restore_brain(
        &mut self,
        frame: &BrainFrame,
        definition: &Arc<BrainDefinition>,
        outer: &AnyServices,
        link: &Arc<RunLink>,
    ) -> Result<(), Stop> {
        if let Some(difference) = difference(frame, definition) {
            return Err(Stop::Changed(difference));
        }
        // Services depend on the outside world, where a retry may succeed: a failure delays the run.
        let provided = Self::provided(definition, Arc::clone(outer));
        let services = provided.map_err(|error| Stop::Services(error.to_string()))?;
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
    ) -> Result<(), Stop> {
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
    ) -> Result<(), Stop> {
        for call in loop_at.batch.iter().filter(|call| call.result().is_none()) {
            let declared = loop_at.prepared.tools.tools().iter().find(|tool| tool.id.as_str() == call.tool);
            // A missing tool gives the call a typed result; a tool with other parameters would misread its
            // arguments.
            let Some((declared, tool)) = declared.and_then(|tool| Some((tool, definition.tools.get(&tool.id)?))) else {
                continue;
            };
            if let Some(difference) = tool_difference(declared, tool) {
                return Err(Stop::Changed(format!("the call `{}` is open, and {difference}", call.path)));
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

fn tool_difference(then: &ToolDecl, now: &ToolDefinition) -> Option<String> {
    // Another program's tool reports itself which arguments no longer fit.
    (!now.foreign && then.parameters != now.decl.parameters)
        .then(|| format!("its tool `{}` has other parameters now; restore the old ones until it is done", then.id))
}

/// Returns the event that migrates a run to its brain's code if the code has changed: stages that the run has not
/// reached may change, and a new version may migrate the state. Otherwise returns the difference.
pub(in crate::runner) fn migration(
    frame: &BrainFrame,
    definition: &BrainDefinition,
    max_bytes: usize,
) -> Result<Option<EventKind>, String> {
    let migrated = |change| EventKind::BrainMigrated {
        version: definition.version,
        fingerprint: definition.fingerprint(),
        stages: definition.shape(),
        change,
    };
    let Some(difference) = difference(frame, definition) else {
        return Ok((definition.fingerprint() != frame.fingerprint).then(|| migrated(None)));
    };
    let migrate = definition.migrations.get(&frame.version).filter(|_| *frame.title == *definition.title);
    let Some(migrate) = migrate.filter(|_| frame.version != definition.version) else { return Err(difference) };
    let failed = |error: crate::Error| {
        let (from, to) = (frame.version, definition.version);
        format!("{difference}, and the state cannot be migrated from version {from} to {to}: {error}")
    };
    // A migration knows the state, and not what the stage waits for.
    let current = frame.current().and_then(|stage| definition.stage(&stage.name));
    if let Some(difference) = current.and_then(|now| open_difference(frame, now)) {
        return Err(difference);
    }
    let next = caught_now(|| encode(&migrate(&frame.state)?, max_bytes)).map_err(failed)?;
    Ok(Some(migrated(Change::between(&frame.state, &next))))
}

/// Returns that a run has begun with a version that the code cannot migrate, from its row. The log is loaded for all other
/// differences.
pub(in crate::runner) fn version_difference(title: &str, then: u32, definition: &BrainDefinition) -> Option<String> {
    let fits = [0, definition.version].contains(&then) || definition.migrations.contains_key(&then);
    (!fits).then(|| other_version(title, then, definition.version))
}

fn other_version(title: &str, then: u32, now: u32) -> String {
    format!("the run has begun with version {then} of `{title}`, the code has version {now}")
}

/// Returns how a brain's code differs from the code that a run began with, up to its current stage. The code of a
/// closure is invisible; its author changes the brain's version instead.
pub(super) fn difference(frame: &BrainFrame, definition: &BrainDefinition) -> Option<String> {
    let title = &frame.title;
    if **title != *definition.title {
        return Some(format!("the run is of the brain `{title}`, the code is that of `{}`", definition.title));
    }
    if frame.version != definition.version {
        return Some(other_version(title, frame.version, definition.version));
    }
    if frame.stages.fingerprint(title, frame.version, definition.options.json()) != frame.fingerprint {
        return Some(format!("the options of `{title}` have another schema now"));
    }
    let now = definition.shape();
    let reached = frame.stages.0.iter().take(frame.index + 1);
    for (place, then) in (1..).zip(reached) {
        let name = &then.name;
        match now.0.get(place - 1) {
            None => return Some(format!("`{title}` has no stage {place} any more, which was `{name}`")),
            Some(stage) if stage.name != *name => {
                return Some(format!("stage {place} of `{title}` was `{name}`, and is `{}` now", stage.name));
            }
            Some(stage) if stage.kind != then.kind => {
                return Some(format!(
                    "the stage `{name}` of `{title}` was a {}, and is a {} now",
                    then.kind, stage.kind
                ));
            }
            Some(stage) if stage.brain != then.brain => {
                return Some(format!("the brain that the stage `{name}` of `{title}` runs is another one now"));
            }
            Some(_) => {}
        }
    }
    open_difference(frame, definition.stages.get(frame.index)?)
}

/// Returns how a brain's current stage differs from what it has begun with: the chosen arm, the brains of a group, or the answers that it
/// takes, which are known by their order.
fn open_difference(frame: &BrainFrame, now: &StageDefinition) -> Option<String> {
    let (name, title) = (&now.name, &frame.title);
    if let Some(group) = frame.stage.as_group() {
        let is_same = now.body.as_group().is_some_and(|now| *now.shapes() == *group.brains);
        return (!is_same).then(|| format!("the brains that the stage `{name}` of `{title}` runs are others now"));
    }
    let now = now.shape();
    if frame.arm.as_ref().is_some_and(|arm| !now.arms.contains(arm)) {
        return Some(format!("the chosen arm of the branch `{name}` of `{title}` is another one now"));
    }
    let wait = frame.stage.as_wait()?;
    let is_same = wait.waits.iter().map(|wait| &wait.webhook).eq(&now.webhooks);
    (!is_same).then(|| format!("the stage `{name}` of `{title}` waits for other webhooks now"))
}
