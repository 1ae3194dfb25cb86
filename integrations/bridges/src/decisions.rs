//! The decisions of clients, and their answers to questions: which are refused, and which repeat what was recorded before.

use positronic_core::record::{Actor, RunId, RunSummary, Seq};
use positronic_server::extension::{Decision, RequestContext};
use positronic_server::{Problem, ProblemType, Scope};
use serde_json::Value;

/// How many answers to questions a request may have.
const MAX_ANSWERS: usize = 256;

/// How many refused decisions of a request the log of the server names.
const MAX_NAMED: usize = 3;
/// How many characters of the id of a question the log of the server has.
const MAX_ID: usize = 64;

/// The decisions of one request. The log of the server gets one line about those that are refused. One that only came after another one
/// is not a matter of rights, so it is not among them.
pub(crate) struct Decisions<'a> {
    cx: &'a RequestContext,
    refused: usize,
    /// The run of the first refused one.
    run: Option<RunId>,
    /// The questions of the first refused ones, with the reasons.
    first: Vec<String>,
}

impl<'a> Decisions<'a> {
    pub(crate) const fn new(cx: &'a RequestContext) -> Self {
        Self { cx, refused: 0, run: None, first: Vec::new() }
    }

    pub(crate) const fn cx(&self) -> &'a RequestContext {
        self.cx
    }

    /// Refuses the decision of a caller without the scope for it, before it is read.
    ///
    /// # Errors
    ///
    /// [`ProblemType::ScopeMissing`]
    pub(crate) fn check_scope(&mut self, row: &RunSummary, question: &str) -> Result<(), Problem> {
        self.cx.require(Scope::Decide).inspect_err(|problem| self.refuse(row, question, problem))
    }

    /// Refuses the answer to a question that no run of a thread has asked.
    pub(crate) fn refuse_unknown(&mut self, row: &RunSummary, question: &str) -> Problem {
        let detail = format!("the chat has and had no item `{question}`");
        let problem = Problem::new(ProblemType::UnknownCall).detail(detail);
        self.refuse(row, question, &problem);
        problem
    }

    /// Sends a decision. If the same one was recorded before, by any caller, it is accepted.
    ///
    /// # Errors
    ///
    /// The problem with which it was refused.
    pub(crate) async fn send(
        &mut self,
        row: &RunSummary,
        question: &str,
        decision: Decision,
        key: &str,
    ) -> Result<(), Problem> {
        let sent = match self.cx.decide(row, question, decision.clone(), key).await {
            Err(problem) if problem.kind() == ProblemType::AlreadyDecided => {
                let document = problem.document();
                let recorded = document.get("decision").unwrap_or(&Value::Null);
                if is_same(&decision, recorded) { Ok(()) } else { Err(problem.detail(says(recorded))) }
            }
            decided => decided,
        };
        sent.inspect_err(|problem| self.refuse(row, question, problem))
    }

    fn refuse(&mut self, row: &RunSummary, question: &str, problem: &Problem) {
        if problem.kind() == ProblemType::AlreadyDecided {
            return;
        }
        self.refused += 1;
        self.run.get_or_insert_with(|| row.run.clone());
        if self.first.len() < MAX_NAMED {
            // A client may have made it up.
            let question: String = question.chars().take(MAX_ID).collect();
            self.first.push(format!("{question} ({})", problem.kind().slug()));
        }
    }
}

impl Drop for Decisions<'_> {
    fn drop(&mut self) {
        if let Some(run) = &self.run {
            let by = self.cx.caller().map_or("", |caller| caller.subject());
            let first = self.first.join(", ");
            tracing::warn!(%run, by, count = self.refused, first, "refused decisions of a client");
        }
    }
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
