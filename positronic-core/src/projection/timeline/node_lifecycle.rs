//! How nodes begin and end: they are found by path, added, begun and closed.

use super::detail::{AnswerOutcome, BrainNode, CallNode, StageNode};
use super::node::{Node, NodeId, NodeKind, NodeStatus};
use super::timeline_tree::Timeline;
use crate::record::{ArmShape, BatchPolicy, Event, Path, Seq, StageKind, Timestamp, parent_of};

impl Timeline {
    /// Returns the innermost node at or around a path.
    pub(super) fn innermost(&self, path: &Path) -> NodeId {
        let mut at = Some(path.as_str());
        while let Some(path) = at {
            if let Some(id) = self.places.get(path) {
                return *id;
            }
            at = parent_of(path);
        }
        NodeId::ROOT
    }

    /// Returns a node in order to change it.
    pub(super) fn node_mut(&mut self, id: NodeId) -> Option<&mut Node> {
        if let Some(changed) = &mut self.changed {
            changed.insert(id);
        }
        self.nodes.get_mut(id.index())
    }

    pub(super) fn stage_mut(&mut self, id: NodeId) -> Option<&mut StageNode> {
        match self.node_mut(id)? {
            Node { kind: NodeKind::Stage(stage), .. } => Some(stage),
            _ => None,
        }
    }

    pub(super) fn call_mut(&mut self, id: NodeId) -> Option<&mut CallNode> {
        match self.node_mut(id)? {
            Node { kind: NodeKind::Call(call), .. } => Some(call),
            _ => None,
        }
    }

    /// Finds the stage at or around a node.
    pub(super) fn stage_of(&self, id: NodeId) -> NodeId {
        let mut at = id;
        while let Some(Node { kind: NodeKind::Iteration { .. }, parent: Some(parent), .. }) = self.node(at) {
            at = *parent;
        }
        at
    }

    /// Adds a node that begins with an event.
    pub(super) fn add(&mut self, parent: NodeId, event: &Event, status: NodeStatus, kind: NodeKind) -> NodeId {
        self.add_at(parent, event.path.clone(), event, status, kind)
    }

