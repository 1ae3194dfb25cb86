//! Events of calls.

use std::sync::Arc;

use positronic_core::record::{Event, EventKind, Path, Seq, Timestamp, ToolResult};

use super::ids::SpanRef;
use super::open::{CallWithoutResult, OpenSpan, OpenSpans, SpanRole};
use super::span::{Link, Operation, Outcome, Tool};
use super::waits::withdraw_within;

pub(super) fn call_event(spans: &mut OpenSpans, event: &Event) {
    let (path, at) = (&event.path, (event.seq, event.at));
    match &event.kind {
        EventKind::LoopToolCall(call) => {
            let id = call.provider_id.clone().unwrap_or_else(|| path.public_id().to_string());
            let (name, arguments) = (call.tool.clone(), Arc::clone(&call.arguments));
            let tool = Tool { name, call: id, arguments, brain: call.flags.brain, ..Tool::default() };
            spans
                .calls
                .insert(path.clone(), CallWithoutResult { tool, resumed: None, waited: None, is_detached: false });
        }
        EventKind::LoopToolStart { attempt, detached } => tool_start(spans, path, at, *attempt, *detached),
        EventKind::LoopBrainStart { .. } => tool_start(spans, path, at, 0, false),
        EventKind::LoopToolRetry { message, .. } => {
            tool_end(spans, path, event.at, Outcome::failure("tool", message.clone()), |tool| tool.retried = true);
        }
        EventKind::LoopWait { .. } => tool_end(spans, path, event.at, Outcome::Suspended, |_| {}),
        EventKind::LoopResume { .. } => {
            if let Some(call) = spans.calls.get_mut(path) {
                call.resumed = Some(at);
            }
        }
        EventKind::LoopToolResult { result, .. } => tool_result(spans, event, result),
        _ => {}
    }
}

fn tool_start(spans: &mut OpenSpans, path: &Path, at: (Seq, Timestamp), attempt: u32, is_detached: bool) {
    let Some(call) = spans.calls.get_mut(path) else { return };
    (call.tool.started, call.is_detached, call.resumed) = (true, is_detached, None);
    let tool = Tool { attempt, ..call.tool.clone() };
    let waited = call.waited.clone();
    spans.begin(path, SpanRole::Tool, at, Operation::Tool(Box::new(tool)));
    link_tool(spans, path, waited);
}

fn link_tool(spans: &mut OpenSpans, path: &Path, waited: Option<SpanRef>) {
    if let (Some(open), Some(to)) = (spans.find(path, SpanRole::Tool), waited) {
        open.links.push(Link { to, relation: "wait" });
    }
}

fn tool_result(spans: &mut OpenSpans, event: &Event, result: &ToolResult) {
    let (path, at) = (&event.path, event.at);
    withdraw_within(spans, path, at);
    spans.end_within(path, at, &Outcome::failed("interrupted"), |open| {
        !(open.path == *path && open.role == SpanRole::Tool)
    });
    let outcome = match result {
        ToolResult::Error { message } => Outcome::failure("tool", message.clone()),
        ToolResult::Denied { reason, .. } => match reason {
            Some(reason) => Outcome::failure("denied", reason.clone()),
            None => Outcome::failed("denied"),
        },
        ToolResult::Skipped { reason } => Outcome::failure("skipped", reason.clone()),
        ToolResult::Interrupted { reason } => Outcome::failure("interrupted", reason.clone()),
        _ => Outcome::Done,
    };
    let is_started = spans.calls.get(path).is_some_and(|call| call.tool.started);
    // A call that was refused before it could start is a failed call; one that was denied or skipped did not happen.
    if !is_started && matches!(result, ToolResult::Error { .. }) {
        let tool = spans.calls.get(path).map(|call| call.tool.clone()).unwrap_or_default();
        spans.begin(path, SpanRole::Tool, (event.seq, at), Operation::Tool(Box::new(tool)));
    }
    tool_end(spans, path, at, outcome, |tool| tool.result = Some(result.clone()));
    spans.calls.remove(path);
}

/// Ends the tool's span; one that continued after a wait begins where the wait or the segment's begin was.
fn tool_end(spans: &mut OpenSpans, path: &Path, at: Timestamp, outcome: Outcome, complete: impl FnOnce(&mut Tool)) {
    let resumed = spans.calls.get_mut(path).and_then(|call| {
        call.is_detached = false;
        let (seq, since) = call.resumed.take()?;
        Some((seq, since, call.tool.clone(), call.waited.clone()))
    });
    if let Some((seq, since, tool, waited)) = resumed
        && spans.find(path, SpanRole::Tool).is_none()
    {
        let begun = spans.find(&Path::root(), SpanRole::Agent).map_or(since, |root| root.started);
        spans.begin(path, SpanRole::Tool, (seq, since.max(begun)), Operation::Tool(Box::new(tool)));
        link_tool(spans, path, waited);
    }
    spans.end(path, SpanRole::Tool, at, outcome, |open| {
        if let OpenSpan { operation: Operation::Tool(tool), .. } = open {
            complete(tool);
        }
    });
}
