//! Waits: spans that outlast their segment, and end when they are decided.

use std::sync::Arc;

use positronic_core::record::{Actor, Decision, Event, EventKind, Path, ResumeCause, Seq, Timestamp};

use super::fold::RunSpans;
use super::ids::{SpanId, SpanRef};
use super::open::SpanRole;
use super::span::{Link, Operation, Outcome, Segment, Span, Wait, WaitKind};

/// A wait that lasts.
#[derive(Debug)]
pub(super) struct OpenWait {
    path: Path,
    /// The segment in which it began.
    segment: Arc<Segment>,
    id: SpanId,
    parent: Option<SpanId>,
    seq: Seq,
    started: Timestamp,
    wait: Wait,
}

/// How a wait ends.
struct End<'a> {
    verdict: &'static str,
    actor: Option<&'a Actor>,
    edited: bool,
    reason: Option<&'a str>,
}

impl<'a> End<'a> {
    const fn of(verdict: &'static str) -> Self {
        Self { verdict, actor: None, edited: false, reason: None }
    }

    const fn by(verdict: &'static str, actor: &'a Actor) -> Self {
        Self { verdict, actor: Some(actor), edited: false, reason: None }
    }

    fn decided(decision: Decision, actor: &'a Actor, reason: Option<&'a str>) -> Self {
        let verdict = match decision {
            Decision::Approved => "approved",
            Decision::Rejected => "rejected",
        };
        Self { reason, ..Self::by(verdict, actor) }
    }
}

impl RunSpans {
    pub(super) fn wait_event(&mut self, event: &Event) {
        let end = match &event.kind {
            EventKind::LoopApprovalRequested { .. } => return self.wait_start(event, WaitKind::Approval, |_| {}),
            EventKind::LoopWait { waits, .. } | EventKind::StageWait { waits, .. } => {
                let kind = match waits.as_slice() {
                    [] => WaitKind::Time,
                    waits if waits.iter().any(|wait| wait.person) => WaitKind::Reply,
                    _ => WaitKind::Webhook,
                };
                return self.wait_start(event, kind, |wait| {
                    wait.webhooks = waits.iter().map(|wait| wait.webhook.clone()).collect();
                });
            }
            EventKind::BudgetRequested(request) => {
                return self.wait_start(event, WaitKind::Budget, |wait| wait.limit = Some(request.kind));
            }
            EventKind::BrainPaused { actor, .. } => {
                return self.wait_start(event, WaitKind::Pause, |wait| wait.actor = actor.clone());
            }
            EventKind::LoopApprovalDecided { decision, arguments, reason, actor, .. } => {
                End { edited: arguments.is_some(), ..End::decided(*decision, actor, reason.as_deref()) }
            }
            EventKind::BudgetDecided { decision, reason, actor, .. } => {
                End::decided(*decision, actor, reason.as_deref())
            }
            EventKind::LoopResume { cause: ResumeCause::Answered, actor, .. }
            | EventKind::StageResume { cause: ResumeCause::Answered, actor, .. } => End::by("answered", actor),
            EventKind::BrainResumed { actor, .. } => End::by("resumed", actor),
            EventKind::LoopResume { .. }
            | EventKind::StageResume { .. }
            | EventKind::LoopApprovalExpired {}
            | EventKind::BudgetExpired {} => End::of("expired"),
            EventKind::LoopApprovalWithdrawn { cause } => End { reason: Some(cause), ..End::of("withdrawn") },
            _ => return,
        };
        let is_pause = matches!(event.kind, EventKind::BrainResumed { .. });
        let is_it = |open: &OpenWait| open.path == event.path && (open.wait.kind == WaitKind::Pause) == is_pause;
        let Some(place) = self.waits.iter().rposition(is_it) else { return };
        let open = self.waits.remove(place);
        self.wait_end(open, event.at, &end);
    }

    fn wait_start(&mut self, event: &Event, kind: WaitKind, complete: impl FnOnce(&mut Wait)) {
        let (path, at) = (&event.path, (event.seq, event.at));
        let (segment, parent) = match &self.segment {
            Some(segment) => (Arc::clone(segment), self.around(path, SpanRole::Wait, at)),
            // A run can be paused while no worker has claimed it.
            None => match &self.last {
                Some(last) => (Arc::clone(last), Some(last.root)),
                None => return,
            },
        };
        let mut wait = Wait {
            kind,
            tool: self.calls.get(path).map(|call| call.tool.name.clone()).unwrap_or_default(),
            webhooks: Vec::new(),
            limit: None,
            verdict: "withdrawn",
            edited: false,
            actor: Actor::default(),
            reason: None,
        };
        complete(&mut wait);
        let id = SpanId::of(&self.run, event.seq, path, SpanRole::Wait.as_str());
        let (path, seq, started) = (path.clone(), event.seq, event.at);
        self.waits.push(OpenWait { path, segment, id, parent, seq, started, wait });
    }

    fn wait_end(&mut self, open: OpenWait, at: Timestamp, end: &End<'_>) {
        let OpenWait { path, segment, id, parent, seq, started, mut wait } = open;
        let itself = SpanRef::own(segment.trace, id);
        (wait.verdict, wait.edited) = (end.verdict, end.edited);
        wait.reason = end.reason.map(str::to_owned);
        wait.actor = end.actor.cloned().unwrap_or_default();
        let signal = SpanRef::of_actor(&wait.actor).map(|to| Link { to, relation: "signal" });
        if let Some(call) = self.calls.get_mut(&path) {
            call.waited = Some(itself.clone());
        }
        if self.segment.is_none() {
            self.links.push(Link { to: itself, relation: "wait" });
        }
        let span = Span {
            segment,
            id,
            parent,
            path,
            seq,
            started,
            ended: at.max(started),
            operation: Operation::Wait(Box::new(wait)),
            outcome: Outcome::Done,
            links: signal.into_iter().collect(),
        };
        // A fork has no segment before its first claim.
        if self.is_unclaimed_fork() { &mut self.unclaimed } else { &mut self.ended }.push(span);
    }

    /// Ends the waits at and below a path, which something else has made void.
    pub(super) fn withdraw_within(&mut self, path: &Path, at: Timestamp) {
        let void: Vec<_> = self.waits.extract_if(.., |open| open.path.is_within(path)).collect();
        for open in void {
            self.wait_end(open, at, &End::of("withdrawn"));
        }
    }

    /// Moves the waits that a fork shares with its origin into the fork's first segment.
    pub(super) fn place_waits(&mut self) {
        let Some(segment) = self.segment.clone() else { return };
        for open in self.waits.iter_mut().filter(|open| open.segment.run != segment.run) {
            (open.parent, open.segment) = (Some(segment.root), Arc::clone(&segment));
        }
        for mut span in std::mem::take(&mut self.unclaimed) {
            let waited = self.calls.get_mut(&span.path).and_then(|call| call.waited.as_mut());
            if let Some(waited) = waited.filter(|waited| waited.span == span.id) {
                waited.trace = segment.trace;
            }
            (span.parent, span.segment) = (Some(segment.root), Arc::clone(&segment));
            self.ended.push(span);
        }
    }
}
