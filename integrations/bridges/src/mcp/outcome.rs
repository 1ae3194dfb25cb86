//! How a call of a brain ends, as the result of a tool.

use positronic_core::record::{FileRef, RunId, RunSummary, Status};
use positronic_server::extension::{OpenQuestion, Viewer};
use positronic_server::{Problem, ProblemType, REDACTED};
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock, Resource};
use serde_json::Value;

use super::tools::RUN_STATUS;
use super::update::{EndedLeg, RefusedCall};
use crate::caller_result::{CallerResult, as_text};
use crate::leg::LegEnd;
use crate::open_questions::{paused, waiting};
use crate::projection::ApprovalOutcome;

/// Returns a problem as an error of the protocol, for requests that are no calls of tools.
pub(super) fn error_of(problem: &Problem) -> ErrorData {
    let message = problem.message();
    match problem.kind().status() {
        500.. => ErrorData::internal_error(message, None),
        _ => ErrorData::invalid_params(message, None),
    }
}

/// Returns the result of a call whose run is over, or can be continued only from elsewhere.
pub(super) fn outcome(
    viewer: &Viewer,
    program: &str,
    run: &RunId,
    over: &EndedLeg,
    rule: &CallerResult,
) -> CallToolResult {
    match &over.end {
        LegEnd::Completed { result, is_state } => completed(viewer, run, over, rule, (result, *is_state)),
        LegEnd::Failed(failure) => error(format!("The run {run} has failed: {}", redacted(viewer, &failure.message))),
        LegEnd::Cancelled => error(format!("The run {run} was cancelled.")),
        LegEnd::Waiting(questions) => waits(viewer, program, run, questions),
        LegEnd::Paused => error(paused(program, run)),
        LegEnd::Broken(problem) if problem.kind() == ProblemType::Stopping => stopped(program, run),
        LegEnd::Broken(problem) => refused(problem),
    }
}

fn completed(
    viewer: &Viewer,
    run: &RunId,
    over: &EndedLeg,
    rule: &CallerResult,
    (result, is_state): (&Value, bool),
) -> CallToolResult {
    let result = rule.shown(viewer, result, is_state);
    let mut texts: Vec<_> = over.answer.text().map(|text| redacted(viewer, &text)).into_iter().collect();
    texts.extend(result.as_ref().map(as_text).filter(|shown| !texts.contains(shown)));
    texts.extend(over.answer.files().iter().map(|file| described(run, file)));
    if texts.is_empty() {
        texts.push(format!("The run {run} has completed. It has no result for callers."));
    }
    texts.extend(over.refused.iter().map(|call| redacted(viewer, &not_approved(call))));
    let mut content: Vec<_> = texts.into_iter().map(ContentBlock::text).collect();
    content.extend(over.answer.files().iter().filter_map(|file| link(run, file, rule)));
    let mut done = CallToolResult::success(content);
    done.structured_content = result.filter(Value::is_object);
    done
}

/// Returns a link to a file, which the caller reads with its token.
fn link(run: &RunId, file: &FileRef, rule: &CallerResult) -> Option<ContentBlock> {
    let mut resource = Resource::new(rule.link(run, file)?, &*file.name);
    resource.mime_type = Some(file.media_type.clone());
    resource.size = Some(file.size);
    Some(ContentBlock::resource_link(resource))
}

fn described(run: &RunId, file: &FileRef) -> String {
    format!("File {} ({}, {} bytes) of the run {run}", file.name, file.media_type, file.size)
}

/// Says that a call did not run: a result alone may be the same with and without it.
fn not_approved(RefusedCall { tool, outcome, reason }: &RefusedCall) -> String {
    let why = match outcome {
        ApprovalOutcome::Expired => "its approval has expired",
        ApprovalOutcome::Withdrawn => "its approval was withdrawn",
        ApprovalOutcome::Approved | ApprovalOutcome::Rejected => "a person has rejected it",
    };
    let reason = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("The call of `{tool}` did not run: {why}{reason}.")
}

fn redacted(viewer: &Viewer, text: &str) -> String {
    viewer.redacted(&text.to_owned()).unwrap_or_else(|| REDACTED.to_owned())
}

/// Says what a run waits for and how it is decided. It is an error, since the call has no result; the model must not decide it.
pub(super) fn waits(viewer: &Viewer, program: &str, run: &RunId, questions: &[OpenQuestion]) -> CallToolResult {
    let waiting = waiting(viewer, program, run, questions);
    error(format!("{waiting}\nTell the user. Afterwards `{RUN_STATUS}` with this run returns its result."))
}

/// Says what a run does that outlasts the call: it works, or waits for a time.
pub(super) fn still_open(row: &RunSummary) -> CallToolResult {
    let run = &row.run;
    let state = match (row.status, &row.why) {
        (Status::Waiting, Some(why)) => format!("{why}; it continues by itself"),
        (Status::Waiting, None) => "waits; it continues by itself".to_owned(),
        _ => "still works".to_owned(),
    };
    error(format!("The run {run} has no result yet: {state}. `{RUN_STATUS}` with this run returns its result later."))
}

/// Says that the server of a call stops before its run is over.
fn stopped(program: &str, run: &RunId) -> CallToolResult {
    error(format!(
        "The run {run} has no result yet: the server is stopping. The run continues on another server, when this one is started \
         again, or with `{program} work {run}`. `{RUN_STATUS}` with this run returns its result later."
    ))
}

/// Describes a run that has not ended.
pub(super) fn in_progress(row: &RunSummary) -> CallToolResult {
    let why = row.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let text = format!("The run {} of {} is {}{why}.", row.run, row.brain, row.status.as_str());
    CallToolResult::success(vec![ContentBlock::text(text)])
}

/// Says why a call was refused.
pub(super) fn refused(problem: &Problem) -> CallToolResult {
    error(problem.message())
}

/// Says why the answer to a form was not recorded.
pub(super) fn not_recorded(run: &RunId, problem: &Problem) -> CallToolResult {
    error(format!("{}\nTell the user. `{RUN_STATUS}` with the run {run} returns its result.", problem.message()))
}

/// Says why the last answer to a question was not recorded.
pub(super) fn not_fitting(problem: &Problem) -> ContentBlock {
    ContentBlock::text(format!("The last answer was not recorded: {}", problem.message()))
}

fn error(text: String) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}
