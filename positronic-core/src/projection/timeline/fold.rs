//! The fold of events into a [`Timeline`]. Events of calls are in `calls`, answers in `stream`.

use std::sync::Arc;

use super::calls::call_event;
use super::detail::{BrainNode, BudgetNode, BudgetOutcome, Ending, GroupProgress, GuardedValue, StageNode, Waited};
use super::forks::postpone_in_fork;
use super::node::{Node, NodeId, NodeKind, NodeStatus};
use super::stream::{apply_delta, count, model_event};
use super::timeline_tree::Timeline;
use crate::record::{
    BrainStart, Decision, Delta, Event, EventKind, LimitKind, LimitReached, LoopOutcome, Segment, Seq, Shape,
    StageKind, StageShape, Timestamp, UndoCause,
};

impl Timeline {
    /// Applies the next event of the log.
    pub fn apply(&mut self, event: &Event) {
        postpone_in_fork(self, event);
        (self.seq, self.last) = (Some(event.seq), event.at);
        if self.currency.is_none()
            && let Some(currency) = event.currency()
        {
            self.currency = Some(currency.to_owned());
            if let Some(costs) = &mut self.costs {
                costs.limits_in = Some(currency.to_owned());
            }
        }
        let (path, now) = (&event.path, event.at);
        let here = self.innermost(path);
        match &event.kind {
            EventKind::RunClaimed { owner, .. } => self.worker = Some(owner.clone()),
            EventKind::RunReleased { .. } => self.worker = None,
            EventKind::RunNotClaimed { owner, reason, message } => {
                let (owner, reason, message) = (owner.clone(), *reason, message.clone());
                self.add(here, event, NodeStatus::Done, NodeKind::ClaimRefused { owner, reason, message });
            }
            EventKind::BrainStart(start) => self.brain_start(here, event, start),
            EventKind::BrainMigrated { version, stages, .. } => {
                if let Some(brain) = self.brain_mut(here) {
                    brain.version = *version;
                }
                self.add(here, event, NodeStatus::Done, NodeKind::Migration { version: *version });
                self.add_stages(here, event, stages);
            }
            EventKind::BrainComplete { result } => {
                self.brain_end(here, NodeStatus::Done, Ending::Completed { result: result.clone() }, now);
            }
            EventKind::BrainError(failure) => {
                self.brain_end(here, NodeStatus::Failed, Ending::Failed(failure.clone()), now);
            }
            EventKind::BrainCancelled { actor, reason, .. } => {
                let ending = Ending::Cancelled { actor: actor.clone(), reason: reason.clone() };
                self.brain_end(here, NodeStatus::Interrupted, ending, now);
            }
            EventKind::UndoStart { cause, steps } => {
                let status = match cause {
                    UndoCause::Failed(_) => NodeStatus::Failed,
                    UndoCause::Cancelled { .. } => NodeStatus::Interrupted,
                };
                self.close_below(here, status, now);
                if let Some(brain) = self.brain_mut(here) {
                    brain.undoing = Some(cause.clone());
                }
                let shapes = steps.iter().map(|step| StageShape::new(&step.name, StageKind::Step));
                self.add_stages(here, event, &Shape(shapes.collect()));
            }
            EventKind::UndoFailed { message } => {
                if let Some(stage) = self.stage_mut(here) {
                    stage.error = Some(message.clone());
                }
                self.close_below(here, NodeStatus::Interrupted, now);
                self.close(here, NodeStatus::Failed, now);
            }
            EventKind::BrainPaused { actor, failure, .. } => {
                let pause = NodeKind::Pause { actor: actor.clone(), failure: failure.clone(), resumed: None };
                self.add(here, event, NodeStatus::Waiting, pause);
            }
            EventKind::BrainResumed { actor, .. } => {
                if let Some(id) = self.pause.take()
                    && let Some(Node { kind: NodeKind::Pause { resumed, .. }, .. }) = self.node_mut(id)
                {
                    *resumed = Some(actor.clone());
                    self.close(id, NodeStatus::Done, now);
                }
            }
            EventKind::StepStart { attempt } => {
                if let Some(stage) = self.stage_mut(here) {
                    stage.attempt = *attempt;
                }
                self.begin(here, event);
            }
            EventKind::StepComplete { duration, .. } => {
                if let Some(stage) = self.stage_mut(here) {
                    stage.duration = Some(*duration);
                }
                self.close_below(here, NodeStatus::Interrupted, now);
                self.close(here, NodeStatus::Done, now);
            }
            EventKind::StepRetry { attempt, message, due } | EventKind::LoopToolRetry { attempt, message, due } => {
                let retry = NodeKind::Retry { attempt: *attempt, message: message.clone(), due: *due };
                self.add(here, event, NodeStatus::Done, retry);
                call_event(self, here, event);
            }
            EventKind::BranchChosen(arm) => {
                if let Some(stage) = self.stage_mut(here) {
                    stage.arm = Some(arm.name.clone());
                }
                self.begin(here, event);
            }
            EventKind::GroupStart { options, .. } => {
                self.begin(here, event);
                if let Some(stage) = self.stage_mut(here) {
                    let count = u32::try_from(options.len()).unwrap_or(u32::MAX);
                    stage.group = Some(GroupProgress { count, ..GroupProgress::default() });
                }
            }
            EventKind::RepeatRound { .. } => {}
            EventKind::GuardChecked { passed, reason } => {
                self.begin(here, event);
                if let Some(stage) = self.stage_mut(here).filter(|_| !passed) {
                    stage.stopped = Some(reason.clone());
                }
                self.close(here, NodeStatus::Done, now);
                if !passed {
                    self.skip_after(here);
                }
            }
            EventKind::StageWait { waits, due, fixed } => {
                self.begin(here, event);
                if let Some(stage) = self.stage_mut(here) {
                    stage.waited = Some(Waited { is_fixed: *fixed, ..Waited::since(now, waits, *due) });
                }
                self.set_status(here, NodeStatus::Waiting);
            }
            EventKind::StageResume { .. } => {
                if let Some(waited) = self.stage_mut(here).and_then(|stage| stage.waited.as_mut()) {
                    waited.resume(event);
                }
                self.begin(here, event);
            }
            EventKind::StepBlocked {} => {
                self.add(here, event, NodeStatus::Done, NodeKind::Blocked);
                self.set_status(here, NodeStatus::Waiting);
            }
            EventKind::LoopGuardReplaced { guard, replaced, input } => {
                let what = match (input, self.call_mut(here)) {
                    (Some(input), _) => GuardedValue::Message { withheld: input.withheld.clone() },
                    (None, None) => GuardedValue::Answer,
                    (None, Some(call)) if call.attempts == 0 => GuardedValue::Arguments,
                    (None, Some(_)) => GuardedValue::Output,
                };
                let (guard, replaced) = (guard.clone(), replaced.clone());
                self.add(here, event, NodeStatus::Done, NodeKind::GuardReplaced { guard, what, replaced });
            }
            EventKind::LoopModelCall { .. }
            | EventKind::LoopModelResult { .. }
            | EventKind::LoopModelRetry { .. }
            | EventKind::LoopAnswerRefused { .. } => model_event(self, here, event),
            EventKind::ChildStart(child) => {
                self.add(here, event, NodeStatus::Done, NodeKind::ChildRun(child.clone()));
            }
            EventKind::LoopAnswerBroken { metadata } => _ = count(self, event, metadata),
            EventKind::BudgetRequested(_) | EventKind::BudgetDecided { .. } | EventKind::BudgetExpired {} => {
                self.budget_event(here, event);
            }
            EventKind::LoopStart { .. }
            | EventKind::LoopIteration(_)
            | EventKind::LoopMessage { .. }
            | EventKind::LoopMaxIterations { .. }
            | EventKind::LoopLimit(_)
            | EventKind::LoopStopped { .. }
            | EventKind::LoopPluginUpdate { .. }
            | EventKind::LoopPluginFailed { update: None, .. }
            | EventKind::LoopCompacted { .. }
            | EventKind::LoopComplete { .. } => self.loop_event(here, event),
            EventKind::LoopToolCall(_)
            | EventKind::LoopToolStart { .. }
            | EventKind::LoopToolResult { .. }
            | EventKind::LoopBrainStart { .. }
            | EventKind::LoopBrainComplete { .. }
            | EventKind::LoopOutput { .. }
            | EventKind::LoopTrigger { .. }
            | EventKind::LoopApprovalRequested { .. }
            | EventKind::LoopApprovalDecided { .. }
            | EventKind::LoopApprovalWithdrawn { .. }
            | EventKind::LoopApprovalExpired {}
            | EventKind::LoopWait { .. }
            | EventKind::LoopResume { .. }
            | EventKind::LoopExit { .. } => call_event(self, here, event),
            EventKind::ValueRecorded { .. } | EventKind::LoopPluginChanged { update: None, .. } => {}
            EventKind::LoopPluginChanged { update: Some(update), .. } => self.update_ended(*update, None, now),
            EventKind::LoopPluginFailed { update: Some(update), message, .. } => {
                self.update_ended(*update, Some(message.clone()), now);
            }
        }
    }

