//! What a client may say: which run its thread is at, the newest message, and decisions. Its history, its state and its system
//! texts are not read; they come from the log.

use std::collections::{HashMap, HashSet};

use positronic_core::machine::pending;
use positronic_core::record::{Actor, Event, EventKind, Pending, PendingKind, RunId, RunSummary, Seq};
use positronic_server::extension::{Decision, OpenQuestion, RequestContext};
use positronic_server::{Problem, ProblemType, Scope};
use serde_json::Value;

use crate::history::{LogReader, MAX_RUNS};
use crate::projection::asks_for_text;

/// How many answers to questions a request may have.
const MAX_ANSWERS: usize = 256;

/// A thread of a client: a conversation, or a single run that began elsewhere, by its id.
#[derive(Debug)]
pub(crate) struct Thread {
    /// Its runs, the last one first.
    rows: Vec<RunSummary>,
    is_conversation: bool,
}

impl Thread {
    /// Finds the runs of a thread; none if it has not begun.
    ///
    /// # Errors
    ///
    /// `NotFound` if it belongs to another user.
    pub(crate) async fn find(cx: &RequestContext, id: &str) -> Result<Self, Problem> {
        let rows = cx.conversation_rows(id).await?;
        if !rows.is_empty() {
            return Ok(Self { rows, is_conversation: true });
        }
        match cx.run_row(&RunId::new(id)).await {
            Ok(row) => Ok(Self { rows: vec![row], is_conversation: false }),
            Err(problem) if problem.kind() == ProblemType::UnknownRun => {
                Ok(Self { rows: Vec::new(), is_conversation: true })
            }
            Err(problem) => Err(problem),
        }
    }

    /// Returns the last run.
    pub(crate) fn last(&self) -> Option<&RunSummary> {
        self.rows.first()
    }

    /// Returns whether a message can be sent to it. A run that is in no conversation takes none over a bridge.
    pub(crate) const fn is_conversation(&self) -> bool {
        self.is_conversation
    }

