//! How a brain's code differs from the code that its run began with: which changes a run survives, and its migration.

use crate::definition::{BrainDefinition, StageDefinition, ToolDefinition, encode};
use crate::error::caught_now;
use crate::machine::BrainFrame;
use crate::record::{Change, EventKind, ToolDecl};

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

/// Returns how the tool of an open call differs from the one that the model was offered.
pub(super) fn tool_difference(then: &ToolDecl, now: &ToolDefinition) -> Option<String> {
    // Another program's tool reports itself which arguments no longer fit.
    (!now.foreign && then.parameters != now.decl.parameters)
        .then(|| format!("its tool `{}` has other parameters now; restore the old ones until it is done", then.id))
}
