//! A run as a terminal shows it: its [`Timeline`], the time, and what has scrolled away.
//!
//! A [`View`] grows by [`View::apply`] (events), [`View::apply_delta`] (what streams between them) and [`View::tick`] (time
//! passes). It draws nothing; [`layout`](super::layout) turns it into lines. The same events always give the same view, live or
//! in replay.

use std::collections::HashMap;
use std::sync::Arc;

use positronic_core::prices::PriceTable;
use positronic_core::projection::timeline::{
    AnswerNode, AnswerOutcome, Ending, Node, NodeId, NodeKind, NodeStatus, StageNode, Timeline, WidgetNode,
};
use positronic_core::record::{
    Delta, Event, EventKind, LimitKind, LimitReached, LoopOutcome, Path, Segment, Speaker, StageKind, Timestamp,
};

use super::model_routing::routing_summary;
use super::shown_answer::ShownAnswer;

/// The root brain's node.
pub(crate) const ROOT: NodeId = NodeId::ROOT;

/// A shown run.
#[derive(Debug, Clone, Default)]
pub(crate) struct View {
    pub(crate) timeline: Timeline,
    pub(crate) now: Timestamp,
    /// The first child of each node that is still laid out.
    from: HashMap<NodeId, NodeId>,
    /// Widgets that have scrolled away, each with the index of the version that it showed.
    fixed: HashMap<NodeId, usize>,
    /// Notes of the command below nodes.
    notes: HashMap<NodeId, Vec<String>>,
}

impl View {
    /// Creates the view of a run without events.
    #[must_use]
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Creates the view of a log, at a time unless the run has ended.
    pub(crate) fn replay(log: &[Arc<Event>], now: Timestamp) -> Self {
        Self::new().with(log, now)
    }

    /// Applies a log, and advances the time unless the run has ended.
    pub(crate) fn with(mut self, log: &[Arc<Event>], now: Timestamp) -> Self {
        log.iter().for_each(|event| self.apply(event));
        if !self.is_ended() {
            self.tick(now);
        }
        self
    }

    /// Tracks which nodes events change.
    pub(crate) fn track_changes(self) -> Self {
        Self { timeline: self.timeline.track_changes(), ..self }
    }

    /// Calculates costs with these prices.
    #[must_use]
    pub(crate) fn priced(self, prices: Option<PriceTable>) -> Self {
        let Some(prices) = prices else { return self };
        Self { timeline: self.timeline.priced(Arc::new(prices)), ..self }
    }

    /// Applies the next event of the run.
    pub(crate) fn apply(&mut self, event: &Event) {
        self.tick(event.at);
        for (id, text) in self.reruns(event) {
            self.notes.entry(id).or_default().push(text.to_owned());
        }
        self.timeline.apply(event);
    }

    /// Lists the steps that run again from an event on, which is a claim: a worker before has begun them, and they have no outcome.
    pub(crate) fn reruns(&self, event: &Event) -> Vec<(NodeId, &'static str)> {
        if !matches!(event.kind, EventKind::RunClaimed { .. }) {
            return Vec::new();
        }
        let text = if self.timeline.worker.is_some() { "run again after a crash" } else { "run again" };
        let is_step = |node: &&Node| {
            matches!(&node.kind, NodeKind::Stage(stage) if stage.stage == StageKind::Step)
                && node.status == NodeStatus::Running
        };
        self.timeline.nodes().filter(is_step).map(|node| (node.id, text)).collect()
    }

    /// Applies a delta.
    pub(crate) fn apply_delta(&mut self, delta: &Delta) {
        self.timeline.apply_delta(delta);
    }

    /// Advances the time of spinners, durations and countdowns.
    pub(crate) fn tick(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
    }

    /// Returns whether the run has ended.
    #[must_use]
    pub(crate) fn is_ended(&self) -> bool {
        self.timeline.ending().is_some()
    }

    pub(crate) fn currency(&self) -> Option<&str> {
        self.timeline.currency.as_deref()
    }

    pub(crate) fn node(&self, id: NodeId) -> Option<&Node> {
        self.timeline.node(id)
    }

