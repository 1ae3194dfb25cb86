//! The answers to forms, as decisions.

use positronic_core::record::{RunId, RunSummary};
use positronic_server::extension::RequestContext as CallerContext;
use positronic_server::{Problem, ProblemType};
use rmcp::model::InputResponses;
use serde_json::Value;

use super::question::{decision, late_decision};
use crate::decisions::{Decisions, check_answers, is_late};
use crate::thread::question;

/// Sends the answers to forms, and returns how many of them are decisions. One that was recorded before counts if it is the same.
pub(super) async fn answers(caller: &CallerContext, run: &RunId, responses: &InputResponses) -> Result<usize, Problem> {
    check_answers(responses.len())?;
    let (mut decisions, mut decided) = (Decisions::new(caller), 0);
    for (id, response) in responses {
        let row = caller.run_row(run).await?;
        let action = response.get("action").and_then(Value::as_str).unwrap_or_default();
        let content = response.get("content").unwrap_or(&Value::Null);
        decided += usize::from(answer(&mut decisions, &row, id, action, content).await?);
    }
    Ok(decided)
}

/// Sends the answer to a form, and returns whether its question is decided.
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
) -> Result<bool, Problem> {
    let decision = match question(decisions.cx(), row, id).await? {
        Some(open) => decision(&open, action, content)?,
        None => late_decision(action, content),
    };
    let Some(decision) = decision else { return Ok(false) };
    // The same answer is the same decision, however often it is sent.
    let key = format!("mcp/{id}/{action}/{content}");
    match decisions.send(row, id, decision, &key).await {
        Ok(()) => Ok(true),
        // The run never asked this.
        Err(problem) if problem.kind() == ProblemType::UnknownCall => Ok(false),
        Err(problem) if problem.kind() != ProblemType::AlreadyDecided && is_late(problem.kind()) => Ok(true),
        Err(problem) => Err(problem),
    }
}
