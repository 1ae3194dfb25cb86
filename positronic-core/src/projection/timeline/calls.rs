//! Events of calls in a [`Timeline`].

use std::sync::Arc;

use super::detail::{BrainNode, CallNode, Waited, WidgetNode};
use super::node::{NodeId, NodeKind, NodeStatus};
use super::timeline_tree::Timeline;
use crate::record::{
    Approval, BatchPolicy, CallState, Event, EventKind, FileOutput, PrecedingCalls, PublicId, Segment, SideOutput,
    ToolCall, ToolResult, WidgetOutput,
};

/// Folds an event of a call; `here` is the call, or the innermost known node around it.
pub(super) fn call_event(timeline: &mut Timeline, here: NodeId, event: &Event) {
    let now = event.at;
    match &event.kind {
        EventKind::LoopToolCall(call) => return tool_call(timeline, event, call),
        EventKind::LoopExit { call, .. } => {
            let id = timeline.innermost(call);
            if let Some(call) = timeline.call_mut(id) {
                call.exited = true;
            }
            return;
        }
        EventKind::LoopOutput { id, output } => return add_output(timeline, here, event, id, output),
        EventKind::LoopTrigger { change } => {
            timeline.add(here, event, NodeStatus::Done, NodeKind::Trigger { change: change.clone() });
            return;
        }
        _ => {}
    }
    let Some(call) = timeline.call_mut(here) else { return };
    Approval::follow(&mut call.approval, event);
    match &event.kind {
        EventKind::LoopToolStart { .. } => {
            (call.state, call.attempts) = (CallState::Running, call.attempts.saturating_add(1));
            timeline.begin(here, event);
        }
        EventKind::LoopToolRetry { .. } => (call.state, call.progress) = (CallState::Queued, None),
        EventKind::LoopBrainStart { title, options } => {
            (call.state, call.attempts) = (CallState::Running, call.attempts.saturating_add(1));
            let (title, options) = (title.clone(), options.clone());
            call.brain = Some(BrainNode { title, options, ..BrainNode::default() });
            timeline.begin(here, event);
        }
        EventKind::LoopBrainComplete { handed_back, .. } => call.handed_back = *handed_back,
        EventKind::LoopApprovalRequested { .. } => {
            call.state = CallState::Pending;
            timeline.set_status(here, NodeStatus::Waiting);
        }
        EventKind::LoopApprovalDecided { .. }
        | EventKind::LoopApprovalWithdrawn { .. }
        | EventKind::LoopApprovalExpired {} => {
            call.state = CallState::Queued;
            timeline.set_status(here, NodeStatus::NotStarted);
        }
        EventKind::LoopWait { waits, .. } => {
            (call.state, call.progress) = (CallState::Waiting, None);
            call.waits.push(Waited::since(now, waits, None));
            timeline.set_status(here, NodeStatus::Waiting);
        }
        EventKind::LoopResume { .. } => {
            call.state = CallState::Running;
            if let Some(waited) = call.waits.last_mut() {
                waited.resume(event);
            }
            timeline.begin(here, event);
        }
        EventKind::LoopToolResult { result, duration, .. } => {
            (call.state, call.progress) = (CallState::Done, None);
            (call.result, call.duration) = (Some(result.clone()), *duration);
            timeline.close_below(here, NodeStatus::Interrupted, now);
            timeline.close(here, status_of(result), now);
        }
        _ => {}
    }
    settle_batch(timeline, here);
}

fn tool_call(timeline: &mut Timeline, event: &Event, call: &ToolCall) {
    let Some(Segment::Call(iteration, _)) = event.path.last() else { return };
    let loop_at = event.path.parent().unwrap_or_default();
    let parent = timeline.innermost(&loop_at.iteration(iteration));
    let node = CallNode {
        public_id: event.path.public_id(),
        tool: call.tool.clone(),
        arguments: Arc::clone(&call.arguments),
        repair: call.repair.clone(),
        flags: call.flags,
        state: if call.gate.is_some() { CallState::Deferred } else { CallState::Queued },
        proposed: event.at,
        attempts: 0,
        approval: call.gate.as_ref().map(|gate| Box::new(Approval::of_gate(gate))),
        waits: Vec::new(),
        brain: None,
        progress: None,
        result: None,
        duration: None,
        exited: false,
        handed_back: false,
    };
    let id = timeline.add(parent, event, NodeStatus::NotStarted, NodeKind::Call(Box::new(node)));
    settle_batch(timeline, id);
}

/// Updates which calls of a batch are queued, and which are deferred by a call before them.
fn settle_batch(timeline: &mut Timeline, call: NodeId) {
    let Some(batch) = timeline.node(call).and_then(|node| node.parent) else { return };
    let stage = timeline.stage_of(batch);
    let policy = match timeline.node(stage).map(|node| &node.kind) {
        Some(NodeKind::Stage(stage)) => stage.policy,
        _ => BatchPolicy::default(),
    };
    let mut before = PrecedingCalls::default();
    for id in timeline.children(batch).to_vec() {
        let Some(NodeKind::Call(call)) = timeline.node(id).map(|node| &node.kind) else { continue };
        let undecided = call.approval.as_deref().is_some_and(Approval::is_open) && call.result.is_none();
        let (is_done, flags, known) = (call.result.is_some(), call.flags, call.state);
        let ends_loop = flags.exit && !call.handed_back;
        if matches!(known, CallState::Queued | CallState::Deferred) {
            let starts = !undecided && before.lets_start(flags, call.approval.is_some(), policy);
            let state = if starts { CallState::Queued } else { CallState::Deferred };
            // Most calls of a batch stay as they are.
            if state != known
                && let Some(call) = timeline.call_mut(id)
            {
                call.state = state;
            }
        }
        before.pass(undecided, is_done, ends_loop);
    }
}

fn add_output(timeline: &mut Timeline, here: NodeId, event: &Event, id: &PublicId, output: &SideOutput) {
    let public_id = id.clone();
    let kind = match output {
        SideOutput::File(FileOutput { file, content }) => {
            NodeKind::File { public_id, file: file.clone(), content: *content }
        }
        SideOutput::Custom(custom) => NodeKind::Custom { public_id, output: custom.clone() },
        SideOutput::Widget(widget) => return add_widget(timeline, here, event, public_id, widget),
    };
    timeline.add(here, event, NodeStatus::Done, kind);
}

fn add_widget(timeline: &mut Timeline, here: NodeId, event: &Event, public_id: PublicId, output: &WidgetOutput) {
    let first = output.replaces.as_ref().and_then(|old| timeline.widgets.get(old)).copied();
    let node = WidgetNode { public_id, output: output.clone(), first, replaced_by: Vec::new() };
    let id = timeline.add(here, event, NodeStatus::Done, NodeKind::Widget(Box::new(node)));
    if let Some(first) = first.and_then(|first| timeline.node_mut(first))
        && let NodeKind::Widget(widget) = &mut first.kind
    {
        widget.replaced_by.push(id);
    }
}

const fn status_of(result: &ToolResult) -> NodeStatus {
    match result {
        ToolResult::Success { .. } => NodeStatus::Done,
        ToolResult::Error { .. } | ToolResult::Denied { .. } => NodeStatus::Failed,
        ToolResult::Interrupted { .. } => NodeStatus::Interrupted,
        ToolResult::Skipped { .. } => NodeStatus::Skipped,
    }
}