    /// Applies a piece that streams between two events.
    ///
    /// A piece of a complete answer, of an earlier attempt or of a call that is not running changes nothing. It
    /// therefore does not matter whether a piece arrives before or after the event that supersedes it.
    pub fn apply_delta(&mut self, delta: &Delta) {
        apply_delta(self, delta);
    }

    /// Returns the brain of a node.
    fn brain_mut(&mut self, id: NodeId) -> Option<&mut BrainNode> {
        match &mut self.node_mut(id)?.kind {
            NodeKind::Brain(brain) => Some(brain),
            NodeKind::Stage(stage) => stage.brain.as_mut(),
            NodeKind::Call(call) => call.brain.as_mut(),
            _ => None,
        }
    }

    /// Adds the stage of one brain of a group, of a round, or of a further try, if the event begins one.
    fn add_member(&mut self, here: NodeId, event: &Event) -> NodeId {
        let Some(Segment::Call(first, second)) = event.path.last() else { return here };
        let Some(stage) = self.stage_mut(here).filter(|stage| !stage.stage.has_iterations()) else { return here };
        let (attempt, index) = if stage.stage == StageKind::Repeat { (second, first) } else { (first, second) };
        let mut name = match stage.stage {
            StageKind::Brain | StageKind::Branch => stage.name.clone(),
            StageKind::Repeat => format!("#{index}"),
            _ => {
                let arm = usize::try_from(index).ok().and_then(|index| stage.arms.get(index));
                arm.cloned().unwrap_or_else(|| format!("#{index}"))
            }
        };
        if attempt > 0 {
            name = format!("{name}, try {}", attempt.saturating_add(1));
        } else if stage.stage == StageKind::Repeat {
            stage.group.get_or_insert_default().count += 1;
        }
        self.begin(here, event);
        let member = NodeKind::Stage(Box::new(StageNode::new(&name, StageKind::Brain, &[])));
        self.add(here, event, NodeStatus::Running, member)
    }

