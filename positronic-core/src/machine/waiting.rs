//! Explanation why a run waits, since when, and for whom: a pure function of its state.

use serde::Serialize;

use crate::record::{BudgetRequest, Path, Pending, PendingKind, Seq, Timestamp, WaitSpec};

use super::admit::REPLY;
use super::frames::{CallPhase, Intent, LoopPhase, OpenFrame};
use super::next::next;
use super::state::RunState;
use super::status::pending;

/// The reason why a run is idle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Waiting {
    /// A sentence for people. It quotes texts of authors and models unchanged.
    pub sentence: String,
    /// The event since which it waits, that of the oldest pending item; `None` if it only waits for a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Seq>,
    /// When it resumes by itself, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Who can resume it, without duplicates.
    pub whom: Vec<WaitingOn>,
    /// The pending items, in path order.
    pub calls: Vec<Path>,
}

/// Who can resume a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WaitingOn {
    /// A person, who decides, replies or resumes.
    Person,
    /// A program, which delivers a webhook.
    Machine,
    /// A worker with the brain's code; no worker that tried had it.
    Worker,
    /// Time: a retry is delayed, or a stage sleeps.
    Time,
}

/// Explains why a run waits; `None` if it has ended, or something runs or can start.
#[must_use]
pub fn why(state: &RunState) -> Option<Waiting> {
    if state.root.is_none() || state.has_ended() {
        return None;
    }
    if let Some(since) = state.paused {
        let sentence = match &state.parked {
            Some(failure) => {
                format!("The run is parked since event {since}: {failure}. Fix the cause, then retry the run.")
            }
            None => format!("The run is paused since event {since}, until a person resumes it."),
        };
        return Some(Waiting {
            sentence,
            since: Some(since),
            until: None,
            whom: vec![WaitingOn::Person],
            calls: Vec::new(),
        });
    }
    if let Some(refused) = &state.refused {
        let (sentence, since) = (refused.message.clone(), Some(refused.since));
        return Some(Waiting { sentence, since, until: None, whom: vec![WaitingOn::Worker], calls: Vec::new() });
    }
    let next = next(state, state.at);
    let mut idle = OpenWork::default();
    state.for_each_open(|open| idle.look_at(open));
    if !next.effects.is_empty() || idle.runs {
        return None;
    }
    let pending = pending(state);
    if pending.is_empty() && idle.timers.is_empty() {
        return None;
    }
    let mut whom: Vec<WaitingOn> = Vec::new();
    let timers = idle.timers.first().map(|_| WaitingOn::Time);
    for one in pending.iter().flat_map(asks).chain(timers) {
        if !whom.contains(&one) {
            whom.push(one);
        }
    }
    // Only those that are named are formatted: a batch may have thousands of calls.
    let count = pending.len() + idle.timers.len();
    let questions = pending.iter().take(NAMED).map(|pending| question(pending, state.currency.as_deref()));
    let named = questions.chain(idle.timers).take(NAMED).collect();
    let since = pending.iter().map(|pending| pending.since).min();
    let waits = since.map_or_else(|| "waits".to_owned(), |since| format!("has been waiting since event {since}"));
    let sentence = format!("The run {waits} for {}.{}", list(named, count), older_answers(state));
    let calls = pending.into_iter().map(|pending| pending.call).collect();
    Some(Waiting { sentence, since, until: next.wake, whom, calls })
}

/// Names the answers that are older than their questions: what the run asks now may follow from them.
fn older_answers(state: &RunState) -> String {
    let latest = state.older_answers.iter().rev().take(NAMED).map(|answer| {
        let (tool, call) = (&answer.tool, &answer.call);
        format!(" The answer to `{tool}` at `{call}` is older than its question.")
    });
    latest.collect()
}

/// Returns who can answer a pending item.
fn asks(pending: &Pending) -> Vec<WaitingOn> {
    match &pending.kind {
        PendingKind::Approval { .. } | PendingKind::Budget(_) => vec![WaitingOn::Person],
        PendingKind::Answer { waits } => {
            waits.iter().map(|wait| if wait.person { WaitingOn::Person } else { WaitingOn::Machine }).collect()
        }
    }
}

