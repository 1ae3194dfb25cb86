//! The answers to forms, as decisions.

use std::collections::BTreeMap;

use positronic_core::record::{RunId, RunSummary};
use positronic_server::extension::RequestContext as CallerContext;
use positronic_server::{Problem, ProblemType};
use rmcp::model::InputResponses;
use serde_json::Value;

use super::question::{decision, late_decision};
use crate::decisions::{Decisions, check_answers, is_late};
use crate::thread::question;

/// What the answer to a form has led to.
#[derive(Debug)]
pub(super) enum FormAnswer {
    /// The question is decided: by this answer, or by another one before.
    Decided,
    /// The question stays open: the person has closed the form.
    Closed,
    /// The question stays open: the answer does not fit, for this reason.
    Misfit(Problem),
}

/// What the answers of a request have led to.
#[derive(Debug, Default)]
pub(super) struct FormAnswers {
    /// How many are decisions. One that was recorded before counts if it is the same.
    pub(super) decided: usize,
    /// Why others do not fit, by question.
    pub(super) misfits: BTreeMap<String, Problem>,
}

/// Sends the answers to forms.
pub(super) async fn answers(
    caller: &CallerContext,
    run: &RunId,
    responses: &InputResponses,
) -> Result<FormAnswers, Problem> {
    check_answers(responses.len())?;
    let (mut decisions, mut sent) = (Decisions::new(caller), FormAnswers::default());
    for (id, response) in responses {
        let row = caller.run_row(run).await?;
        let action = response.get("action").and_then(Value::as_str).unwrap_or_default();
        let content = response.get("content").unwrap_or(&Value::Null);
        match answer(&mut decisions, &row, id, action, content).await? {
            FormAnswer::Decided => sent.decided += 1,
            FormAnswer::Closed => {}
            FormAnswer::Misfit(problem) => _ = sent.misfits.insert(id.clone(), problem),
        }
    }
    Ok(sent)
}

/// Sends the answer to a form.
///
/// # Errors
///
/// `AlreadyDecided` if another answer was recorded before.
pub(super) async fn answer(
    decisions: &mut Decisions<'_>,
    row: &RunSummary,
    id: &str,
    action: &str,
    content: &Value,
) -> Result<FormAnswer, Problem> {
    let decision = match question(decisions.cx(), row, id).await? {
        Some(open) => match decision(&open, action, content) {
            Ok(decision) => decision,
            Err(problem) => return Ok(FormAnswer::Misfit(problem)),
        },
        None => late_decision(action, content),
    };
    let Some(decision) = decision else { return Ok(FormAnswer::Closed) };
    // The same answer is the same decision, however often it is sent.
    let key = format!("mcp/{id}/{action}/{content}");
    match decisions.send(row, id, decision, &key).await {
        Ok(()) => Ok(FormAnswer::Decided),
        Err(problem) => match problem.kind() {
            // The run never asked this.
            ProblemType::UnknownCall => Ok(FormAnswer::Closed),
            ProblemType::ArgumentsInvalid => Ok(FormAnswer::Misfit(problem)),
            kind if kind != ProblemType::AlreadyDecided && is_late(kind) => Ok(FormAnswer::Decided),
            _ => Err(problem),
        },
    }
}