    fn brain_start(&mut self, here: NodeId, event: &Event, start: &BrainStart) {
        let here = self.add_member(here, event);
        self.begin(here, event);
        let (title, options) = (start.title.clone(), start.options.clone());
        let brain = BrainNode { title, version: start.version, options, ..BrainNode::default() };
        if let Some(node) = self.node_mut(here) {
            match &mut node.kind {
                NodeKind::Brain(root) => *root = brain,
                NodeKind::Stage(stage) => stage.brain = Some(brain),
                NodeKind::Call(call) => call.brain = Some(brain),
                _ => {}
            }
        }
        if here == NodeId::ROOT {
            self.start.clone_from(&start.start);
        }
        self.add_stages(here, event, &start.stages);
    }

    /// Adds the new stages of a brain.
    fn add_stages(&mut self, here: NodeId, event: &Event, stages: &Shape) {
        for shape in &stages.0 {
            let path = event.path.stage(&shape.name);
            if !self.places.contains_key(&path) {
                let stage = NodeKind::Stage(Box::new(StageNode::new(&shape.name, shape.kind, &shape.arms)));
                self.add_at(here, path, event, NodeStatus::NotStarted, stage);
            }
        }
    }

    /// Marks the stages after one as skipped.
    fn skip_after(&mut self, stage: NodeId) {
        let Some(brain) = self.node(stage).and_then(|node| node.parent) else { return };
        let later = self.children(brain).iter().copied().skip_while(|id| *id != stage).skip(1);
        for id in later.collect::<Vec<_>>() {
            self.set_status(id, NodeStatus::Skipped);
        }
    }

