//! Undo: what a brain has registered, when it is undone, and how the brain ends then.
//!
//! A completed stage with an undo is registered in its brain; a brain that ends hands what it has registered up to the brain around it, also
//! one that a model has called. A brain that fails or is cancelled with something registered does not end at once: `UNDO_START` replaces
//! its stages with steps that undo them, the last one first, and then it ends. A step that fails for good is noted, and the rest is undone.

use std::collections::BTreeSet;

use super::frames::{BrainFrame, Stage, Undoable, Undoing};
use super::stages::Reason;
use crate::record::{
    Actor, Event, EventKind, Failure, LoopOutcome, NewEvent, Path, Segment, StageKind, StageShape, UndoCause, UndoStep,
};

/// Returns the event that fails it, or begins to undo what it has done.
pub(in crate::machine) fn failed(frame: &BrainFrame, failure: Failure) -> NewEvent {
    ended(frame, UndoCause::Failed(failure))
}

/// Returns the event that ends it for a cause, or begins to undo what it has done.
pub(in crate::machine) fn ended(frame: &BrainFrame, cause: UndoCause) -> NewEvent {
    let all = undoable(frame);
    let kind = match frame.undoing.is_some() || all.is_empty() {
        true => end(cause),
        false => EventKind::UndoStart { cause, steps: steps(frame, &all) },
    };
    NewEvent::new(frame.path.clone(), kind)
}

/// Returns the event that ends it when everything is undone.
pub(in crate::machine) fn undone(frame: &BrainFrame, undoing: &Undoing) -> NewEvent {
    let Undoing { cause, steps, failed, .. } = undoing;
    let mut cause = cause.clone();
    match (&mut cause, failed.first()) {
        (UndoCause::Failed(failure), Some(first)) => {
            let (failed, all) = (failed.len(), steps.len());
            failure.message =
                format!("{}; {failed} of {all} undo steps failed, the first that of `{first}`", failure.message);
        }
        (UndoCause::Failed(_), None) => {}
        // `UNDO_START` has accepted it.
        (UndoCause::Cancelled { signal, .. }, _) => *signal = None,
    }
    NewEvent::new(frame.path.clone(), end(cause))
}

/// Returns everything that can be undone in it, in the order of completion: also that of its open brains, which end before it.
fn undoable(frame: &BrainFrame) -> Vec<Undoable> {
    let mut all = frame.undo.clone();
    let open: Vec<&BrainFrame> = match &frame.stage {
        Stage::Brain(brain) => vec![brain],
        Stage::Group(group) => group.open.values().map(|brain| &**brain).collect(),
        Stage::Loop(frame) => frame.batch.iter().filter_map(|call| call.inner()).collect(),
        Stage::Step(_) | Stage::Wait(_) | Stage::Ready | Stage::Failed(_) => Vec::new(),
    };
    for brain in open {
        all.extend(undoable(brain).into_iter().map(|undoable| lifted(frame, undoable)));
    }
    if let Some(undoing) = &frame.undoing {
        all.extend(undoing.rest().rev().cloned());
    }
    all
}

fn lifted(frame: &BrainFrame, mut undoable: Undoable) -> Undoable {
    if let Some(arm) = &frame.arm {
        undoable.arms.insert(0, arm.name.clone());
    }
    undoable
}

fn steps(frame: &BrainFrame, all: &[Undoable]) -> Vec<UndoStep> {
    let mut names: BTreeSet<String> = frame.stages.0.iter().map(|stage| stage.name.clone()).collect();
    let step = |undoable: &Undoable| {
        let Some(Segment::Stage(stage)) = undoable.path.last() else { return None };
        let plain = format!("Undo {stage}");
        let numbered = (2_u32..).map(|number| format!("{plain} {number}"));
        let name = std::iter::once(plain.clone()).chain(numbered).find(|name| names.insert(name.clone()))?;
        Some(UndoStep { name, undoes: undoable.path.clone() })
    };
    all.iter().rev().filter_map(step).collect()
}

/// Folds the begin of the undo.
pub(super) fn begin_undo(frame: &mut BrainFrame, cause: &UndoCause, steps: &[UndoStep]) -> Result<(), Reason> {
    if frame.end.is_some() || frame.undoing.is_some() {
        return Err("the brain has ended, or undoes its stages".to_owned());
    }
    let all = undoable(frame);
    let shapes = steps.iter().map(|step| StageShape::new(&step.name, StageKind::Step));
    let steps: Vec<_> = shapes.zip(all.into_iter().rev()).collect();
    if steps.is_empty() {
        return Err("the brain has nothing to undo".to_owned());
    }
    (frame.undo, frame.stage) = (Vec::new(), Stage::Ready);
    frame.undoing = Some(Box::new(Undoing { cause: cause.clone(), steps, index: 0, failed: Vec::new() }));
    Ok(())
}

/// Folds the failure of an undo step, which ends it.
pub(super) fn undo_failed(frame: &mut BrainFrame, path: &Path) -> Result<(), Reason> {
    let is_current = frame.current_path().as_ref() == Some(path);
    let undoing = frame.undoing.as_mut().filter(|_| is_current).ok_or("this undo step is not open")?;
    let failed = undoing.current().map(|undoable| undoable.path.clone());
    undoing.failed.extend(failed);
    undoing.index += 1;
    frame.stage = Stage::Ready;
    Ok(())
}

/// Registers a stage that has completed, in place of what was registered below it.
pub(super) fn register_undo(frame: &mut BrainFrame, event: &Event) {
    let is_closed = matches!(event.kind, EventKind::LoopComplete { outcome: LoopOutcome::Cancelled, .. });
    let is_undone = !is_closed && frame.undoing.is_none() && frame.current().is_some_and(|stage| stage.undo);
    if is_undone && let Some(path) = frame.current_path() {
        debug_assert_eq!(path, event.path);
        frame.undo.retain(|undoable| !undoable.path.is_within(&path));
        let (options, state) = (frame.options.clone(), frame.state.clone());
        frame.undo.push(Undoable { path, arms: Vec::new(), options, state });
    }
}

/// Takes what it has registered, when it ends.
pub(super) fn take_undo(frame: &mut BrainFrame) -> Vec<Undoable> {
    let all = undoable(frame);
    frame.undo = Vec::new();
    all
}

/// Registers what a brain of its stage had registered.
pub(super) fn hand_up(frame: &mut BrainFrame, all: Vec<Undoable>) {
    let lifted: Vec<_> = all.into_iter().map(|undoable| lifted(frame, undoable)).collect();
    frame.undo.extend(lifted);
}

fn end(cause: UndoCause) -> EventKind {
    match cause {
        UndoCause::Failed(failure) => EventKind::BrainError(failure),
        UndoCause::Cancelled { signal, actor, reason } => EventKind::BrainCancelled { signal, actor, reason },
    }
}

/// Returns the events that undo what a completed run has done, in a run that stands before its end; `None` if there is nothing to undo.
pub(crate) fn undo_by_hand(root: &BrainFrame, actor: Actor) -> Option<Vec<NewEvent>> {
    let cause = UndoCause::Cancelled { signal: None, actor, reason: Some("a person undoes it".to_owned()) };
    let begins = ended(root, cause);
    matches!(begins.kind, EventKind::UndoStart { .. }).then(|| vec![begins])
}
