//! The fold of a run's events into spans.

use std::sync::Arc;

use positronic_core::record::{
    Actor, BrainStart, Event, EventKind, LoopOutcome, Path, RunId, Segment as PathSegment, Seq, Status, Timestamp,
};

use super::calls::call_event;
use super::ids::{SpanId, SpanRef, TraceId};
use super::models::{model_event, word};
use super::open::{OpenLoop, OpenSpan, OpenSpans, SpanRole};
use super::span::{Agent, Link, Operation, Outcome, Segment, Span};
use super::waits::{place_waits, wait_event, withdraw_within};

/// The spans of a run, as of an event of its log. It holds what is open, not what has ended.
#[derive(Debug)]
pub struct RunSpans {
    next: Seq,
    /// Of a fork, until its own first claim: the last event that it shares with its origin.
    shared: Option<(RunId, Seq)>,
    start: RunStart,
    /// The last time at which the segment's worker has appended an event.
    alive: Timestamp,
    is_over: bool,
    spans: OpenSpans,
}

/// What all segments of a run share.
#[derive(Debug, Default)]
struct RunStart {
    brain: Arc<str>,
    conversation: Option<Arc<str>>,
    user: Option<Arc<str>>,
    actor: Actor,
}

impl RunSpans {
    /// Creates the fold of an empty log.
    #[must_use]
    pub fn new(run: RunId) -> Self {
        let (start, alive) = (RunStart::default(), Timestamp::default());
        Self { next: Seq(0), shared: None, start, alive, is_over: false, spans: OpenSpans::new(run) }
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
        let of = |role| self.spans.open.iter().rev().find(|open| open.role == role && open.path == *path);
        let open = of(SpanRole::Tool).or_else(|| of(SpanRole::Iteration)).or_else(|| of(SpanRole::Stage))?;
        Some((Arc::clone(self.spans.segment.as_ref()?), open.id))
    }

    /// Applies the next event and returns the spans that it ends.
    pub fn apply(&mut self, event: &Event) -> Vec<Span> {
        self.next = event.seq.next();
        self.spans.is_unclaimed_fork = self.shared.as_ref().is_some_and(|(_, at)| event.seq > *at);
        let (path, at) = (&event.path, (event.seq, event.at));
        match &event.kind {
            EventKind::RunClaimed { owner, trace } => self.claimed(event, owner, trace.as_deref()),
            EventKind::RunReleased { .. } => self.leave(event.at, &Outcome::Suspended),
            EventKind::BrainStart(start) => self.brain_start(event, start),
            EventKind::BrainMigrated { version, .. } => {
                if let Some(brain) = self.spans.brains.get_mut(path) {
                    brain.version = *version;
                }
            }
            EventKind::BrainComplete { .. } => self.brain_end(event, Status::Completed, &Outcome::Done),
            EventKind::BrainError(failure) => {
                let code = word(&failure.code);
                self.brain_end(event, Status::Failed, &Outcome::failure(code, failure.message.clone()));
            }
            EventKind::BrainCancelled { .. } => {
                self.brain_end(event, Status::Cancelled, &Outcome::failed("cancelled"));
            }
            EventKind::StepStart { attempt } => {
                let name = stage_name(path);
                self.spans.begin(
                    path,
                    SpanRole::Stage,
                    at,
                    Operation::Step { name, attempt: *attempt, retried: false },
                );
            }
            EventKind::StepComplete { .. } => self.stage_end(event, Outcome::Done),
            EventKind::StepRetry { message, .. } => {
                // A brain that is tried again fails in the next event.
                if let Some(OpenSpan { operation: Operation::Step { retried, .. }, .. }) =
                    self.spans.find(path, SpanRole::Stage)
                {
                    *retried = true;
                    self.stage_end(event, Outcome::failure("step", message.clone()));
                }
            }
            EventKind::UndoFailed { message } => self.stage_end(event, Outcome::failure("step", message.clone())),
            EventKind::StepBlocked {} => self.stage_end(event, Outcome::Suspended),
            EventKind::LoopStart { .. } => {
                self.spans.loops.insert(path.clone(), OpenLoop::default());
                self.spans.begin(path, SpanRole::Stage, at, Operation::Loop { name: stage_name(path), outcome: None });
            }
            EventKind::LoopIteration(iteration) => self.iteration(event, iteration),
            EventKind::LoopComplete { outcome, .. } => self.loop_end(event, outcome),
            EventKind::LoopMessage { actor, .. } => self.signalled(actor),
            _ => {
                model_event(&mut self.spans, event);
                call_event(&mut self.spans, event);
                wait_event(&mut self.spans, event);
            }
        }
        if event.epoch.is_some() {
            self.alive = event.at;
        }
        if self.shared.is_some() {
            self.spans.ended.clear();
        }
        std::mem::take(&mut self.spans.ended)
    }

