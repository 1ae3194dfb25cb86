//! The fold of a run's events into spans.

use std::collections::HashMap;
use std::sync::Arc;

use positronic_core::record::{
    Actor, BrainStart, Event, EventKind, LoopOutcome, Path, RunId, Segment as PathSegment, Seq, Settings, Status,
    Timestamp,
};

use super::calls::CallWithoutResult;
use super::ids::{SpanId, SpanRef, TraceId};
use super::open::{OpenSpan, SpanRole};
use super::span::{Agent, Link, Operation, Outcome, Segment, Span};
use super::waits::OpenWait;

/// The spans of a run, as of an event of its log. It holds what is open, not what has ended.
#[derive(Debug)]
pub struct RunSpans {
    pub(super) run: RunId,
    next: Seq,
    /// Of a fork, until its own first claim: the last event that it shares with its origin.
    shared: Option<(RunId, Seq)>,
    start: Facts,
    pub(super) segment: Option<Arc<Segment>>,
    /// The last segment that has ended.
    pub(super) last: Option<Arc<Segment>>,
    /// The last time at which the segment's worker has appended an event.
    alive: Timestamp,
    /// Links for the first span of the next segment.
    pub(super) links: Vec<Link>,
    pub(super) brains: HashMap<Path, Agent>,
    pub(super) loops: HashMap<Path, OpenLoop>,
    pub(super) calls: HashMap<Path, CallWithoutResult>,
    pub(super) open: Vec<OpenSpan>,
    pub(super) waits: Vec<OpenWait>,
    pub(super) ended: Vec<Span>,
    /// Of a fork: the waits that ended in it before its first claim.
    pub(super) unclaimed: Vec<Span>,
    is_over: bool,
}

/// What all segments of a run share.
#[derive(Debug, Default)]
struct Facts {
    brain: Arc<str>,
    conversation: Option<Arc<str>>,
    user: Option<Arc<str>>,
    actor: Actor,
}

/// An open loop.
#[derive(Debug, Default)]
pub(super) struct OpenLoop {
    pub(super) iteration: Option<u32>,
    pub(super) settings: BodiesByHash<Settings>,
    pub(super) system: BodiesByHash<Arc<str>>,
}

/// Contents by hash: the log has each body once, and later only its hash.
#[derive(Debug)]
pub(super) struct BodiesByHash<T> {
    known: HashMap<positronic_core::record::ContentHash, T>,
    pub(super) current: Option<T>,
}

impl<T> Default for BodiesByHash<T> {
    fn default() -> Self {
        Self { known: HashMap::new(), current: None }
    }
}

impl<T: Clone> BodiesByHash<T> {
    pub(super) fn follow(&mut self, content: Option<&positronic_core::record::Content<T>>) {
        let Some(content) = content else { return };
        if let Some(body) = &content.body {
            self.known.insert(content.hash.clone(), body.clone());
        }
        self.current = self.known.get(&content.hash).cloned();
    }
}

impl RunSpans {
    /// Creates the fold of an empty log.
    #[must_use]
    pub fn new(run: RunId) -> Self {
        Self {
            run,
            next: Seq(0),
            shared: None,
            start: Facts::default(),
            segment: None,
            last: None,
            alive: Timestamp::default(),
            links: Vec::new(),
            brains: HashMap::new(),
            loops: HashMap::new(),
            calls: HashMap::new(),
            open: Vec::new(),
            waits: Vec::new(),
            ended: Vec::new(),
            unclaimed: Vec::new(),
            is_over: false,
        }
    }

    /// Returns the number of the next event.
    #[must_use]
    pub const fn next(&self) -> Seq {
        self.next
    }

    /// Returns whether the run has ended.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns the span in which the author's code at a path runs: the tool's, the step's or the loop's.
    #[must_use]
    pub fn current(&self, path: &Path) -> Option<(Arc<Segment>, SpanId)> {
        let of = |role| self.open.iter().rev().find(|open| open.role == role && open.path == *path);
        let open = of(SpanRole::Tool).or_else(|| of(SpanRole::Iteration)).or_else(|| of(SpanRole::Stage))?;
        Some((Arc::clone(self.segment.as_ref()?), open.id))
    }

