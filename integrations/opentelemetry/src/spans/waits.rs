//! Waits: spans that outlast their segment, and end when they are decided.

use std::sync::Arc;

use positronic_core::record::{Actor, Decision, Event, EventKind, Path, ResumeCause, Timestamp};

use super::ids::{SpanId, SpanRef};
use super::open::{OpenSpans, OpenWait, SpanRole};
use super::span::{Link, Operation, Outcome, Span, Wait, WaitKind};

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

pub(super) fn wait_event(spans: &mut OpenSpans, event: &Event) {
    let end = match &event.kind {
        EventKind::LoopApprovalRequested { .. } => return wait_start(spans, event, WaitKind::Approval, |_| {}),
        EventKind::LoopWait { waits, .. } | EventKind::StageWait { waits, .. } => {
            let kind = match waits.as_slice() {
                [] => WaitKind::Time,
                waits if waits.iter().any(|wait| wait.person) => WaitKind::Reply,
                _ => WaitKind::Webhook,
            };
            return wait_start(spans, event, kind, |wait| {
                wait.webhooks = waits.iter().map(|wait| wait.webhook.clone()).collect();
            });
        }
        EventKind::BudgetRequested(request) => {
            return wait_start(spans, event, WaitKind::Budget, |wait| wait.limit = Some(request.kind));
        }
        EventKind::BrainPaused { actor, .. } => {
            return wait_start(spans, event, WaitKind::Pause, |wait| wait.actor = actor.clone());
        }
        EventKind::LoopApprovalDecided { decision, arguments, reason, actor, .. } => {
            End { edited: arguments.is_some(), ..End::decided(*decision, actor, reason.as_deref()) }
        }
        EventKind::BudgetDecided { decision, reason, actor, .. } => End::decided(*decision, actor, reason.as_deref()),
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
    let Some(place) = spans.waits.iter().rposition(is_it) else { return };
    let open = spans.waits.remove(place);
    wait_end(spans, open, event.at, &end);
}

fn wait_start(spans: &mut OpenSpans, event: &Event, kind: WaitKind, complete: impl FnOnce(&mut Wait)) {
    let (path, at) = (&event.path, (event.seq, event.at));
    let (segment, parent) = match &spans.segment {
        Some(segment) => (Arc::clone(segment), spans.enclosing(path, SpanRole::Wait, at)),
        // A run can be paused while no worker has claimed it.
        None => match &spans.last {
            Some(last) => (Arc::clone(last), Some(last.root)),
            None => return,
        },
    };
    let mut wait = Wait {
        kind,
        tool: spans.calls.get(path).map(|call| call.tool.name.clone()).unwrap_or_default(),
        webhooks: Vec::new(),
        limit: None,
        verdict: "withdrawn",
        edited: false,
        actor: Actor::default(),
        reason: None,
    };
    complete(&mut wait);
    let id = SpanId::of(&spans.run, event.seq, path, SpanRole::Wait.as_str());
    let (path, seq, started) = (path.clone(), event.seq, event.at);
    spans.waits.push(OpenWait { path, segment, id, parent, seq, started, wait });
}

fn wait_end(spans: &mut OpenSpans, open: OpenWait, at: Timestamp, end: &End<'_>) {
    let OpenWait { path, segment, id, parent, seq, started, mut wait } = open;
    let itself = SpanRef::own(segment.trace, id);
    (wait.verdict, wait.edited) = (end.verdict, end.edited);
    wait.reason = end.reason.map(str::to_owned);
    wait.actor = end.actor.cloned().unwrap_or_default();
    let signal = SpanRef::of_actor(&wait.actor).map(|to| Link { to, relation: "signal" });
    if let Some(call) = spans.calls.get_mut(&path) {
        call.waited = Some(itself.clone());
    }
    if spans.segment.is_none() {
        spans.links.push(Link { to: itself, relation: "wait" });
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
    if spans.is_unclaimed_fork { &mut spans.unclaimed } else { &mut spans.ended }.push(span);
}

/// Ends the waits at and below a path, which something else has made void.
pub(super) fn withdraw_within(spans: &mut OpenSpans, path: &Path, at: Timestamp) {
    let void: Vec<_> = spans.waits.extract_if(.., |open| open.path.is_within(path)).collect();
    for open in void {
        wait_end(spans, open, at, &End::of("withdrawn"));
    }
}

/// Moves the waits that a fork shares with its origin into the fork's first segment.
pub(super) fn place_waits(spans: &mut OpenSpans) {
    let Some(segment) = spans.segment.clone() else { return };
    for open in spans.waits.iter_mut().filter(|open| open.segment.run != segment.run) {
        (open.parent, open.segment) = (Some(segment.root), Arc::clone(&segment));
    }
    for mut span in std::mem::take(&mut spans.unclaimed) {
        let waited = spans.calls.get_mut(&span.path).and_then(|call| call.waited.as_mut());
        if let Some(waited) = waited.filter(|waited| waited.span == span.id) {
            waited.trace = segment.trace;
        }
        (span.parent, span.segment) = (Some(segment.root), Arc::clone(&segment));
        spans.ended.push(span);
    }
}
