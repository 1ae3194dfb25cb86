//! Lookups in the tree of a run's frames.

use std::sync::Arc;

use serde_json::Value;

use super::frames::{BrainFrame, Call, CallPhase, LoopFrame, Stage};
use super::state::RunState;
use crate::record::{Path, Segment, parent_of, segments_of};

impl RunState {
    /// Finds the brain with this path.
    #[must_use]
    pub fn brain(&self, path: &Path) -> Option<&BrainFrame> {
        self.brain_of(path.as_str())
    }

    fn brain_of(&self, path: &str) -> Option<&BrainFrame> {
        let mut brain = self.root.as_deref()?;
        let mut segments = segments_of(path);
        while let Some(segment) = segments.next() {
            let Segment::Stage(name) = segment else { return None };
            if brain.current().is_none_or(|stage| stage.name != name) {
                return None;
            }
            brain = match &brain.stage {
                Stage::Brain(inner) => inner,
                Stage::Loop(frame) => {
                    let Some(Segment::Call(iteration, index)) = segments.next() else { return None };
                    match &frame.call(iteration, index)?.phase {
                        CallPhase::Brain(inner) => inner,
                        _ => return None,
                    }
                }
                Stage::Ready | Stage::Step(_) | Stage::Failed(_) => return None,
            };
        }
        Some(brain)
    }

    /// Finds the brain with this path, and calls `visit` for every frame on the way, from the outside in.
    pub(super) fn brain_mut(&mut self, path: &str, mut visit: impl FnMut(Visit<'_>)) -> Option<&mut BrainFrame> {
        let mut brain = Arc::make_mut(self.root.as_mut()?);
        visit(Visit::Brain(brain));
        let mut segments = segments_of(path);
        while let Some(segment) = segments.next() {
            let Segment::Stage(name) = segment else { return None };
            if brain.current().is_none_or(|stage| stage.name != name) {
                return None;
            }
            brain = match &mut brain.stage {
                Stage::Brain(inner) => Arc::make_mut(inner),
                Stage::Loop(frame) => {
                    let frame = Arc::make_mut(frame);
                    visit(Visit::Loop(frame));
                    let Some(Segment::Call(iteration, index)) = segments.next() else { return None };
                    match &mut frame.call_mut(iteration, index)?.phase {
                        CallPhase::Brain(inner) => Arc::make_mut(inner),
                        _ => return None,
                    }
                }
                Stage::Ready | Stage::Step(_) | Stage::Failed(_) => return None,
            };
            visit(Visit::Brain(brain));
        }
        Some(brain)
    }

    /// Finds the brain that contains the stage, iteration or call with this path.
    #[must_use]
    pub fn owner(&self, path: &Path) -> Option<&BrainFrame> {
        self.brain_of(owner_of(path)?)
    }

    /// Finds the open loop with this path, or around the iteration or call with this path.
    #[must_use]
    pub fn loop_at(&self, path: &Path) -> Option<&LoopFrame> {
        match &self.owner(path)?.stage {
            Stage::Loop(frame) if path.is_within(&frame.path) => Some(frame),
            _ => None,
        }
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
            Segment::Stage(_) | Segment::Iteration(_) => match &self.owner(path)?.stage {
                Stage::Step(step) => &step.values,
                _ => return None,
            },
        };
        values.get(name).cloned()
    }
}

/// A brain, the loop of its current stage, or a call of that loop's batch.
#[derive(Clone, Copy)]
pub(super) enum Open<'a> {
    Brain(&'a BrainFrame),
    Loop(&'a LoopFrame),
    Call(&'a Call),
}

pub(super) enum Visit<'a> {
    Brain(&'a mut BrainFrame),
    Loop(&'a mut LoopFrame),
}

/// Returns the path of the brain around a stage, an iteration or a call, as text.
pub(super) fn owner_of(path: &Path) -> Option<&str> {
    let around = parent_of(path.as_str())?;
    match path.last()? {
        Segment::Stage(_) => Some(around),
        Segment::Iteration(_) | Segment::Call(..) => parent_of(around),
    }
}

impl BrainFrame {
    /// Calls `visit` for the brain and everything open below it, in the order of their paths, until it returns a value.
    pub(super) fn find_open<'a, T>(&'a self, visit: &mut impl FnMut(Open<'a>) -> Option<T>) -> Option<T> {
        visit(Open::Brain(self)).or_else(|| match &self.stage {
            Stage::Brain(inner) => inner.find_open(visit),
            Stage::Loop(frame) => visit(Open::Loop(frame)).or_else(|| {
                let mut calls = frame.batch.iter();
                calls.find_map(|call| visit(Open::Call(call)).or_else(|| call.inner()?.find_open(visit)))
            }),
            Stage::Ready | Stage::Step(_) | Stage::Failed(_) => None,
        })
    }
}
