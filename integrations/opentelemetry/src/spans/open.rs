//! The open spans of a segment: each is found by its path and its role, and begins below the one around it.

use std::collections::HashMap;
use std::sync::Arc;

use positronic_core::record::{Path, RunId, Segment as PathSegment, Seq, Settings, Timestamp};

use super::bodies::BodiesByHash;
use super::ids::{SpanId, SpanRef};
use super::span::{Agent, Link, Operation, Outcome, Segment, Span, Tool, Wait};

/// Distinguishes the spans at one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpanRole {
    Agent,
    Stage,
    Iteration,
    Chat,
    Tool,
    Wait,
}

impl SpanRole {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Stage => "stage",
            Self::Iteration => "iteration",
            Self::Chat => "chat",
            Self::Tool => "tool",
            Self::Wait => "wait",
        }
    }
}

/// A span that has not ended.
#[derive(Debug, Clone)]
pub(super) struct OpenSpan {
    pub(super) role: SpanRole,
    pub(super) path: Path,
    pub(super) id: SpanId,
    pub(super) parent: Option<SpanId>,
    pub(super) seq: Seq,
    pub(super) started: Timestamp,
    pub(super) operation: Operation,
    pub(super) links: Vec<Link>,
}

/// A call without a result.
#[derive(Debug)]
pub(super) struct CallWithoutResult {
    pub(super) tool: Tool,
    /// When its tool continued after a wait.
    pub(super) resumed: Option<(Seq, Timestamp)>,
    /// The last wait that has ended.
    pub(super) waited: Option<SpanRef>,
    /// Whether its tool runs apart from the worker, and so goes on in the next segment.
    pub(super) is_detached: bool,
}

/// A wait that lasts.
#[derive(Debug)]
pub(super) struct OpenWait {
    pub(super) path: Path,
    /// The segment in which it began.
    pub(super) segment: Arc<Segment>,
    pub(super) id: SpanId,
    pub(super) parent: Option<SpanId>,
    pub(super) seq: Seq,
    pub(super) started: Timestamp,
    pub(super) wait: Wait,
}

/// An open loop.
#[derive(Debug, Default)]
pub(super) struct OpenLoop {
    pub(super) iteration: Option<u32>,
    pub(super) settings: BodiesByHash<Settings>,
    pub(super) system: BodiesByHash<Arc<str>>,
}

/// What is open of a run, and the spans that the last event has ended.
#[derive(Debug)]
pub(super) struct OpenSpans {
    pub(super) run: RunId,
    pub(super) segment: Option<Arc<Segment>>,
    /// The last segment that has ended.
    pub(super) last: Option<Arc<Segment>>,
    /// Links for the first span of the next segment.
    pub(super) links: Vec<Link>,
    pub(super) brains: HashMap<Path, Agent>,
    pub(super) loops: HashMap<Path, OpenLoop>,
    pub(super) calls: HashMap<Path, CallWithoutResult>,
    pub(super) open: Vec<OpenSpan>,
    pub(super) waits: Vec<OpenWait>,
    pub(super) ended: Vec<Span>,
    /// Whether the events are a fork's own, before its first claim.
    pub(super) is_unclaimed_fork: bool,
    /// Of a fork: the waits that ended in it before its first claim.
    pub(super) unclaimed: Vec<Span>,
}

impl OpenSpans {
    pub(super) fn new(run: RunId) -> Self {
        Self {
            run,
            segment: None,
            last: None,
            links: Vec::new(),
            brains: HashMap::new(),
            loops: HashMap::new(),
            calls: HashMap::new(),
            open: Vec::new(),
            waits: Vec::new(),
            ended: Vec::new(),
            is_unclaimed_fork: false,
            unclaimed: Vec::new(),
        }
    }

    /// Returns the open span at a path.
    pub(super) fn find(&mut self, path: &Path, role: SpanRole) -> Option<&mut OpenSpan> {
        self.open.iter_mut().rev().find(|open| open.role == role && open.path == *path)
    }

    /// Begins a span below the one around it. One at the same place ends.
    pub(super) fn begin(&mut self, path: &Path, role: SpanRole, at: (Seq, Timestamp), operation: Operation) {
        if self.segment.is_none() {
            return;
        }
        self.end(path, role, at.1, Outcome::failed("interrupted"), |_| {});
        let parent = self.enclosing(path, role, at);
        self.push(path, role, at, parent, operation);
    }

    fn push(
        &mut self,
        path: &Path,
        role: SpanRole,
        (seq, started): (Seq, Timestamp),
        parent: Option<SpanId>,
        operation: Operation,
    ) -> SpanId {
        let id = SpanId::of(&self.run, seq, path, role.as_str());
        let path = path.clone();
        self.open.push(OpenSpan { role, path, id, parent, seq, started, operation, links: Vec::new() });
        id
    }