    /// Applies the next event and returns the spans that it ends.
    pub fn apply(&mut self, event: &Event) -> Vec<Span> {
        self.next = event.seq.next();
        let (path, at) = (&event.path, (event.seq, event.at));
        match &event.kind {
            EventKind::RunClaimed { owner, trace } => self.claimed(event, owner, trace.as_deref()),
            EventKind::RunReleased { .. } => self.leave(event.at, &Outcome::Suspended),
            EventKind::BrainStart(start) => self.brain_start(event, start),
            EventKind::BrainMigrated { version, .. } => {
                if let Some(brain) = self.brains.get_mut(path) {
                    brain.version = *version;
                }
            }
            EventKind::BrainComplete { .. } => self.brain_end(event, Status::Completed, &Outcome::Done),
            EventKind::BrainError(failure) => {
                let code = super::models::word(&failure.code);
                self.brain_end(event, Status::Failed, &Outcome::failure(code, failure.message.clone()));
            }
            EventKind::BrainCancelled { .. } => {
                self.brain_end(event, Status::Cancelled, &Outcome::failed("cancelled"));
            }
            EventKind::StepStart { attempt } => {
                let name = stage_name(path);
                self.begin(path, SpanRole::Stage, at, Operation::Step { name, attempt: *attempt, retried: false });
            }
            EventKind::StepComplete { .. } => self.stage_end(event, Outcome::Done),
            EventKind::StepRetry { message, .. } => {
                // A brain that is tried again fails in the next event.
                if let Some(OpenSpan { operation: Operation::Step { retried, .. }, .. }) =
                    self.find(path, SpanRole::Stage)
                {
                    *retried = true;
                    self.stage_end(event, Outcome::failure("step", message.clone()));
                }
            }
            EventKind::UndoFailed { message } => self.stage_end(event, Outcome::failure("step", message.clone())),
            EventKind::StepBlocked {} => self.stage_end(event, Outcome::Suspended),
            EventKind::LoopStart { .. } => {
                self.loops.insert(path.clone(), OpenLoop::default());
                self.begin(path, SpanRole::Stage, at, Operation::Loop { name: stage_name(path), outcome: None });
            }
            EventKind::LoopIteration(iteration) => self.iteration(event, iteration),
            EventKind::LoopComplete { outcome, .. } => self.loop_end(event, outcome),
            EventKind::LoopMessage { actor, .. } => self.signalled(actor),
            _ => {
                self.model_event(event);
                self.call_event(event);
                self.wait_event(event);
            }
        }
        if event.epoch.is_some() {
            self.alive = event.at;
        }
        if self.shared.is_some() {
            self.ended.clear();
        }
        std::mem::take(&mut self.ended)
    }

    /// Links the first span of the segment to the span with whose context a signal came.
    fn signalled(&mut self, actor: &Actor) {
        let Some(to) = SpanRef::of_actor(actor) else { return };
        let link = Link { to, relation: "signal" };
        match self.find(&Path::root(), SpanRole::Agent) {
            Some(root) => root.links.push(link),
            None => self.links.push(link),
        }
    }

    fn claimed(&mut self, event: &Event, owner: &str, trace: Option<&str>) {
        let number = event.epoch.map_or(0, |epoch| epoch.0);
        let is_first = self.segment.as_ref().is_some_and(|segment| segment.worker.is_none());
        if !is_first {
            // The worker before has ended without a release.
            self.leave(self.alive, &Outcome::failed("interrupted"));
            let is_fork = self.shared.take_if(|(_, at)| event.seq > *at).is_some();
            if is_fork {
                self.adopt();
            }
            let parent = SpanRef::of_actor(&self.start.actor).filter(|_| is_fork);
            self.segment_start(event, parent);
            for call in self.calls.values_mut().filter(|call| call.is_detached) {
                call.resumed = Some((event.seq, event.at));
            }
        }
        let actor = &self.start.actor;
        let state = actor.trace_state.as_deref().filter(|_| actor.trace.as_deref() == trace);
        let given = trace.and_then(|trace| SpanRef::parse(trace, state));
        // A run that another process has submitted is claimed without the context of its start.
        let given = given.or_else(|| SpanRef::of_actor(actor).filter(|_| is_first && self.shared.is_none()));
        if let Some(segment) = self.segment.as_mut().map(Arc::make_mut) {
            (segment.number, segment.worker) = (number, Some(owner.into()));
            if let Some(given) = given {
                (segment.trace, segment.parent) = (given.trace, Some(given));
            }
        }
        if self.shared.is_none() {
            self.place_waits();
        }
    }

