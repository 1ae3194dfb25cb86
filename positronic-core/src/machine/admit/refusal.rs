//! Why a signal is refused.

use crate::machine::state::RunState;
use crate::machine::status::pending;
use crate::record::{BudgetRequest, Path, PendingKind, Segment, Seq, WaitSpec};

/// How many pending items a refusal names.
const LISTED: usize = 5;

/// The reason why a signal was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The signal was already accepted.
    #[error("this signal was already accepted, with event {seq}")]
    Repeated {
        /// The event that accepted it.
        seq: Seq,
    },
    /// The signal has an id that only the engine gives.
    #[error("the signal id `{id}` begins with `~`, as only ids of the engine do; use another id")]
    ReservedId {
        /// The id.
        id: String,
    },
    /// The run has ended.
    #[error("the run has ended and accepts no more signals")]
    Ended,
    /// The open batch has no such call.
    #[error("{}; {open}", nothing_at(call))]
    NoSuchCall {
        /// The call.
        call: Path,
        /// What is pending instead, as a clause.
        open: String,
    },
    /// The call is already decided.
    #[error("{} is already decided: {how}", subject(call))]
    Decided {
        /// The call.
        call: Path,
        /// The decision, or the call's result.
        how: String,
    },
    /// The loop or brain has not asked for more.
    #[error("{} has not asked for more; {open}", subject(at))]
    NotAsked {
        /// The loop or the brain.
        at: Path,
        /// What is pending instead, as a clause.
        open: String,
    },
    /// The granted amount is not enough.
    #[error("{how}")]
    TooLittle {
        /// The used amount and the required grant.
        how: String,
    },
    /// The call is open, but does not wait for this signal.
    #[error("{} {how}", subject(call))]
    Unasked {
        /// The call.
        call: Path,
        /// What it waits for, as the rest of the sentence.
        how: String,
    },
    /// The request has expired.
    #[error("the request of {} has expired", subject(call))]
    Expired {
        /// The call.
        call: Path,
    },
    /// The arguments may not be edited.
    #[error("the arguments of `{call}` may not be edited; approve or reject it as it is")]
    NotEditable {
        /// The call.
        call: Path,
    },
    /// The edited arguments or the payload are invalid.
    #[error("{what}: {reason}")]
    Misfit {
        /// What is invalid.
        what: String,
        /// The mismatch.
        reason: String,
    },
    /// No call waits for this webhook.
    #[error("nothing waits for the webhook `{name}` with identifier `{identifier}`; {open}")]
    NothingWaits {
        /// The webhook.
        name: String,
        /// Its identifier.
        identifier: String,
        /// What is pending instead, as a clause.
        open: String,
    },
    /// No open loop can receive a message, or there are several.
    #[error("{0}")]
    NoListener(String),
    /// The loop does not take the tools that come with the message, and why.
    #[error("{0}")]
    CallerTools(String),
    /// The message is empty.
    #[error("the message is empty; send a text")]
    EmptyMessage,
    /// The events of the signal cannot be applied, which is a bug in the engine.
    #[error("the signal cannot be recorded: {0}; this is a bug in positronic, please report it")]
    Impossible(String),
    /// The run is paused already.
    #[error("the run is paused already")]
    Paused,
    /// The run is not paused.
    #[error("the run is not paused; a waiting run resumes when its calls are decided or answered")]
    NotPaused,
}

/// Names the subject of a request, for a message: the run, a loop or a brain, or a call.
pub(super) fn subject(path: &Path) -> String {
    match path.last() {
        Some(Segment::Call(..)) => format!("the call `{path}`"),
        None | Some(Segment::Stage(_) | Segment::Iteration(_) | Segment::Question(..)) => location(path),
    }
}

pub(super) fn location(path: &Path) -> String {
    if path.is_root() { "the run".to_owned() } else { format!("`{path}`") }
}

fn nothing_at(path: &Path) -> String {
    match path.last() {
        Some(Segment::Call(..)) => format!("the run has no open call `{path}`"),
        None | Some(Segment::Stage(_) | Segment::Iteration(_) | Segment::Question(..)) => {
            format!("{} has no open request to decide", subject(path))
        }
    }
}

/// Describes what a call waits for, if the signal is another one.
pub(super) fn not_asked(state: &RunState, path: &Path, sent: &str) -> Refusal {
    let how = match pending(state).into_iter().find(|pending| pending.call == *path).map(|pending| pending.kind) {
        Some(kind @ PendingKind::Budget(_)) => format!("asks for {}, not for {sent}", wanted(&kind)),
        Some(kind) => format!("waits for {}, not for {sent}", wanted(&kind)),
        None if state.call(path).is_some_and(|call| call.result().is_none()) => {
            format!("does not wait for {sent}")
        }
        None => return no_such_call(state, path),
    };
    Refusal::Unasked { call: path.clone(), how }
}

/// Names what answers a pending item. An identifier may be private, so it is not named.
fn wanted(kind: &PendingKind) -> String {
    match kind {
        PendingKind::Approval { .. } => "a decision".to_owned(),
        PendingKind::Budget(BudgetRequest { kind, .. }) => format!("more {}", kind.noun()),
        PendingKind::Answer { waits } => {
            let what = waits.iter().map(|wait| match (wait.webhook.as_str(), wait.child()) {
                (_, Some(child)) => format!("the end of the run {child}"),
                (WaitSpec::REPLY, None) => "a reply".to_owned(),
                (name, None) => format!("the webhook `{name}`"),
            });
            what.collect::<Vec<_>>().join(" or ")
        }
    }
}

pub(super) fn no_such_call(state: &RunState, call: &Path) -> Refusal {
    Refusal::NoSuchCall { call: call.clone(), open: open(state) }
}

pub(crate) fn nothing_waits(state: &RunState, name: &str, identifier: &str) -> Refusal {
    Refusal::NothingWaits { name: name.to_owned(), identifier: identifier.to_owned(), open: open(state) }
}

/// Lists what is pending and what each item waits for, as a clause.
pub(super) fn open(state: &RunState) -> String {
    let pending = pending(state);
    let listed = pending.iter().take(LISTED);
    let mut open: Vec<_> =
        listed.map(|pending| format!("{} ({})", location(&pending.call), wanted(&pending.kind))).collect();
    if pending.len() > LISTED {
        open.push(format!("and {} more", pending.len() - LISTED));
    }
    if open.is_empty() { "nothing is pending".to_owned() } else { format!("pending: {}", open.join(", ")) }
}