    /// Returns the runs that have asked some questions, by the ids of these: also earlier ones, whose questions a client may still have.
    /// It reads each log once.
    pub(crate) async fn askers<'a>(
        &self,
        cx: &RequestContext,
        mut questions: HashSet<&'a str>,
    ) -> Result<HashMap<&'a str, &RunSummary>, Problem> {
        let (viewer, mut askers) = (cx.viewer()?, HashMap::new());
        for row in self.rows.iter().take(MAX_RUNS) {
            if questions.is_empty() {
                break;
            }
            let mut log = LogReader::new(cx.client(), &row.run);
            while let Some(events) = log.next().await? {
                for event in events {
                    let id = viewer.question_id(&row.run, &event.path, event.seq);
                    askers.extend(questions.take(id.as_str()).map(|question| (question, row)));
                }
            }
        }
        Ok(askers)
    }

    /// Returns its runs, the last one first.
    pub(crate) fn rows(&self) -> &[RunSummary] {
        &self.rows
    }

    /// Returns whether the log of one of the latest runs has a message with an id: one that the client got from a bridge.
    pub(crate) async fn has_message(&self, cx: &RequestContext, id: &str) -> Result<bool, Problem> {
        for row in self.rows.iter().take(MAX_RUNS) {
            let mut log = LogReader::new(cx.client(), &row.run);
            while let Some(events) = log.next().await? {
                if events.iter().any(|event| is_message(&row.run, event, id)) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

fn is_message(run: &RunId, event: &Event, id: &str) -> bool {
    match &event.kind {
        EventKind::LoopStart { message_id, .. } | EventKind::LoopMessage { message_id, .. } => {
            message_id.as_ref().map_or_else(|| id == format!("{run}:{}", event.seq), |known| known == id)
        }
        EventKind::LoopResume { .. } | EventKind::StageResume { .. } => id == format!("{run}:{}", event.seq),
        _ => false,
    }
}

/// Finds a pending question of a run; `None` if it is no longer open.
pub(crate) async fn question(cx: &RequestContext, row: &RunSummary, id: &str) -> Result<Option<OpenQuestion>, Problem> {
    let state = cx.client().state(&row.run).await?;
    let viewer = cx.viewer()?;
    let mut open = pending(&state).into_iter().map(|item| viewer.question(&row.run, &state, &item));
    Ok(open.find(|question| question.id == id))
}

/// Returns the calls of the caller's own tools that wait for their results.
pub(crate) async fn open_calls(cx: &RequestContext, row: &RunSummary) -> Result<Vec<Pending>, Problem> {
    if row.status.is_over() {
        return Ok(Vec::new());
    }
    let items = pending(&cx.client().state(&row.run).await?);
    Ok(items.into_iter().filter(|item| item.kind.is_for_caller()).collect())
}

/// Returns the only open question to a person whose answer is a text.
pub(crate) async fn text_question(cx: &RequestContext, row: &RunSummary) -> Result<Option<String>, Problem> {
    if row.status.is_over() {
        return Ok(None);
    }
    let state = cx.client().state(&row.run).await?;
    let items = pending(&state);
    let [item] = items.as_slice() else { return Ok(None) };
    let PendingKind::Answer { waits } = &item.kind else { return Ok(None) };
    let is_asked = matches!(waits.as_slice(), [wait] if asks_for_text(wait));
    is_asked.then(|| cx.viewer().map(|viewer| viewer.question(&row.run, &state, item).id)).transpose()
}

/// Refuses the decision of a caller without the scope for it, before it is read.
///
/// # Errors
///
/// [`ProblemType::ScopeMissing`]
pub(crate) fn may_decide(cx: &RequestContext, row: &RunSummary) -> Result<(), Problem> {
    cx.require(Scope::Decide).inspect_err(|problem| record_refusal(cx, row, problem))
}

/// Refuses a request with too many answers to questions, before they are read.
///
/// # Errors
///
/// [`ProblemType::Unprocessable`]
pub(crate) fn check_answers(count: usize) -> Result<(), Problem> {
    if count <= MAX_ANSWERS {
        return Ok(());
    }
    let detail = format!("the request has {count} answers to questions; send at most {MAX_ANSWERS} at once");
    Err(Problem::new(ProblemType::Unprocessable).detail(detail))
}

/// Refuses the answer to a question that no run of a thread has asked.
pub(crate) fn refuse_unknown(cx: &RequestContext, row: &RunSummary, question: &str) -> Problem {
    let problem = Problem::new(ProblemType::UnknownCall).detail(format!("the chat has and had no item `{question}`"));
    record_refusal(cx, row, &problem);
    problem
}

/// Records in the log of the server whose decision was refused. One that only came after another one is not a matter of rights.
fn record_refusal(cx: &RequestContext, row: &RunSummary, problem: &Problem) {
    if problem.kind() == ProblemType::AlreadyDecided {
        return;
    }
    let by = cx.caller().map_or("", |caller| caller.subject());
    tracing::warn!(run = %row.run, by, kind = problem.kind().slug(), "refused the decision of a client");
}

/// Sends a decision. One that was recorded before, by whomever, is accepted if it is the same.
///
/// # Errors
///
/// The problem with which it was refused.
pub(crate) async fn decide(
    cx: &RequestContext,
    row: &RunSummary,
    question: &str,
    decision: Decision,
    key: &str,
) -> Result<(), Problem> {
    let sent = match cx.decide(row, question, decision.clone(), key).await {
        Err(problem) if problem.kind() == ProblemType::AlreadyDecided => {
            let document = problem.document();
            let recorded = document.get("decision").unwrap_or(&Value::Null);
            if is_same(&decision, recorded) { Ok(()) } else { Err(problem.detail(says(recorded))) }
        }
        decided => decided,
    };
    sent.inspect_err(|problem| record_refusal(cx, row, problem))
}

/// An answer to a question that was not recorded.
#[derive(Debug)]
pub(crate) struct RefusedAnswer {
    pub(crate) question: String,
    pub(crate) problem: Problem,
}

impl RefusedAnswer {
    /// Returns the event of the run that has asked with the decision that was recorded instead.
    pub(crate) fn decided_at(&self) -> Option<Seq> {
        self.problem.document().pointer("/decision/seq").and_then(Value::as_u64).map(Seq)
    }
}

/// Returns whether a problem concerns an answer alone: the caller may not give it, it came too late, or it does not fit. The client
/// hears of it and goes on.
pub(crate) fn concerns_answer(kind: ProblemType) -> bool {
    use ProblemType as P;
    is_late(kind)
        || matches!(kind, P::ScopeMissing | P::NotAnApprover | P::NotAllowed | P::UnknownCall | P::Unprocessable)
}

/// Returns whether a decision came too late, or did not fit.
pub(crate) fn is_late(kind: ProblemType) -> bool {
    use ProblemType as P;
    matches!(kind, P::AlreadyDecided | P::Expired | P::NotWaiting | P::RunClosed | P::ArgumentsInvalid | P::CodeDiffers)
}

/// Returns whether a recorded decision is the one that a client sends.
fn is_same(decision: &Decision, recorded: &Value) -> bool {
    let verdict = recorded.get("verdict").and_then(Value::as_str).unwrap_or_default();
    match decision {
        Decision::Approve { arguments } => verdict == "approved" && recorded.get("arguments") == arguments.as_ref(),
        Decision::Reject { .. } => matches!(verdict, "rejected" | "refused"),
        Decision::Grant(more) => {
            verdict == "granted" && serde_json::to_value(more).ok().as_ref() == recorded.get("granted")
        }
        Decision::Reply { payload, .. } => verdict == "replied" && recorded.get("reply") == Some(payload),
        _ => false,
    }
}

/// Says what was decided, and by whom.
fn says(recorded: &Value) -> String {
    let text = |name: &str| recorded.get(name).and_then(Value::as_str);
    let verdict = text("verdict").unwrap_or("decided");
    let (by, channel) = (text("by").map(str::to_owned), text("channel").map(str::to_owned));
    let actor = Actor { by, channel, ..Actor::default() };
    format!("it was already {verdict}{}; this decision differs and was not recorded", actor.clause())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn decision_is_the_same_only_with_its_content() {
        let plain = Decision::Approve { arguments: None };
        let edited = Decision::Approve { arguments: Some(json!({ "amount": 7 })) };

        assert!(is_same(&plain, &json!({ "verdict": "approved", "by": "ann" })));
        assert!(!is_same(&plain, &json!({ "verdict": "approved", "arguments": { "amount": 7 } })));
        assert!(is_same(&edited, &json!({ "verdict": "approved", "arguments": { "amount": 7 } })));
        assert!(!is_same(&edited, &json!({ "verdict": "approved" })));
        assert!(!is_same(&plain, &json!({ "verdict": "rejected" })));
        assert!(is_same(&Decision::Reject { reason: None }, &json!({ "verdict": "rejected", "reason": "no" })));
        let reply = Decision::Reply { payload: json!("yes"), wait: None };
        assert!(is_same(&reply, &json!({ "verdict": "replied", "reply": "yes" })));
        assert!(!is_same(&reply, &json!({ "verdict": "replied", "reply": "no" })));
    }
}