    /// Lists the nodes that are laid out below a node, in order of their start: those of a loop's iterations count as the
    /// loop's own; nodes without lines, and those that scrolled away long ago, are left out.
    pub(crate) fn children(&self, id: NodeId) -> Vec<NodeId> {
        let from = self.from.get(&id).copied().unwrap_or(ROOT);
        let is_loop = self.node(id).is_some_and(is_loop);
        let mut shown = Vec::new();
        for child in self.timeline.children(id).iter().rev() {
            let iteration = self.node(*child).filter(|node| matches!(node.kind, NodeKind::Iteration { .. }));
            match iteration {
                Some(iteration) => shown.extend(iteration.children().iter().filter(|child| **child >= from)),
                None if *child >= from => shown.push(*child),
                None => {}
            }
            // Nodes before an iteration have no later children.
            if *child < from && (iteration.is_some() || !is_loop) {
                break;
            }
        }
        shown.retain(|child| self.node(*child).is_some_and(|node| self.leaves_a_line(node)));
        shown.sort_unstable();
        shown
    }

    fn leaves_a_line(&self, node: &Node) -> bool {
        match &node.kind {
            // What a guard or a plugin makes of it has a line.
            NodeKind::Answer(answer) if is_asked_in_loop(&self.timeline, node, answer) => {
                matches!(answer.outcome, Some(AnswerOutcome::Failed { .. }))
            }
            NodeKind::Answer(answer) => is_shown(answer),
            NodeKind::Message { from, opening, .. } => !(*opening && *from == Speaker::Engine),
            NodeKind::Widget(widget) => self.widget(node.id, widget).is_some(),
            NodeKind::Limit(LimitReached { kind, of, .. }) => *kind != LimitKind::Iterations || of.is_some(),
            NodeKind::Stopped { .. }
            | NodeKind::PluginFailure { .. }
            | NodeKind::Trigger { .. }
            | NodeKind::ChildRun(_)
            | NodeKind::Pause { .. }
            | NodeKind::Migration { .. }
            | NodeKind::ClaimRefused { .. } => false,
            _ => true,
        }
    }

    /// Renders a path for people: its stages and calls from the outside in.
    pub(crate) fn trail(&self, path: &Path) -> String {
        self.timeline.trail(path).join(" › ")
    }

    /// Returns the innermost open loop with its iteration.
    pub(crate) fn at_work(&self) -> Option<(&str, u32)> {
        self.timeline.nodes().rev().filter(|node| node.status.is_open()).find_map(|node| match &node.kind {
            NodeKind::Stage(stage) => Some((stage.name.as_str(), stage.iteration?)),
            _ => None,
        })
    }

    /// Returns the request that a stage waits for, and since when.
    pub(crate) fn asking(&self, stage: &StageNode) -> Option<(&AnswerNode, Timestamp)> {
        let node = self.node(stage.asking?)?;
        match &node.kind {
            NodeKind::Answer(answer) => Some((answer, node.started?)),
            _ => None,
        }
    }