    /// Returns the progress of the group that a brain belongs to.
    fn group_of(&mut self, member: NodeId) -> Option<&mut GroupProgress> {
        let node = self.node(member).filter(|node| matches!(node.path.last(), Some(Segment::Call(..))))?;
        self.stage_mut(node.parent?)?.group.as_mut()
    }

    fn brain_end(&mut self, here: NodeId, status: NodeStatus, ending: Ending, now: Timestamp) {
        self.close_below(here, status, now);
        if let Some(brain) = self.brain_mut(here) {
            brain.ending = Some(ending);
        }
        let last = self.children(here).last().and_then(|last| self.node(*last));
        let is_tried_again = last.is_some_and(|last| matches!(last.kind, NodeKind::Retry { .. }));
        if let Some(group) = self.group_of(here) {
            match status {
                NodeStatus::Done => group.done += 1,
                NodeStatus::Failed if !is_tried_again => group.failed += 1,
                _ => {}
            }
        }
        // A call ends with its result.
        if !matches!(self.node(here).map(|node| &node.kind), Some(NodeKind::Call(_))) {
            self.close(here, status, now);
        }
    }

    fn loop_event(&mut self, here: NodeId, event: &Event) {
        let now = event.at;
        let note = match &event.kind {
            EventKind::LoopStart { input, from, message_id, files, hidden, limits, .. } => {
                self.begin(here, event);
                if let Some(stage) = self.stage_mut(here) {
                    (stage.hidden, stage.max_iterations) = (*hidden, limits.budget.max_iterations);
                    stage.policy = limits.policy;
                }
                let Some(text) = input.clone() else { return };
                let (from, message_id, files) = (*from, message_id.clone(), files.clone());
                let actor = self.start.as_ref().map(|start| start.actor.clone()).unwrap_or_default();
                NodeKind::Message { text, files, from, opening: true, message_id, actor }
            }
            EventKind::LoopIteration(iteration) => {
                let Some(Segment::Iteration(number)) = event.path.last() else { return };
                let stage_id = self.stage_of(here);
                let stage_path = self.node(stage_id).map(|node| node.path.clone()).unwrap_or_default();
                let mut before = None;
                if let Some(stage) = self.stage_mut(stage_id) {
                    before = stage.iteration.replace(number);
                    if let Some(limits) = &iteration.limits {
                        (stage.max_iterations, stage.policy) = (limits.budget.max_iterations, limits.policy);
                    }
                }
                let before = before.and_then(|before| self.places.get(&stage_path.iteration(before)).copied());
                if let Some(before) = before.filter(|_| self.places.get(&event.path) != before.as_ref()) {
                    self.close_below(before, NodeStatus::Interrupted, now);
                    self.close(before, NodeStatus::Done, now);
                }
                self.add(stage_id, event, NodeStatus::Running, NodeKind::Iteration { number });
                return;
            }
            EventKind::LoopMessage { text, files, message_id, from, actor, .. } => {
                let (text, files, from) = (text.clone(), files.clone(), *from);
                let (message_id, actor) = (message_id.clone(), actor.clone());
                NodeKind::Message { text, files, from, opening: false, message_id, actor }
            }
            EventKind::LoopMaxIterations { limit } => {
                let limit = u64::from(*limit);
                let kind = LimitKind::Iterations;
                NodeKind::Limit(LimitReached { kind, limit, used: limit, of: None, shared: false, unpriced: None })
            }
            EventKind::LoopLimit(reached) => NodeKind::Limit(reached.clone()),
            EventKind::LoopStopped { cause, message } => {
                NodeKind::Stopped { cause: cause.clone(), message: message.clone() }
            }
            EventKind::LoopPluginFailed { plugin, message, .. } => {
                NodeKind::PluginFailure { plugin: plugin.clone(), message: message.clone() }
            }
            EventKind::LoopPluginUpdate { plugin, update, actor, .. } => {
                let (plugin, update, actor) = (plugin.clone(), Arc::clone(update), actor.clone());
                let kind = NodeKind::PluginUpdate { plugin, update, actor, refused: None };
                self.add(here, event, NodeStatus::Running, kind);
                return;
            }
            EventKind::LoopCompacted { keep, summary } => {
                NodeKind::Compaction { keep: *keep, summary: summary.clone() }
            }
            EventKind::LoopComplete { outcome, usage, .. } => {
                let iteration = self.stage_mut(here).and_then(|stage| {
                    (stage.outcome, stage.usage, stage.asking) = (Some(outcome.clone()), Some(*usage), None);
                    stage.iteration
                });
                let status = status_of(outcome);
                if let Some(id) = iteration.and_then(|last| self.places.get(&event.path.iteration(last)).copied()) {
                    self.close_below(id, NodeStatus::Interrupted, now);
                    let unanswered = matches!(status, NodeStatus::Failed | NodeStatus::Interrupted);
                    self.close(id, if unanswered { status } else { NodeStatus::Done }, now);
                }
                self.close_below(here, NodeStatus::Interrupted, now);
                self.close(here, status, now);
                return;
            }
            _ => return,
        };
        let is_limit = matches!(note, NodeKind::Limit(_));
        let id = self.add(here, event, NodeStatus::Done, note);
        if let Some(stage) = self.stage_mut(here).filter(|_| is_limit) {
            stage.limit = Some(id);
        }
    }