    /// Turns a fork's past into a link: its spans are those of the origin.
    fn adopt(&mut self) {
        self.ended.clear();
        self.links.clear();
        // The events that the fork shares have the same numbers in the origin.
        let origin = self.last.take().map(|last| SpanRef::own(last.trace, last.root));
        self.links.extend(origin.map(|to| Link { to, relation: "forked_from" }));
    }

    fn segment_start(&mut self, event: &Event, parent: Option<SpanRef>) {
        let root = SpanId::of(self.id_owner(), event.seq, &Path::root(), SpanRole::Agent.as_str());
        let own = || TraceId::of(self.id_owner(), event.seq);
        let trace = parent.as_ref().map_or_else(own, |parent| parent.trace);
        let Facts { brain, conversation, user, .. } = &self.start;
        self.segment = Some(Arc::new(Segment {
            run: self.id_owner().clone(),
            number: 0,
            trace,
            root,
            parent,
            worker: None,
            brain: Arc::clone(brain),
            conversation: conversation.clone(),
            user: user.clone(),
        }));
        self.alive = event.at;
        let (role, path) = (SpanRole::Agent, Path::root());
        let operation = Operation::Agent(self.brains.get(&path).cloned().unwrap_or_default());
        let mut links = std::mem::take(&mut self.links);
        if let Some(last) = &self.last {
            let to = SpanRef::own(last.trace, last.root);
            links.insert(0, Link { to, relation: "previous_segment" });
        }
        let (seq, started) = (event.seq, event.at);
        self.open.push(OpenSpan { role, path, id: root, parent: None, seq, started, operation, links });
    }

    /// Returns whether an event is the fork's own, before its first claim.
    pub(super) fn is_unclaimed_fork(&self) -> bool {
        self.shared.as_ref().is_some_and(|(_, at)| self.next > at.next())
    }

    /// Returns the run to which the events belong: a fork's shared ones belong to its origin.
    fn id_owner(&self) -> &RunId {
        self.shared.as_ref().map_or(&self.run, |(origin, _)| origin)
    }

    /// Ends the segment, and its spans where they are.
    fn leave(&mut self, at: Timestamp, outcome: &Outcome) {
        self.end_within(&Path::root(), at, outcome, |_| true);
        if let Some(segment) = self.segment.take() {
            self.last = Some(segment);
        }
    }

    fn brain_start(&mut self, event: &Event, start: &BrainStart) {
        let path = &event.path;
        let stage = match path.last() {
            Some(PathSegment::Stage(name)) => Some(name.to_owned()),
            _ => None,
        };
        let (title, version) = (Arc::from(start.title.as_str()), start.version);
        let agent = Agent { title, version, stage, provider: None, status: None };
        if path.is_root() {
            self.start.brain = Arc::clone(&agent.title);
            if let Some(start) = &start.start {
                self.start.conversation = start.conversation.as_deref().map(Into::into);
                self.start.user = start.user.as_deref().map(Into::into);
                self.start.actor = start.actor.clone();
                self.shared.clone_from(&start.forked_from);
            }
            self.brains.insert(path.clone(), agent);
            self.segment_start(event, None);
        } else {
            self.brains.insert(path.clone(), agent.clone());
            self.begin(path, SpanRole::Agent, (event.seq, event.at), Operation::Agent(agent));
        }
    }

