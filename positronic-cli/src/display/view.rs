//! What is known about a run, as far as it is shown: a tree of stages, calls, texts and notes.
//!
//! A [`View`] grows by [`View::fold`] (events), [`View::delta`] (what streams between them) and [`View::tick`] (time
//! passes). It decides nothing and draws nothing; [`layout`](super::layout) turns it into lines. The same events
//! always give the same view, live or in replay.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use positronic_core::projection::{CallCost, Cost, Spent};
use positronic_core::record::{
    CODE, CustomOutput, Event, LoopOutcome, Path, PriceTable, PublicId, ResponseMetadata, Segment, StageKind,
    Timestamp, ToolResult, Usage, WaitSpec, WidgetOutput,
};
use serde_json::Value;

/// Names a node of the tree; ids are never used twice within a view.
pub(crate) type NodeId = usize;

/// The root brain's node.
pub(crate) const ROOT: NodeId = 0;

/// A run as it is shown.
#[derive(Debug, Clone)]
pub struct View {
    pub(crate) nodes: Vec<Node>,
    pub(crate) places: HashMap<Path, NodeId>,
    /// Where each widget stands.
    pub(crate) widgets: HashMap<PublicId, NodeId>,
    pub(crate) now: Timestamp,
    pub(crate) usage: Usage,
    /// How often a model has answered.
    pub(crate) answers: u64,
    /// What models cost, where somebody knows.
    pub(crate) prices: Option<Arc<PriceTable>>,
    /// What the answers cost.
    pub(crate) spent: Spent,
    /// The currency in which limits of money count, once an answer has said it.
    pub(crate) currency: Option<String>,
    pub(crate) paused: bool,
    pub(crate) end: Option<End>,
    /// The loops whose records people are not shown.
    pub(crate) hidden: HashSet<NodeId>,
    /// Whether the run was begun with a message.
    pub(crate) opened: bool,
}

/// One node of the tree.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) path: Path,
    pub(crate) children: Vec<NodeId>,
    pub(crate) status: Status,
    pub(crate) started: Option<Timestamp>,
    pub(crate) ended: Option<Timestamp>,
    pub(crate) kind: NodeKind,
}

/// Where a node stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// It has not begun.
    Ahead,
    /// It is at work.
    Running,
    /// It waits for somebody.
    Waiting,
    /// It ended well.
    Done,
    /// It failed.
    Failed,
    /// It was ended from outside, or its outcome is unknown.
    Cut,
    /// A limit ended it.
    Limited,
    /// It was never reached.
    Skipped,
}

impl Status {
    pub(crate) const fn is_open(self) -> bool {
        matches!(self, Self::Ahead | Self::Running | Self::Waiting)
    }
}

/// What a node is.
#[derive(Debug, Clone)]
pub(crate) enum NodeKind {
    /// The root brain.
    Root { title: String, options: Value },
    /// A stage of a brain.
    Stage(StageNode),
    /// A call of a tool, or of a brain.
    Call(Box<CallNode>),
    /// Something the model said.
    Text { part: u32, attempt: Attempt, text: String, flow: Flow },
    /// A call whose arguments are still streaming.
    Draft { index: u32, attempt: Attempt, tool: String, text: String },
    /// Something a person or the engine said to a loop.
    Message { text: String, engine: bool },
    /// A remark of the engine.
    Note { text: String, warn: bool },
    /// Something failed and is tried again.
    Retry { attempt: u32, message: String, due: Timestamp },
    /// A file that a tool made.
    File { name: String, media_type: String, size: u64, uri: String },
    /// A widget that a tool made.
    Widget(WidgetNode),
    /// An output of an application's own type.
    Custom(CustomOutput),
}

/// A widget, or what has taken its place.
#[derive(Debug, Clone)]
pub(crate) struct WidgetNode {
    pub(crate) text: String,
    /// Whether it takes the place of an output that cannot be repainted any more.
    pub(crate) updates: bool,
    /// Whether it has scrolled away, so that nothing can take its place.
    pub(crate) fixed: bool,
}