    /// Links the first span of the segment to the span with whose context a signal came.
    fn signalled(&mut self, actor: &Actor) {
        let Some(to) = SpanRef::of_actor(actor) else { return };
        let link = Link { to, relation: "signal" };
        match self.spans.find(&Path::root(), SpanRole::Agent) {
            Some(root) => root.links.push(link),
            None => self.spans.links.push(link),
        }
    }

    fn claimed(&mut self, event: &Event, owner: &str, trace: Option<&str>) {
        let number = event.epoch.map_or(0, |epoch| epoch.0);
        let is_first = self.spans.segment.as_ref().is_some_and(|segment| segment.worker.is_none());
        if !is_first {
            // The worker before has ended without a release.
            self.leave(self.alive, &Outcome::failed("interrupted"));
            let is_fork = self.shared.take_if(|(_, at)| event.seq > *at).is_some();
            if is_fork {
                self.adopt();
            }
            let parent = SpanRef::of_actor(&self.start.actor).filter(|_| is_fork);
            self.segment_start(event, parent);
            for call in self.spans.calls.values_mut().filter(|call| call.is_detached) {
                call.resumed = Some((event.seq, event.at));
            }
        }
        let actor = &self.start.actor;
        let state = actor.trace_state.as_deref().filter(|_| actor.trace.as_deref() == trace);
        let given = trace.and_then(|trace| SpanRef::parse(trace, state));
        // A run that another process has submitted is claimed without the context of its start.
        let given = given.or_else(|| SpanRef::of_actor(actor).filter(|_| is_first && self.shared.is_none()));
        if let Some(segment) = self.spans.segment.as_mut().map(Arc::make_mut) {
            (segment.number, segment.worker) = (number, Some(owner.into()));
            if let Some(given) = given {
                (segment.trace, segment.parent) = (given.trace, Some(given));
            }
        }
        if self.shared.is_none() {
            place_waits(&mut self.spans);
        }
    }

    /// Turns a fork's past into a link: its spans are those of the origin.
    fn adopt(&mut self) {
        self.spans.ended.clear();
        self.spans.links.clear();
        // The events that the fork shares have the same numbers in the origin.
        let origin = self.spans.last.take().map(|last| SpanRef::own(last.trace, last.root));
        self.spans.links.extend(origin.map(|to| Link { to, relation: "forked_from" }));
    }