    fn brain_end(&mut self, event: &Event, status: Status, outcome: &Outcome) {
        let (path, at) = (&event.path, event.at);
        if path.is_root() && self.segment.is_none() {
            // A signal ends a run that no worker has claimed: that is a segment, too.
            self.segment_start(event, None);
            let number = self.last.as_ref().map_or(0, |last| last.number);
            if let Some(segment) = self.segment.as_mut().map(Arc::make_mut) {
                segment.number = number;
            }
        }
        self.withdraw_within(path, at);
        let inner = if status == Status::Completed { Outcome::failed("interrupted") } else { outcome.clone() };
        let is_own = |open: &OpenSpan| open.path == *path && matches!(open.role, SpanRole::Agent | SpanRole::Tool);
        self.end_within(path, at, &inner, |open| !is_own(open));
        self.end(path, SpanRole::Agent, at, outcome.clone(), |open| {
            if let Operation::Agent(agent) = &mut open.operation {
                agent.status = Some(status);
            }
        });
        self.brains.retain(|brain, _| !brain.is_within(path));
        self.loops.retain(|open, _| !open.is_within(path));
        self.calls.retain(|call, _| call == path || !call.is_within(path));
        if path.is_root() {
            self.leave(at, &Outcome::Done);
            self.is_over = true;
        }
    }

    fn stage_end(&mut self, event: &Event, outcome: Outcome) {
        self.end_within(&event.path, event.at, &Outcome::failed("interrupted"), |open| open.role != SpanRole::Stage);
        self.end(&event.path, SpanRole::Stage, event.at, outcome, |_| {});
    }

    fn iteration(&mut self, event: &Event, iteration: &positronic_core::record::Iteration) {
        let (Some(stage), Some(PathSegment::Iteration(number))) = (event.path.parent(), event.path.last()) else {
            return;
        };
        let before = {
            let open = self.loops.entry(stage.clone()).or_default();
            open.settings.follow(iteration.settings.as_ref());
            open.system.follow(iteration.system.as_ref());
            open.iteration.replace(number)
        };
        if before == Some(number) {
            return;
        }
        if let Some(before) = before {
            self.iteration_end(&stage, before, event.at, Outcome::Done);
        }
        self.begin(&event.path, SpanRole::Iteration, (event.seq, event.at), Operation::Iteration { number });
    }

    fn iteration_end(&mut self, stage: &Path, number: u32, at: Timestamp, outcome: Outcome) {
        let path = stage.iteration(number);
        let is_outer = |open: &OpenSpan| open.path == *stage || (open.path == path && open.role == SpanRole::Iteration);
        let inner = match &outcome {
            Outcome::Failed { .. } => outcome.clone(),
            Outcome::Done | Outcome::Suspended => Outcome::failed("interrupted"),
        };
        self.end_within(stage, at, &inner, |open| !is_outer(open));
        self.end(&path, SpanRole::Iteration, at, outcome, |_| {});
    }

    fn loop_end(&mut self, event: &Event, outcome: &LoopOutcome) {
        let (path, at) = (&event.path, event.at);
        let (word, ends) = match outcome {
            LoopOutcome::Answered => ("answered", Outcome::Done),
            LoopOutcome::Exited { .. } => ("exited", Outcome::Done),
            LoopOutcome::MaxIterations => ("max_iterations", Outcome::Done),
            LoopOutcome::Limit { .. } => ("limit", Outcome::Done),
            LoopOutcome::Stopped { .. } => ("stopped", Outcome::Done),
            LoopOutcome::Failed { code, message, .. } => {
                ("failed", Outcome::failure(super::models::word(code), message.clone()))
            }
            LoopOutcome::Cancelled => ("cancelled", Outcome::failed("cancelled")),
            _ => ("other", Outcome::Done),
        };
        self.withdraw_within(path, at);
        if let Some(number) = self.loops.get(path).and_then(|open| open.iteration) {
            self.iteration_end(path, number, at, ends.clone());
        }
        self.end_within(path, at, &ends, |open| open.path != *path);
        self.end(path, SpanRole::Stage, at, ends, |open| {
            if let Operation::Loop { outcome, .. } = &mut open.operation {
                *outcome = Some(word);
            }
        });
        self.loops.remove(path);
        self.calls.retain(|call, _| !call.is_within(path));
    }
}

fn stage_name(path: &Path) -> String {
    match path.last() {
        Some(PathSegment::Stage(name)) => name.to_owned(),
        _ => String::new(),
    }
}