    /// Returns the widget to show at a node, and whether it updates one that scrolled away; `None` if another node shows it.
    pub(crate) fn widget<'a>(&'a self, id: NodeId, widget: &'a WidgetNode) -> Option<(&'a str, bool)> {
        let of = |id: NodeId| match &self.node(id)?.kind {
            NodeKind::Widget(widget) => Some(&**widget),
            _ => None,
        };
        let first_id = widget.first.unwrap_or(id);
        let first = of(first_id)?;
        let row: Vec<NodeId> = std::iter::once(first_id).chain(first.replaced_by.iter().copied()).collect();
        let mut place = 0;
        loop {
            let at = *row.get(place)?;
            let fixed = self.fixed.get(&at).copied();
            if at == id {
                let shown = of(*row.get(fixed.unwrap_or(row.len() - 1))?)?;
                return Some((&shown.output.fallback, place > 0 || first.output.replaces.is_some()));
            }
            place = fixed? + 1;
        }
    }

    /// Records that a node has scrolled away.
    pub(crate) fn fix(&mut self, id: NodeId) {
        if let Some(Node { kind: NodeKind::Widget(widget), .. }) = self.node(id) {
            let first = widget.first.and_then(|first| self.node(first));
            let row = match first.map(|first| &first.kind) {
                Some(NodeKind::Widget(first)) => first.replaced_by.len(),
                _ => widget.replaced_by.len(),
            };
            self.fixed.entry(id).or_insert(row);
        }
    }

    /// Drops children of open nodes before the last one that scrolled away.
    pub(crate) fn forget(&mut self, gone: impl Fn(NodeId) -> bool) {
        let mut at = ROOT;
        loop {
            let children = self.children(at);
            let known = children.iter().take_while(|child| gone(**child)).count();
            let Some(last) = known.checked_sub(1).and_then(|last| children.get(last)) else { return };
            self.from.insert(at, *last);
            at = *last;
        }
    }

    /// Adds a note of the command to the node of a file, given the path of its event.
    pub(crate) fn note(&mut self, path: &Path, text: String) {
        if let Some(id) = self.with_files(path).map(|node| node.id) {
            self.notes.entry(id).or_default().push(text);
        }
    }

    /// Returns the last node at a path that has files: a message, an answer, or a tool's file.
    pub(crate) fn with_files(&self, path: &Path) -> Option<&Node> {
        self.timeline.nodes().rev().find(|node| {
            let has_files = match &node.kind {
                NodeKind::File { .. } => true,
                NodeKind::Answer(answer) => answer.files().next().is_some(),
                NodeKind::Message { files, .. } => !files.is_empty(),
                _ => false,
            };
            has_files && node.path == *path
        })
    }

    pub(crate) fn notes(&self, id: NodeId) -> &[String] {
        self.notes.get(&id).map_or(&[], Vec::as_slice)
    }

    /// Returns the activity at a node or below it: work, or only waiting.
    pub(crate) fn is_waiting(&self, id: NodeId) -> bool {
        let (active, waiting) = self.activity(id);
        waiting && !active
    }

    fn activity(&self, id: NodeId) -> (bool, bool) {
        let Some(node) = self.node(id) else { return (false, false) };
        match node.status {
            NodeStatus::Waiting => return (false, true),
            NodeStatus::Running => {}
            _ => return (false, false),
        }
        let below = self
            .children(id)
            .into_iter()
            .map(|child| self.activity(child))
            .fold((false, false), |(active, waiting), (a, w)| (active || a, waiting || w));
        let own = match &node.kind {
            NodeKind::Stage(stage) => stage.asking.is_some() || stage.stage.is_leaf(),
            NodeKind::Call(call) => call.brain.is_none(),
            NodeKind::Brain(_) => false,
            _ => true,
        };
        (below.0 || own, below.1)
    }
}

fn is_loop(node: &Node) -> bool {
    matches!(&node.kind, NodeKind::Stage(stage) if stage.stage.has_iterations())
}

/// Returns whether a guard or a plugin of a loop has asked it, and not a step or a prompt, whose questions have paths of the same form.
pub(super) fn is_asked_in_loop(timeline: &Timeline, node: &Node, answer: &AnswerNode) -> bool {
    let asker = node.path.parent().and_then(|asker| timeline.at(&asker));
    answer.question.is_some() && (matches!(node.path.last(), Some(Segment::Question(..))) || asker.is_some_and(is_loop))
}

/// Returns whether an answer has lines, now or while it streams.
fn is_shown(answer: &AnswerNode) -> bool {
    match &answer.outcome {
        None => answer.stream.is_some(),
        Some(AnswerOutcome::Answered(answer)) => {
            routing_summary(&answer.metadata).is_some() || !ShownAnswer::of(&answer.parts).is_empty()
        }
        Some(AnswerOutcome::Abandoned) => false,
        Some(_) => true,
    }
}

impl View {
    /// Returns whether a stage shows a failure with this message.
    pub(crate) fn has_shown_failure(&self, message: &str) -> bool {
        self.timeline.nodes().any(|node| match &node.kind {
            NodeKind::Stage(stage) => failure(stage).is_some_and(|shown| shown == message),
            _ => false,
        })
    }
}

/// Returns why a stage failed.
pub(crate) fn failure(stage: &StageNode) -> Option<&str> {
    match (&stage.outcome, stage.brain.as_ref().and_then(|brain| brain.ending.as_ref())) {
        (Some(LoopOutcome::Failed { message, .. } | LoopOutcome::Stopped { message, .. }), _) => Some(message),
        (_, Some(Ending::Failed(failure))) => Some(&failure.message),
        _ => None,
    }
}
