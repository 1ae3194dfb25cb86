//! Lookups in the tree of a run's frames.

use std::ops::ControlFlow;
use std::sync::Arc;

use serde_json::Value;

use super::frames::{BrainFrame, Call, LoopFrame, OpenFrame, Visit};
use super::state::RunState;
use crate::record::{Path, Segment, parent_of, segments_of};

impl RunState {
    /// Finds the brain with this path.
    #[must_use]
    pub fn brain(&self, path: &Path) -> Option<&BrainFrame> {
        self.walk(path.as_str(), |_| ())
    }

    /// Finds the brain with this path, and visits every frame on the way, from the outside in.
    pub(super) fn walk<'a>(&'a self, path: &str, mut visit: impl FnMut(OpenFrame<'a>)) -> Option<&'a BrainFrame> {
        let mut brain = self.root.as_deref()?;
        visit(OpenFrame::Brain(brain));
        if path.is_empty() {
            return Some(brain);
        }
        let mut segments = segments_of(path);
        while let Some(segment) = segments.next() {
            let Segment::Stage(name) = segment else { return None };
            if brain.current().is_none_or(|stage| stage.name != name) {
                return None;
            }
            brain = brain.stage.frame()?.child(&mut segments, &mut visit)?;
            visit(OpenFrame::Brain(brain));
        }
        Some(brain)
    }

    /// Finds the brain with this path, and visits every frame on the way, from the outside in.
    pub(super) fn brain_mut(&mut self, path: &str, mut visit: impl FnMut(Visit<'_>)) -> Option<&mut BrainFrame> {
        let mut brain = Arc::make_mut(self.root.as_mut()?);
        visit(Visit::Brain(brain));
        if path.is_empty() {
            return Some(brain);
        }
        let mut segments = segments_of(path);
        while let Some(segment) = segments.next() {
            let Segment::Stage(name) = segment else { return None };
            if brain.current().is_none_or(|stage| stage.name != name) {
                return None;
            }
            brain = brain.stage.frame_mut()?.child_mut(&mut segments, &mut visit)?;
            visit(Visit::Brain(brain));
        }
        Some(brain)
    }

    /// Finds the brain that contains the stage, iteration or call with this path.
    #[must_use]
    pub fn owner(&self, path: &Path) -> Option<&BrainFrame> {
        self.walk(owner_of(path)?, |_| ())
    }

    /// Finds the open loop with this path, or around the iteration or call with this path.
    #[must_use]
    pub fn loop_at(&self, path: &Path) -> Option<&LoopFrame> {
        self.owner(path)?.stage.as_loop().filter(|frame| path.is_within(&frame.path))
    }

    /// Finds the call with this path in an open batch.
    #[must_use]
    pub fn call(&self, path: &Path) -> Option<&Call> {
        let Some(Segment::Call(iteration, index)) = path.last() else { return None };
        self.loop_at(path)?.call(iteration, index)
    }

    /// Returns the recorded value of the step or call at this path.
    #[must_use]
    pub fn value(&self, path: &Path, name: &str) -> Option<Arc<Value>> {
        let values = match path.last()? {
            Segment::Call(..) => &self.call(path)?.values,
            Segment::Stage(_) | Segment::Iteration(_) | Segment::Question(..) => {
                &self.owner(path)?.stage.as_step()?.values
            }
        };
        values.get(name).cloned()
    }

    /// Returns whether a predicate holds for anything that is open. It is asked in the order of the paths, until it holds.
    pub(super) fn any_open<'a>(&'a self, mut holds: impl FnMut(OpenFrame<'a>) -> bool) -> bool {
        let mut visit =
            |open: OpenFrame<'a>| if holds(open) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        self.root.as_deref().is_some_and(|root| root.visit_open(&mut visit).is_break())
    }

    /// Visits everything that is open, in the order of the paths.
    pub(super) fn for_each_open<'a>(&'a self, mut visit: impl FnMut(OpenFrame<'a>)) {
        self.any_open(|open| {
            visit(open);
            false
        });
    }
}

/// Returns the path of the brain around a stage, an iteration, a call or a question, as text.
pub(super) fn owner_of(path: &Path) -> Option<&str> {
    let enclosing = path.parent_text()?;
    match path.last()? {
        Segment::Stage(_) => Some(enclosing),
        Segment::Iteration(_) | Segment::Call(..) | Segment::Question(..) => parent_of(enclosing),
    }
}
