//! Events of calls in a [`Timeline`].

use std::sync::Arc;

use super::detail::{BrainNode, CallNode, Waited, WidgetNode};
use super::node::{NodeId, NodeKind, NodeStatus};
use super::tree::Timeline;
use crate::record::{
    Approval, BatchPolicy, CallState, Event, EventKind, FileOutput, PrecedingCalls, PublicId, Segment, SideOutput,
    ToolCall, ToolResult, WidgetOutput,
};

impl Timeline {
    /// Folds an event of a call; `here` is the call, or the innermost known node around it.
    pub(super) fn call_event(&mut self, here: NodeId, event: &Event) {
        let now = event.at;
        match &event.kind {
            EventKind::LoopToolCall(call) => return self.tool_call(event, call),
            EventKind::LoopExit { call, .. } => {
                let id = self.innermost(call);
                if let Some(call) = self.call_mut(id) {
                    call.exited = true;
                }
                return;
            }
            EventKind::LoopOutput { id, output } => return self.output(here, event, id, output),
            EventKind::LoopTrigger { change } => {
                self.add(here, event, NodeStatus::Done, NodeKind::Trigger { change: change.clone() });
                return;
            }
            _ => {}
        }
        let Some(call) = self.call_mut(here) else { return };
        Approval::follow(&mut call.approval, event);
        match &event.kind {
            EventKind::LoopToolStart { .. } => {
                (call.state, call.attempts) = (CallState::Running, call.attempts.saturating_add(1));
                self.begin(here, event);
            }
            EventKind::LoopToolRetry { .. } => (call.state, call.progress) = (CallState::Queued, None),
            EventKind::LoopBrainStart { title, options } => {
                (call.state, call.attempts) = (CallState::Running, call.attempts.saturating_add(1));
                let (title, options) = (title.clone(), options.clone());
                call.brain = Some(BrainNode { title, options, ..BrainNode::default() });
                self.begin(here, event);
            }
            EventKind::LoopBrainComplete { handed_back, .. } => call.handed_back = *handed_back,
            EventKind::LoopApprovalRequested { .. } => {
                call.state = CallState::Pending;
                self.set_status(here, NodeStatus::Waiting);
            }
            EventKind::LoopApprovalDecided { .. }
            | EventKind::LoopApprovalWithdrawn { .. }
            | EventKind::LoopApprovalExpired {} => {
                call.state = CallState::Queued;
                self.set_status(here, NodeStatus::NotStarted);
            }
            EventKind::LoopWait { waits, .. } => {
                (call.state, call.progress) = (CallState::Waiting, None);
                call.waits.push(Waited::since(now, waits, None));
                self.set_status(here, NodeStatus::Waiting);
            }
            EventKind::LoopResume { .. } => {
                call.state = CallState::Running;
                if let Some(waited) = call.waits.last_mut() {
                    waited.resume(event);
                }
                self.begin(here, event);
            }
            EventKind::LoopToolResult { result, duration, .. } => {
                (call.state, call.progress) = (CallState::Done, None);
                (call.result, call.duration) = (Some(result.clone()), *duration);
                self.close_below(here, NodeStatus::Interrupted, now);
                self.close(here, status_of(result), now);
            }
            _ => {}
        }
        self.settle_batch(here);
    }

    fn tool_call(&mut self, event: &Event, call: &ToolCall) {
        let Some(Segment::Call(iteration, _)) = event.path.last() else { return };
        let loop_at = event.path.parent().unwrap_or_default();
        let parent = self.innermost(&loop_at.iteration(iteration));
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
        let id = self.add(parent, event, NodeStatus::NotStarted, NodeKind::Call(Box::new(node)));
        self.settle_batch(id);
    }

    /// Updates which calls of a batch are queued, and which are deferred by a call before them.
    fn settle_batch(&mut self, call: NodeId) {
        let Some(batch) = self.node(call).and_then(|node| node.parent) else { return };
        let stage = self.stage_of(batch);
        let policy = match self.node(stage).map(|node| &node.kind) {
            Some(NodeKind::Stage(stage)) => stage.policy,
            _ => BatchPolicy::default(),
        };
        let mut before = PrecedingCalls::default();
        for id in self.children(batch).to_vec() {
            let Some(NodeKind::Call(call)) = self.node(id).map(|node| &node.kind) else { continue };
            let undecided = call.approval.as_deref().is_some_and(Approval::is_open) && call.result.is_none();
            let (is_done, flags, known) = (call.result.is_some(), call.flags, call.state);
            let ends_loop = flags.exit && !call.handed_back;
            if matches!(known, CallState::Queued | CallState::Deferred) {
                let starts = !undecided && before.lets_start(flags, call.approval.is_some(), policy);
                let state = if starts { CallState::Queued } else { CallState::Deferred };
                // Most calls of a batch stay as they are.
                if state != known
                    && let Some(call) = self.call_mut(id)
                {
                    call.state = state;
                }
            }
            before.pass(undecided, is_done, ends_loop);
        }
    }

    fn output(&mut self, here: NodeId, event: &Event, id: &PublicId, output: &SideOutput) {
        let public_id = id.clone();
        let kind = match output {
            SideOutput::File(FileOutput { file, content }) => {
                NodeKind::File { public_id, file: file.clone(), content: *content }
            }
            SideOutput::Custom(custom) => NodeKind::Custom { public_id, output: custom.clone() },
            SideOutput::Widget(widget) => return self.widget(here, event, public_id, widget),
        };
        self.add(here, event, NodeStatus::Done, kind);
    }

    fn widget(&mut self, here: NodeId, event: &Event, public_id: PublicId, output: &WidgetOutput) {
        let first = output.replaces.as_ref().and_then(|old| self.widgets.get(old)).copied();
        let node = WidgetNode { public_id, output: output.clone(), first, replaced_by: Vec::new() };
        let id = self.add(here, event, NodeStatus::Done, NodeKind::Widget(Box::new(node)));
        if let Some(first) = first.and_then(|first| self.node_mut(first))
            && let NodeKind::Widget(widget) = &mut first.kind
        {
            widget.replaced_by.push(id);
        }
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