/// Whether a text still grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    /// The final text.
    Whole,
    /// An answer that is streaming.
    Streaming,
    /// Thoughts that are streaming; they are not kept.
    Thinking,
    /// The reason of a decision.
    Reason,
}

/// A stage.
#[derive(Debug, Clone)]
pub(crate) struct StageNode {
    pub(crate) name: String,
    pub(crate) kind: StageKind,
    /// For a loop: its iteration, from 0.
    pub(crate) iteration: Option<u32>,
    /// For a loop: how many iterations it may have.
    pub(crate) max_iterations: Option<u32>,
    pub(crate) outcome: Option<LoopOutcome>,
    /// For a loop: the limit that ended it.
    pub(crate) limit: Option<String>,
    pub(crate) usage: Option<Usage>,
    pub(crate) asking: Option<Asking>,
    pub(crate) error: Option<String>,
}

/// Which try of a request a piece belongs to, and which take of it.
pub(crate) type Attempt = (u32, u32);

/// A request to a model that is under way.
#[derive(Debug, Clone)]
pub(crate) struct Asking {
    pub(crate) path: Path,
    pub(crate) model: String,
    pub(crate) since: Timestamp,
}

/// A call.
#[derive(Debug, Clone)]
pub(crate) struct CallNode {
    pub(crate) tool: String,
    pub(crate) arguments: Value,
    pub(crate) brain: Option<String>,
    pub(crate) phase: Phase,
    pub(crate) decided: Option<String>,
    pub(crate) progress: Option<String>,
    /// Microseconds the tool ran.
    pub(crate) duration: Option<u64>,
}

/// Where a call stands.
#[derive(Debug, Clone)]
pub(crate) enum Phase {
    Queued,
    Pending { reason: String, expires: Option<Timestamp> },
    Running,
    Waiting { waits: Vec<WaitSpec> },
    Done(ToolResult),
}

/// How the run ended.
#[derive(Debug, Clone)]
pub(crate) enum End {
    Completed { result: Value },
    Failed { message: String },
    Cancelled { by: Option<String>, reason: Option<String> },
}

impl Default for View {
    fn default() -> Self {
        Self::new()
    }
}

impl View {
    /// Makes the view of a run that has not begun.
    #[must_use]
    pub fn new() -> Self {
        let root = Node {
            path: Path::root(),
            children: Vec::new(),
            status: Status::Ahead,
            started: None,
            ended: None,
            kind: NodeKind::Root { title: String::new(), options: Value::Null },
        };
        Self {
            nodes: vec![root],
            places: HashMap::from([(Path::root(), ROOT)]),
            widgets: HashMap::new(),
            now: Timestamp::default(),
            usage: Usage::default(),
            answers: 0,
            prices: None,
            spent: Spent::default(),
            currency: None,
            paused: false,
            end: None,
            hidden: HashSet::new(),
            opened: false,
        }
    }

    /// Reckons what models cost with these prices.
    #[must_use]
    pub fn priced(self, prices: PriceTable) -> Self {
        Self { prices: Some(Arc::new(prices)), ..self }
    }

    /// Adds what an answer used and cost. What code said in the place of a model is no answer of one.
    pub(crate) fn count(&mut self, event: &Event, metadata: &ResponseMetadata) {
        self.usage += metadata.usage;
        if metadata.provider == CODE {
            return;
        }
        self.answers += 1;
        if let Some(call) = self.prices.as_ref().and_then(|prices| CallCost::of(event, prices)) {
            self.spent += &call;
        }
    }

    /// Writes what the answers cost so far, in a few words.
    pub(crate) fn cost(&self) -> String {
        let currency = self.prices.as_ref().map_or("", |prices| prices.currency.as_str());
        match self.spent.total() {
            Cost::Known(cost) if self.spent.calls > 0 => format!("cost {cost} {currency}"),
            Cost::Unknown if self.spent.unpriced < self.spent.calls => {
                format!("cost {} {currency} and more", self.spent.known)
            }
            Cost::Known(_) | Cost::Unknown => "cost unknown".to_owned(),
        }
    }

    /// Lets time pass: spinners turn, durations and countdowns move.
    pub fn tick(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
    }

