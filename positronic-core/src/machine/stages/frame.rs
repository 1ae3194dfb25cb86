//! What a stage does: before it begins by its kind, then by its frame.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::machine::effect::Next;
use crate::machine::frames::{BrainFrame, Intent, OpenFrame, OpenQuestion, Stage, Visit};
use crate::machine::limits::Enclosing;
use crate::record::{ArmShape, Change, Event, HandedOver, NewEvent, Path, PluginStates, Segment, Seq, Timestamp};

/// The reason why an event cannot happen now.
pub(in crate::machine) type Reason = String;

/// A kind of stage, before a stage of it begins. It has one implementation per [`StageKind`](crate::record::StageKind).
pub(in crate::machine) trait Kind {
    /// Adds the effects that begin the stage at `path`.
    fn next(&self, owner: &BrainFrame, path: Path, now: Timestamp, enclosing: &Enclosing<'_>, out: &mut Next);

    /// Folds the event that begins the stage.
    fn apply<'e>(&self, event: &'e Event, owner: &BrainFrame) -> Result<Advance<'e>, Reason>;

    /// Returns whether it begins with the preparation of a model request, which limits can block.
    fn begins_with_request(&self) -> bool {
        false
    }
}

/// A stage that has begun.
pub(in crate::machine) trait Frame {
    /// Adds the effects that it needs now. `owner` is the brain around it.
    fn next<'a>(&'a self, owner: &'a BrainFrame, now: Timestamp, enclosing: &mut Enclosing<'a>, out: &mut Next);

    /// Folds an event at the stage's path or below it, but not in a brain below it.
    fn apply<'e>(&mut self, event: &'e Event, owner: OwnerState<'_>) -> Result<Advance<'e>, Reason>;

    /// Marks the work in flight as doubtful: its worker ended, by a crash or regularly. `shared` is the last event that a fork
    /// shares.
    fn doubt(&mut self, crashed: bool, shared: Option<Seq>);

    /// Moves the deadlines of what is open: it is part of a fork, which begins later.
    fn postpone(&mut self, by: Duration);

    /// Adds the events that end everything open in it from outside, deepest first.
    fn close(&self, _why: &str, _new_events: &mut Vec<NewEvent>) {}

    /// Returns whether there is an intent without an outcome, or a delayed retry; `requests` decides it for requests to models.
    fn in_flight(&self, requests: fn(Intent) -> bool) -> bool;

    /// Returns whether it needs a model request next, which the limit of an outer loop does not allow.
    fn is_blocked_by_limit(&self) -> bool;

    /// Collects the active loops and brains with a time limit, and returns whether the stage is active. `waits` is whether a
    /// frame around it waits for more of a limit.
    fn collect_active(&self, waits: bool, active: &mut Vec<Path>) -> bool;

    /// Returns whether it waits for the outcome of an effect at a path.
    fn awaits(&self, path: &Path) -> bool;

    /// Returns whether it can only fail.
    fn is_failing(&self) -> bool {
        false
    }

    /// Returns its questions to models outside of an iteration.
    fn questions(&self) -> &[OpenQuestion] {
        &[]
    }

    /// Finds the brain below it by the next segments of a path, and visits its own frame.
    fn child<'a>(
        &'a self,
        _segments: &mut Segments<'_>,
        _visit: &mut dyn FnMut(OpenFrame<'a>),
    ) -> Option<&'a BrainFrame> {
        None
    }

    /// As [`Frame::child`], in order to change it.
    fn child_mut(
        &mut self,
        _segments: &mut Segments<'_>,
        _visit: &mut dyn FnMut(Visit<'_>),
    ) -> Option<&mut BrainFrame> {
        None
    }

    /// Visits everything open in it, in the order of the paths.
    fn visit<'a>(&'a self, owner: &'a BrainFrame, visit: &mut Visitor<'_, 'a>) -> ControlFlow<()>;
}

/// The rest of a path.
pub(in crate::machine) type Segments<'p> = dyn Iterator<Item = Segment<'p>> + 'p;

/// Visits open frames until it breaks.
pub(in crate::machine) type Visitor<'v, 'a> = dyn FnMut(OpenFrame<'a>) -> ControlFlow<()> + 'v;

/// Where an event leads a stage.
pub(in crate::machine) enum Advance<'e> {
    /// It stays open.
    Stay,
    /// It begins.
    Begun(Stage),
    /// It is done, with this change of its brain's state.
    Done(Option<&'e Change>),
    /// An arm of it is chosen.
    Chosen(&'e ArmShape),
    /// A round of it is done with this change of its brain's state, and the state is not done.
    Again(Option<&'e Change>),
    /// It is done, and the rest of its brain is skipped for this reason.
    Stopped(&'e Value),
}

/// What a stage's events change in the brain around it.
pub(in crate::machine) struct OwnerState<'a> {
    pub(in crate::machine) state: &'a mut Arc<Value>,
    pub(in crate::machine) changed: &'a mut Seq,
    pub(in crate::machine) plugins: &'a mut PluginStates,
    pub(in crate::machine) handed_over: &'a mut Option<Box<HandedOver>>,
    pub(in crate::machine) handed_back: &'a mut Option<Value>,
}

impl OwnerState<'_> {
    /// Applies a recorded change to the state.
    pub(in crate::machine) fn change(&mut self, change: Option<&Change>, event: &Event) -> Result<(), Reason> {
        if let Some(change) = change {
            change.apply(Arc::make_mut(self.state)).map_err(|error| error.to_string())?;
            *self.changed = event.seq;
        }
        Ok(())
    }
}

/// Returns how requests count below a frame: a delayed one is not retried before more is granted, if a request for more is open.
pub(super) const fn requests_below(waits_for_more: bool, requests: fn(Intent) -> bool) -> fn(Intent) -> bool {
    if waits_for_more { Intent::is_running } else { requests }
}