    /// Adds a node with another path than that of its first event.
    pub(super) fn add_at(
        &mut self,
        parent: NodeId,
        path: Path,
        event: &Event,
        status: NodeStatus,
        kind: NodeKind,
    ) -> NodeId {
        let id = NodeId(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        let started = (status != NodeStatus::NotStarted).then_some(event.at);
        self.put(Node {
            id,
            parent: Some(parent),
            path,
            seq: event.seq,
            status,
            started,
            ended: started.filter(|_| !status.is_open()),
            kind,
            children: Vec::new(),
        });
        id
    }

    /// Adds a node to the list, to its parent and to the indexes.
    pub(super) fn put(&mut self, node: Node) {
        let id = node.id;
        match &node.kind {
            NodeKind::Brain(_) | NodeKind::Stage(_) | NodeKind::Iteration { .. } | NodeKind::Call(_) => {
                self.places.insert(node.path.clone(), id);
            }
            NodeKind::Answer(answer) if answer.outcome.is_none() => {
                self.open.insert(node.path.clone(), id);
            }
            NodeKind::Budget(budget) if budget.outcome.is_none() && node.status.is_open() => {
                self.open.insert(node.path.clone(), id);
            }
            NodeKind::Widget(widget) => {
                let first = widget.first.unwrap_or(id);
                let ids = widget.output.replaces.iter().chain([&widget.public_id]);
                self.widgets.extend(ids.map(|widget| (widget.clone(), first)));
            }
            NodeKind::PluginUpdate { .. } if node.status.is_open() => {
                self.updates.insert(node.seq, id);
            }
            NodeKind::Pause { resumed: None, .. } if node.status.is_open() => self.pause = Some(id),
            _ => {}
        }
        // The list of children follows from the nodes, so the parent does not count as changed.
        if let Some(parent) = node.parent.and_then(|parent| self.nodes.get_mut(parent.index())) {
            parent.children.push(id);
        }
        if let Some(changed) = &mut self.changed {
            changed.insert(id);
        }
        self.nodes.push(node);
    }

    pub(super) fn put_root(&mut self) {
        self.put(Node {
            id: NodeId::ROOT,
            parent: None,
            path: Path::root(),
            seq: Seq::default(),
            status: NodeStatus::NotStarted,
            started: None,
            ended: None,
            kind: NodeKind::Brain(BrainNode::default()),
            children: Vec::new(),
        });
    }

    pub(super) fn begin(&mut self, id: NodeId, event: &Event) {
        let Some(node) = self.node_mut(id) else { return };
        (node.status, node.ended) = (NodeStatus::Running, None);
        if node.started.is_none() {
            node.started = Some(event.at);
            // A call begins with its proposal, even if its tool starts later.
            if !matches!(node.kind, NodeKind::Call(_)) {
                node.seq = event.seq;
            }
        }
    }

    pub(super) fn set_status(&mut self, id: NodeId, status: NodeStatus) {
        if let Some(node) = self.node_mut(id) {
            node.status = status;
        }
    }

    pub(super) fn close(&mut self, id: NodeId, status: NodeStatus, now: Timestamp) {
        let Some(node) = self.node_mut(id) else { return };
        node.status = status;
        node.ended = Some(now);
        match &mut node.kind {
            NodeKind::Answer(answer) if answer.outcome.is_none() => {
                (answer.stream, answer.outcome) = (None, Some(AnswerOutcome::Abandoned));
            }
            NodeKind::Stage(stage) => {
                stage.asking = None;
                return;
            }
            NodeKind::Answer(_) | NodeKind::Budget(_) => {}
            NodeKind::Pause { .. } => {
                self.pause = self.pause.filter(|pause| *pause != id);
                return;
            }
            _ => return,
        }
        let path = node.path.clone();
        if self.open.get(&path) == Some(&id) {
            self.open.remove(&path);
        }
    }

    /// Closes all open nodes below a node that ends.
    pub(super) fn close_below(&mut self, id: NodeId, status: NodeStatus, now: Timestamp) {
        let open = |child: &NodeId| Some((*child, self.node(*child)?.status)).filter(|(_, status)| status.is_open());
        let open: Vec<_> = self.children(id).iter().filter_map(open).collect();
        for (child, was) in open {
            if was == NodeStatus::NotStarted && self.children(child).is_empty() {
                self.close(child, NodeStatus::Skipped, now);
            } else {
                self.close_below(child, status, now);
                self.close(child, status, now);
            }
        }
    }

    /// Finds the open stage of a brain; the node itself if it is not a brain.
    pub(super) fn stage_at_work(&self, id: NodeId) -> NodeId {
        let is_at_work = |child: &&NodeId| {
            let node = self.node(**child);
            node.is_some_and(|node| {
                matches!(node.kind, NodeKind::Stage(_))
                    && matches!(node.status, NodeStatus::Running | NodeStatus::Waiting)
            })
        };
        // Of several brains at the same time, none is the one at work.
        let is_group =
            matches!(self.node(id).map(|node| &node.kind), Some(NodeKind::Stage(stage)) if stage.group.is_some());
        match self.children(id).iter().find(is_at_work).filter(|_| !is_group) {
            Some(stage) => self.stage_at_work(*stage),
            None => id,
        }
    }
}

impl StageNode {
    pub(super) fn new(name: &str, stage: StageKind, arms: &[ArmShape]) -> Self {
        Self {
            name: name.to_owned(),
            arms: arms.iter().map(|arm| arm.name.clone()).collect(),
            stage,
            brain: None,
            attempt: 0,
            arm: None,
            group: None,
            stopped: None,
            error: None,
            waited: None,
            duration: None,
            hidden: false,
            iteration: None,
            max_iterations: None,
            outcome: None,
            usage: None,
            limit: None,
            asking: None,
            policy: BatchPolicy::default(),
        }
    }
}