    /// Says whether the run has ended.
    #[must_use]
    pub const fn is_ended(&self) -> bool {
        self.end.is_some()
    }

    pub(crate) fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id)
    }

    pub(crate) fn children(&self, id: NodeId) -> &[NodeId] {
        self.node(id).map_or(&[], |node| node.children.as_slice())
    }

    /// Finds the node of a brain, stage or call.
    pub(crate) fn place(&self, path: &Path) -> Option<NodeId> {
        self.places.get(path).copied()
    }

    /// Finds the innermost node around a path, the path's own node included.
    pub(crate) fn around(&self, path: &Path) -> NodeId {
        let mut path = Some(path.clone());
        while let Some(at) = path {
            if let Some(id) = self.place(&at) {
                return id;
            }
            path = at.parent();
        }
        ROOT
    }

    pub(crate) fn stage_mut(&mut self, id: NodeId) -> Option<&mut StageNode> {
        match self.nodes.get_mut(id)? {
            Node { kind: NodeKind::Stage(stage), .. } => Some(stage),
            _ => None,
        }
    }

    pub(crate) fn call_mut(&mut self, id: NodeId) -> Option<&mut CallNode> {
        match self.nodes.get_mut(id)? {
            Node { kind: NodeKind::Call(call), .. } => Some(call),
            _ => None,
        }
    }

    pub(crate) fn call_at(&self, path: &Path) -> Option<&CallNode> {
        match self.place(path).and_then(|id| self.node(id)) {
            Some(Node { kind: NodeKind::Call(call), .. }) => Some(call),
            _ => None,
        }
    }

    /// Adds a node below `parent`. Brains, stages and calls are found again by their path.
    pub(crate) fn add(&mut self, parent: NodeId, path: &Path, status: Status, kind: NodeKind) -> NodeId {
        let id = self.nodes.len();
        if matches!(kind, NodeKind::Stage(_) | NodeKind::Call(_)) {
            self.places.insert(path.clone(), id);
        }
        let started = (status == Status::Running).then_some(self.now);
        let node = Node { path: path.clone(), children: Vec::new(), status, started, ended: None, kind };
        self.nodes.push(node);
        if let Some(parent) = self.nodes.get_mut(parent) {
            parent.children.push(id);
        }
        id
    }

    /// Shows a widget: in the place of the one that it replaces, as long as that can be repainted, whichever loop it is of.
    pub(crate) fn widget(&mut self, path: &Path, output: &PublicId, widget: &WidgetOutput) {
        let replaced = widget.replaces.as_ref().and_then(|old| self.widgets.get(old)).copied();
        let place = match replaced.and_then(|place| Some((place, self.nodes.get_mut(place)?))) {
            Some((place, Node { kind: NodeKind::Widget(shown), .. })) if !shown.fixed => {
                shown.text.clone_from(&widget.fallback);
                place
            }
            _ => {
                let (text, updates) = (widget.fallback.clone(), widget.replaces.is_some());
                let node = NodeKind::Widget(WidgetNode { text, updates, fixed: false });
                let place = self.add(self.around(path), path, Status::Done, node);
                // All ids of the old place name the new one from now on.
                self.widgets.values_mut().filter(|old| Some(**old) == replaced).for_each(|old| *old = place);
                place
            }
        };
        self.widgets.extend(widget.replaces.iter().chain([output]).map(|id| (id.clone(), place)));
    }

    /// Notes that a node has scrolled away, and stays as it is.
    pub(crate) fn fix(&mut self, id: NodeId) {
        if let Some(Node { kind: NodeKind::Widget(widget), .. }) = self.nodes.get_mut(id) {
            widget.fixed = true;
        }
    }

    /// Forgets children that nobody will ask for again: of every open node, those before the last one that `gone` knows.
    pub(crate) fn forget(&mut self, gone: impl Fn(NodeId) -> bool) {
        let mut at = ROOT;
        while let Some(node) = self.nodes.get_mut(at) {
            let known = node.children.iter().take_while(|child| gone(**child)).count();
            let Some(last) = known.checked_sub(1) else { return };
            let forgotten: Vec<NodeId> = node.children.drain(..last).collect();
            let Some(next) = node.children.first().copied() else { return };
            for id in forgotten {
                if let Some(node) = self.nodes.get_mut(id) {
                    node.children = Vec::new();
                    node.kind = NodeKind::Note { text: String::new(), warn: false };
                }
            }
            at = next;
        }
    }

    pub(crate) fn begin(&mut self, id: NodeId) {
        let now = self.now;
        if let Some(node) = self.nodes.get_mut(id) {
            node.status = Status::Running;
            node.started.get_or_insert(now);
        }
    }

    pub(crate) fn close(&mut self, id: NodeId, status: Status) {
        let now = self.now;
        if let Some(node) = self.nodes.get_mut(id) {
            node.status = status;
            node.ended = Some(now);
        }
    }

    /// Closes everything below a node that is still open, since the node has ended.
    pub(crate) fn close_below(&mut self, id: NodeId, status: Status) {
        for child in self.children(id).to_vec() {
            match self.node(child).map(|node| node.status) {
                Some(Status::Ahead) => self.close(child, Status::Skipped),
                Some(Status::Running | Status::Waiting) => {
                    self.close_below(child, status);
                    self.close(child, status);
                }
                _ => {}
            }
        }
    }

    /// Takes away what had streamed for a request.
    pub(crate) fn drop_streamed(&mut self, path: &Path) {
        self.drop_streamed_but(path, None);
    }

    /// Takes away what had streamed for a request, but for one attempt.
    pub(crate) fn drop_streamed_but(&mut self, path: &Path, keep: Option<Attempt>) {
        let parent = self.around(path);
        let stale = |node: &Node| match &node.kind {
            NodeKind::Text { flow: Flow::Streaming | Flow::Thinking, attempt, .. }
            | NodeKind::Draft { attempt, .. } => node.path == *path && keep != Some(*attempt),
            _ => false,
        };
        let children: Vec<NodeId> =
            self.children(parent).iter().copied().filter(|child| !self.node(*child).is_some_and(stale)).collect();
        if let Some(parent) = self.nodes.get_mut(parent) {
            parent.children = children;
        }
    }

    /// Names where something happens for people: the stages and calls on the way, from the outside in.
    pub(crate) fn trail(&self, path: &Path) -> String {
        let mut names = Vec::new();
        let mut at = Path::root();
        for segment in path.segments() {
            match segment {
                Segment::Stage(name) => {
                    at = at.stage(name);
                    names.push(name.to_owned());
                }
                Segment::Call(iteration, index) => {
                    at = at.call(iteration, index);
                    names.push(
                        self.call_at(&at).map_or_else(|| format!("{iteration}.{index}"), |call| call.tool.clone()),
                    );
                }
                Segment::Iteration(_) => {}
            }
        }
        names.join(" › ")
    }

    /// Names the innermost loop that is open, with its iteration.
    pub(crate) fn at_work(&self) -> Option<(&str, u32)> {
        self.nodes.iter().rev().find_map(|node| match &node.kind {
            NodeKind::Stage(StageNode { name, iteration: Some(iteration), .. }) if node.status.is_open() => {
                Some((name.as_str(), *iteration))
            }
            _ => None,
        })
    }

    /// Says what is going on at a node or below it: work, or only waiting.
    pub(crate) fn is_waiting(&self, id: NodeId) -> bool {
        let (active, waiting) = self.activity(id);
        waiting && !active
    }

    fn activity(&self, id: NodeId) -> (bool, bool) {
        let Some(node) = self.node(id) else { return (false, false) };
        match node.status {
            Status::Waiting => return (false, true),
            Status::Running => {}
            _ => return (false, false),
        }
        let below = node
            .children
            .iter()
            .map(|child| self.activity(*child))
            .fold((false, false), |(active, waiting), (a, w)| (active || a, waiting || w));
        let own = match &node.kind {
            NodeKind::Stage(stage) => stage.asking.is_some() || (stage.kind == StageKind::Step),
            NodeKind::Call(call) => call.brain.is_none(),
            _ => true,
        };
        let own = own && !matches!(node.kind, NodeKind::Root { .. });
        (below.0 || own, below.1)
    }
}