    /// Returns the span around a place; begins it if it is not open in this segment.
    pub(super) fn enclosing(&mut self, path: &Path, role: SpanRole, at: (Seq, Timestamp)) -> Option<SpanId> {
        let (path, role) = self.enclosing_place(path, role)?;
        Some(self.ensure(&path, role, at))
    }

    /// Returns the open span at a place; begins it if it is not open in this segment, as when a run continues.
    pub(super) fn ensure(&mut self, path: &Path, role: SpanRole, at: (Seq, Timestamp)) -> SpanId {
        if let Some(open) = self.find(path, role) {
            return open.id;
        }
        let parent = self.enclosing(path, role, at);
        let operation = self.operation_at(path, role);
        self.push(path, role, at, parent, operation)
    }

    /// Returns the place around a place; `None` for the run's own brain.
    fn enclosing_place(&self, path: &Path, role: SpanRole) -> Option<(Path, SpanRole)> {
        let parent = path.parent();
        let inner = path.last();
        Some(match (role, inner) {
            (SpanRole::Agent, None) => return None,
            (SpanRole::Agent, Some(PathSegment::Call(..))) if self.calls.contains_key(path) => {
                (path.clone(), SpanRole::Tool)
            }
            // A brain of a group.
            (SpanRole::Agent, Some(PathSegment::Call(..))) => (parent?, SpanRole::Stage),
            (SpanRole::Agent | SpanRole::Stage, _) => (parent?, SpanRole::Agent),
            (SpanRole::Iteration, _) => (parent?, SpanRole::Stage),
            (SpanRole::Chat, Some(PathSegment::Question(iteration, _))) => {
                (parent?.iteration(iteration), SpanRole::Iteration)
            }
            // A question of a step, or of a plugin before its iteration.
            (SpanRole::Chat, _) if self.iteration_of(parent.as_ref()?) != inner => (parent?, SpanRole::Stage),
            (SpanRole::Chat, _) => (path.clone(), SpanRole::Iteration),
            (SpanRole::Tool | SpanRole::Wait, Some(PathSegment::Call(iteration, _))) => {
                (parent?.iteration(iteration), SpanRole::Iteration)
            }
            (SpanRole::Tool | SpanRole::Wait, _) if self.brains.contains_key(path) => (path.clone(), SpanRole::Agent),
            (SpanRole::Tool | SpanRole::Wait, _) => (path.clone(), SpanRole::Stage),
        })
    }

    fn iteration_of(&self, stage: &Path) -> Option<PathSegment<'static>> {
        self.loops.get(stage)?.iteration.map(PathSegment::Iteration)
    }

    /// Describes what goes on at a place in this segment.
    fn operation_at(&self, path: &Path, role: SpanRole) -> Operation {
        let name = || match path.last() {
            Some(PathSegment::Stage(name)) => name.to_owned(),
            _ => String::new(),
        };
        match (role, path.last()) {
            (SpanRole::Agent, _) => Operation::Agent(self.brains.get(path).cloned().unwrap_or_else(Agent::default)),
            (SpanRole::Iteration, Some(PathSegment::Iteration(number))) => Operation::Iteration { number },
            (SpanRole::Tool, _) => {
                let tool = self.calls.get(path).map(|call| Tool { started: true, ..call.tool.clone() });
                Operation::Tool(Box::new(tool.unwrap_or_default()))
            }
            _ if self.loops.contains_key(path) => Operation::Loop { name: name(), outcome: None },
            _ => Operation::Step { name: name(), attempt: 0, retried: false },
        }
    }

    /// Ends the span at a place, if it is open. `complete` adds what is known at its end.
    pub(super) fn end(
        &mut self,
        path: &Path,
        role: SpanRole,
        at: Timestamp,
        outcome: Outcome,
        complete: impl FnOnce(&mut OpenSpan),
    ) -> bool {
        let place = self.open.iter().rposition(|open| open.role == role && open.path == *path);
        let Some(mut open) = place.map(|place| self.open.remove(place)) else { return false };
        complete(&mut open);
        self.finish(open, at, outcome);
        true
    }

    /// Ends the open spans at and below a path that match, the last first.
    pub(super) fn end_within(
        &mut self,
        path: &Path,
        at: Timestamp,
        outcome: &Outcome,
        ends: impl Fn(&OpenSpan) -> bool,
    ) {
        let ends = |open: &mut OpenSpan| open.path.is_within(path) && ends(open);
        let ended: Vec<_> = self.open.extract_if(.., ends).collect();
        for open in ended.into_iter().rev() {
            self.finish(open, at, outcome.clone());
        }
    }

    fn finish(&mut self, open: OpenSpan, at: Timestamp, outcome: Outcome) {
        let Some(segment) = self.segment.clone() else { return };
        let OpenSpan { path, id, parent, seq, started, operation, links, .. } = open;
        let ended = at.max(started);
        self.ended.push(Span { segment, id, parent, path, seq, started, ended, operation, outcome, links });
    }
}
