//! Deadlines in a fork: the times that nodes show are those that hold, as in the state of the machine.

use std::time::Duration;

use super::detail::Waited;
use super::node::{Node, NodeId, NodeKind};
use super::timeline_tree::Timeline;
use crate::record::{Event, Timestamp};

/// Moves the deadlines of what is open, if an event is the first one of a fork itself.
pub(super) fn postpone_in_fork(timeline: &mut Timeline, event: &Event) {
    if !timeline.start.as_ref().is_some_and(|start| start.begins_fork(event.seq)) {
        return;
    }
    let by = event.at.since(timeline.last);
    let has_deadline = |node: &&Node| {
        matches!(node.kind, NodeKind::Call(_) | NodeKind::Stage(_) | NodeKind::Budget(_)) && node.ended.is_none()
    };
    for id in timeline.nodes.iter().filter(has_deadline).map(|node| node.id).collect::<Vec<NodeId>>() {
        match timeline.node_mut(id).map(|node| &mut node.kind) {
            Some(NodeKind::Call(call)) => {
                call.approval.iter_mut().for_each(|approval| approval.postpone(by));
                call.waits.iter_mut().for_each(|waited| waited.postpone(by));
            }
            Some(NodeKind::Stage(stage)) => stage.waited.iter_mut().for_each(|waited| waited.postpone(by)),
            Some(NodeKind::Budget(budget)) => postpone(&mut budget.request.expires, by),
            _ => {}
        }
    }
}

impl Waited {
    fn postpone(&mut self, by: Duration) {
        if self.resumed.is_none() && !self.is_fixed {
            postpone(&mut self.due, by);
            self.waits.iter_mut().for_each(|wait| postpone(&mut wait.expires, by));
        }
    }
}

fn postpone(due: &mut Option<Timestamp>, by: Duration) {
    *due = due.map(|due| due.after(by));
}
