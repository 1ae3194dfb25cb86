//! The guards that hold for a loop: its own, and those of loops that handed their dialogue over.

use crate::definition::{LoopDefinition, LoopGuard, LoopGuardCheck, Scope};
use crate::machine::RunState;
use crate::record::{Path, Segment};
use crate::runner::worker::Worker;

/// Returns the guards of one kind for a loop, each with what it sees. Those of loops that handed their dialogue over come first: the person
/// talks to them.
pub(in crate::runner) fn guards_at(
    worker: &mut Worker,
    loop_at: &Path,
    own: Option<&LoopDefinition>,
    is_kind: fn(&LoopGuardCheck) -> bool,
) -> Vec<(LoopGuard, Scope)> {
    // Most loops have no guards, and are not reached by a handoff.
    let is_bare = own.is_none_or(|own| own.guards.is_empty());
    if is_bare && handed_over_by(&worker.state, loop_at).is_none() {
        return Vec::new();
    }
    let mut loops = vec![(loop_at.clone(), own.map(|own| own.guards.clone()))];
    while let Some(outer) = loops.last().and_then(|(path, _)| handed_over_by(&worker.state, path)) {
        let guards = worker.frames.loop_at(&outer).map(|definition| definition.guards.clone());
        loops.push((outer, guards));
    }
    let mut found = Vec::new();
    for (path, guards) in loops.into_iter().rev() {
        for guard in guards.into_iter().flatten().filter(|guard| is_kind(&guard.check)) {
            found.extend(worker.scope(path.clone()).map(|scope| (guard, scope)));
        }
    }
    found
}

/// Returns the loop that handed its dialogue over to a loop: to its brain, or to one around that.
pub(in crate::runner) fn handed_over_by(state: &RunState, loop_at: &Path) -> Option<Path> {
    // The loops of the run's own brain, which are most, are below no call.
    loop_at.parent_text().filter(|brain| !brain.is_empty())?;
    let mut at = loop_at.parent()?;
    loop {
        match (at.last()?, state.call(&at)) {
            (_, Some(call)) => return at.parent().filter(|_| call.hands_over()),
            // A stage with a brain, or a member of a group.
            (Segment::Stage(_) | Segment::Call(..), None) => at = at.parent()?,
            (Segment::Iteration(_) | Segment::Question(..), None) => return None,
        }
    }
}