/// Describes a pending item in a clause.
fn question(pending: &Pending, currency: Option<&str>) -> String {
    let (tool, call) = (&pending.tool, &pending.call);
    match &pending.kind {
        PendingKind::Approval { gate, .. } => {
            format!("a person's decision about `{tool}` at `{call}` ({})", gate.reason)
        }
        PendingKind::Budget(BudgetRequest { kind, limit, used, shared, .. }) => {
            let place = match call.is_root() {
                _ if *shared => "the conversation".to_owned(),
                true => "the run".to_owned(),
                false => format!("`{call}`"),
            };
            let [used, limit] = [used, limit].map(|amount| kind.amount(*amount, currency));
            let used = format!("{used} used, {limit} allowed");
            format!("a person's decision about more {} for {place} ({used})", kind.noun())
        }
        PendingKind::Answer { waits } => {
            let answers: Vec<_> = waits.iter().map(answer).collect();
            let tool = if tool.is_empty() { String::new() } else { format!(" to `{tool}`") };
            format!("{}{tool} at `{call}`", answers.join(" or "))
        }
    }
}

fn answer(wait: &WaitSpec) -> String {
    let prompt = wait.prompt.as_ref().map_or_else(String::new, |prompt| format!(" ({prompt})"));
    match (wait.webhook.as_str(), wait.person) {
        (REPLY, true) => format!("a person's reply{prompt}"),
        (REPLY, false) => "the caller's result".to_owned(),
        (WaitSpec::CHILD, _) => format!("the end of the run `{}`", wait.identifier),
        (webhook, true) => format!("a person's answer{prompt} over `{webhook}`"),
        (webhook, false) => format!("the webhook `{webhook}`{prompt}"),
    }
}

/// The maximum number of items that a sentence names.
const NAMED: usize = 3;

fn list(mut named: Vec<String>, count: usize) -> String {
    let rest = count.saturating_sub(named.len());
    if rest > 0 {
        named.push(format!("{rest} more"));
    }
    let last = named.pop().unwrap_or_default();
    if named.is_empty() { last } else { format!("{} and {last}", named.join(", ")) }
}

/// What progresses without input: running effects, delayed retries and sleeps.
#[derive(Default)]
struct OpenWork {
    runs: bool,
    timers: Vec<String>,
}

impl OpenWork {
    fn look_at(&mut self, open: OpenFrame<'_>) {
        match open {
            OpenFrame::Brain(_) => {}
            OpenFrame::Group(frame) => {
                if frame.due.is_some() && !frame.has_outcome() {
                    self.timers.push(format!("the end of `{}`", frame.path));
                }
            }
            OpenFrame::Step(brain, step) => {
                let path = || brain.current_path().unwrap_or_default();
                self.intent(step.intent, || format!("the step `{}`", path()));
            }
            OpenFrame::Loop(frame) => {
                if let LoopPhase::Ask { intent, .. } = &frame.phase {
                    self.intent(*intent, || format!("the model of `{}`", frame.path));
                }
            }
            OpenFrame::Wait(brain, frame) => {
                if frame.waits.is_empty() && frame.end.is_none() {
                    self.timers.push(format!("the end of `{}`", brain.current_path().unwrap_or_default()));
                }
            }
            OpenFrame::Call(call) => {
                if let CallPhase::Open(intent) = &call.phase {
                    self.intent(*intent, || format!("`{}` at `{}`", call.tool, call.path));
                }
            }
        }
    }

    fn intent(&mut self, intent: Intent, what: impl FnOnce() -> String) {
        match intent {
            Intent::Running => self.runs = true,
            Intent::Backoff(_) => {
                self.timers.push(format!("another try of {}", what()));
            }
            Intent::Ready | Intent::Doubtful => {}
        }
    }
}