    /// Ends an update of a plugin, which has taken or refused it.
    fn update_ended(&mut self, update: Seq, why: Option<String>, now: Timestamp) {
        let Some(id) = self.updates.remove(&update) else { return };
        let status = if why.is_some() { NodeStatus::Failed } else { NodeStatus::Done };
        if let Some(Node { kind: NodeKind::PluginUpdate { refused, .. }, .. }) = self.node_mut(id) {
            *refused = why;
        }
        self.close(id, status, now);
    }

    fn budget_event(&mut self, here: NodeId, event: &Event) {
        let at = event.at;
        let outcome = match &event.kind {
            EventKind::BudgetRequested(request) => {
                let budget = BudgetNode { request: *request, outcome: None };
                let parent = self.stage_at_work(here);
                self.add(parent, event, NodeStatus::Waiting, NodeKind::Budget(Box::new(budget)));
                self.set_status(here, NodeStatus::Waiting);
                return;
            }
            EventKind::BudgetDecided { decision, more, reason, signal, actor } => {
                if let Some(stage) = self.stage_mut(here).filter(|stage| stage.stage.has_iterations()) {
                    stage.max_iterations = stage.max_iterations.map(|most| most.saturating_add(more.iterations));
                }
                BudgetOutcome::Decided {
                    decision: *decision,
                    at,
                    more: *more,
                    reason: reason.clone(),
                    actor: actor.clone(),
                    signal: signal.clone(),
                }
            }
            _ => BudgetOutcome::Expired { at },
        };
        let granted = matches!(&outcome, BudgetOutcome::Decided { decision: Decision::Approved, .. });
        if let Some(id) = self.open.remove(&event.path) {
            if let Some(Node { kind: NodeKind::Budget(budget), .. }) = self.node_mut(id) {
                budget.outcome = Some(outcome);
            }
            self.close(id, if granted { NodeStatus::Done } else { NodeStatus::Failed }, at);
        }
        self.begin(here, event);
    }
}

const fn status_of(outcome: &LoopOutcome) -> NodeStatus {
    match outcome {
        LoopOutcome::Answered | LoopOutcome::Exited { .. } => NodeStatus::Done,
        LoopOutcome::Failed { .. } => NodeStatus::Failed,
        LoopOutcome::Cancelled => NodeStatus::Interrupted,
        LoopOutcome::MaxIterations | LoopOutcome::Limit { .. } | LoopOutcome::Stopped { .. } => NodeStatus::Limited,
    }
}