    fn segment_start(&mut self, event: &Event, parent: Option<SpanRef>) {
        let root = SpanId::of(self.id_owner(), event.seq, &Path::root(), SpanRole::Agent.as_str());
        let own = || TraceId::of(self.id_owner(), event.seq);
        let trace = parent.as_ref().map_or_else(own, |parent| parent.trace);
        let RunStart { brain, conversation, user, .. } = &self.start;
        self.spans.segment = Some(Arc::new(Segment {
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
        let operation = Operation::Agent(self.spans.brains.get(&path).cloned().unwrap_or_default());
        let mut links = std::mem::take(&mut self.spans.links);
        if let Some(last) = &self.spans.last {
            let to = SpanRef::own(last.trace, last.root);
            links.insert(0, Link { to, relation: "previous_segment" });
        }
        let (seq, started) = (event.seq, event.at);
        self.spans.open.push(OpenSpan { role, path, id: root, parent: None, seq, started, operation, links });
    }

    /// Returns the run to which the events belong: a fork's shared ones belong to its origin.
    fn id_owner(&self) -> &RunId {
        self.shared.as_ref().map_or(&self.spans.run, |(origin, _)| origin)
    }

    /// Ends the segment, and its spans where they are.
    fn leave(&mut self, at: Timestamp, outcome: &Outcome) {
        self.spans.end_within(&Path::root(), at, outcome, |_| true);
        if let Some(segment) = self.spans.segment.take() {
            self.spans.last = Some(segment);
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
            self.spans.brains.insert(path.clone(), agent);
            self.segment_start(event, None);
        } else {
            self.spans.brains.insert(path.clone(), agent.clone());
            self.spans.begin(path, SpanRole::Agent, (event.seq, event.at), Operation::Agent(agent));
        }
    }

    fn brain_end(&mut self, event: &Event, status: Status, outcome: &Outcome) {
        let (path, at) = (&event.path, event.at);
        if path.is_root() && self.spans.segment.is_none() {
            // A signal ends a run that no worker has claimed: that is a segment, too.
            self.segment_start(event, None);
            let number = self.spans.last.as_ref().map_or(0, |last| last.number);
            if let Some(segment) = self.spans.segment.as_mut().map(Arc::make_mut) {
                segment.number = number;
            }
        }
        withdraw_within(&mut self.spans, path, at);
        let inner = if status == Status::Completed { Outcome::failed("interrupted") } else { outcome.clone() };
        let is_own = |open: &OpenSpan| open.path == *path && matches!(open.role, SpanRole::Agent | SpanRole::Tool);
        self.spans.end_within(path, at, &inner, |open| !is_own(open));
        self.spans.end(path, SpanRole::Agent, at, outcome.clone(), |open| {
            if let Operation::Agent(agent) = &mut open.operation {
                agent.status = Some(status);
            }
        });
        self.spans.brains.retain(|brain, _| !brain.is_within(path));
        self.spans.loops.retain(|open, _| !open.is_within(path));
        self.spans.calls.retain(|call, _| call == path || !call.is_within(path));
        if path.is_root() {
            self.leave(at, &Outcome::Done);
            self.is_over = true;
        }
    }

    fn stage_end(&mut self, event: &Event, outcome: Outcome) {
        self.spans
            .end_within(&event.path, event.at, &Outcome::failed("interrupted"), |open| open.role != SpanRole::Stage);
        self.spans.end(&event.path, SpanRole::Stage, event.at, outcome, |_| {});
    }

    fn iteration(&mut self, event: &Event, iteration: &positronic_core::record::Iteration) {
        let (Some(stage), Some(PathSegment::Iteration(number))) = (event.path.parent(), event.path.last()) else {
            return;
        };
        let before = {
            let open = self.spans.loops.entry(stage.clone()).or_default();
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
        self.spans.begin(&event.path, SpanRole::Iteration, (event.seq, event.at), Operation::Iteration { number });
    }

    fn iteration_end(&mut self, stage: &Path, number: u32, at: Timestamp, outcome: Outcome) {
        let path = stage.iteration(number);
        let is_outer = |open: &OpenSpan| open.path == *stage || (open.path == path && open.role == SpanRole::Iteration);
        let inner = match &outcome {
            Outcome::Failed { .. } => outcome.clone(),
            Outcome::Done | Outcome::Suspended => Outcome::failed("interrupted"),
        };
        self.spans.end_within(stage, at, &inner, |open| !is_outer(open));
        self.spans.end(&path, SpanRole::Iteration, at, outcome, |_| {});
    }

    fn loop_end(&mut self, event: &Event, outcome: &LoopOutcome) {
        let (path, at) = (&event.path, event.at);
        let (word, ends) = match outcome {
            LoopOutcome::Answered => ("answered", Outcome::Done),
            LoopOutcome::Exited { .. } => ("exited", Outcome::Done),
            LoopOutcome::MaxIterations => ("max_iterations", Outcome::Done),
            LoopOutcome::Limit { .. } => ("limit", Outcome::Done),
            LoopOutcome::Stopped { .. } => ("stopped", Outcome::Done),
            LoopOutcome::Failed { code, message, .. } => ("failed", Outcome::failure(word(code), message.clone())),
            LoopOutcome::Cancelled => ("cancelled", Outcome::failed("cancelled")),
            _ => ("other", Outcome::Done),
        };
        withdraw_within(&mut self.spans, path, at);
        if let Some(number) = self.spans.loops.get(path).and_then(|open| open.iteration) {
            self.iteration_end(path, number, at, ends.clone());
        }
        self.spans.end_within(path, at, &ends, |open| open.path != *path);
        self.spans.end(path, SpanRole::Stage, at, ends, |open| {
            if let Operation::Loop { outcome, .. } = &mut open.operation {
                *outcome = Some(word);
            }
        });
        self.spans.loops.remove(path);
        self.spans.calls.retain(|call, _| !call.is_within(path));
    }
}

fn stage_name(path: &Path) -> String {
    match path.last() {
        Some(PathSegment::Stage(name)) => name.to_owned(),
        _ => String::new(),
    }
}
