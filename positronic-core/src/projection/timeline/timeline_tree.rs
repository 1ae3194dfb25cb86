//! The tree: its nodes, lookups, and JSON.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde::Serialize;

use super::detail::{BrainNode, CallNode, Ending, StageNode};
use super::node::{Node, NodeId, NodeKind};
use crate::prices::PriceTable;
use crate::projection::{Costs, Spent};
use crate::record::{Event, FileRef, Path, PublicId, Segment, Seq, Start, Timestamp, Usage};

/// A run as people see it; the module documentation lists which event begins which node.
///
/// ```
/// use positronic_core::model::scripted::{Reply, ScriptedModel};
/// use positronic_core::prelude::*;
/// use positronic_core::projection::timeline::{NodeKind, Timeline};
/// use positronic_core::record::Path;
/// use positronic_core::testing::Test;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let greeter = brain("Greeter").r#loop("Greet", |cx| cx.system("Greet.").input("Hello!"));
/// let story = Test::new(ScriptedModel::new([Reply::text("Good morning.")])).run(&greeter, ()).await;
///
/// let timeline = story.timeline();
/// let greet = timeline.at(&Path::parse("Greet").unwrap()).unwrap();
/// let NodeKind::Stage(stage) = &greet.kind else { panic!("{greet:?}") };
/// assert_eq!(stage.iteration, Some(0));
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Timeline {
    /// The number of the last event that was applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<Seq>,
    /// When the last event was appended.
    pub last: Timestamp,
    /// How the run was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Start>,
    /// The worker that has claimed the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// The tokens of all answers.
    pub usage: Usage,
    /// The number of answers of models, without those scripted in code.
    pub answers: u64,
    /// The currency of limits of money, once the log has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// The usage and cost of the answers by the price table; `None` without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub costs: Option<Costs>,
    pub(super) nodes: Vec<Node>,
    #[serde(skip)]
    pub(super) spent: Spent,
    #[serde(skip)]
    pub(super) prices: Option<Arc<PriceTable>>,
    /// The nodes of brains, stages, iterations and calls.
    #[serde(skip)]
    pub(super) places: HashMap<Path, NodeId>,
    /// The open requests to models and the open budget requests, by path.
    #[serde(skip)]
    pub(super) open: HashMap<Path, NodeId>,
    /// The first node of each widget's row of replacements.
    #[serde(skip)]
    pub(super) widgets: HashMap<PublicId, NodeId>,
    /// The updates that their plugins have neither taken nor refused.
    #[serde(skip)]
    pub(super) updates: HashMap<Seq, NodeId>,
    #[serde(skip)]
    pub(super) pause: Option<NodeId>,
    /// The nodes that began or changed since the last [`Timeline::take_changes`]; `None` while they are not tracked.
    #[serde(skip)]
    pub(super) changed: Option<BTreeSet<NodeId>>,
}

impl Default for Timeline {
    fn default() -> Self {
        Self::new()
    }
}

impl Timeline {
    /// Creates the timeline of an empty log.
    #[must_use]
    pub fn new() -> Self {
        let mut timeline = Self {
            seq: None,
            last: Timestamp::default(),
            start: None,
            worker: None,
            usage: Usage::default(),
            answers: 0,
            currency: None,
            costs: None,
            nodes: Vec::new(),
            spent: Spent::default(),
            prices: None,
            places: HashMap::new(),
            open: HashMap::new(),
            widgets: HashMap::new(),
            updates: HashMap::new(),
            pause: None,
            changed: None,
        };
        timeline.put_root();
        timeline
    }

    /// Folds a log or a prefix of one.
    #[must_use]
    pub fn of<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut timeline = Self::new();
        events.into_iter().for_each(|event| timeline.apply(event));
        timeline
    }

    /// Computes costs by a price table, from the next event on.
    #[must_use]
    pub fn priced(mut self, prices: Arc<PriceTable>) -> Self {
        self.costs.get_or_insert_with(|| Costs {
            currency: prices.currency.clone(),
            as_of: prices.as_of.clone(),
            limits_in: self.currency.clone(),
            calls: Vec::new(),
        });
        self.prices = Some(prices);
        self
    }

    /// Tracks from now on which nodes begin or change, for [`Timeline::take_changes`].
    #[must_use]
    pub fn track_changes(mut self) -> Self {
        self.changed.get_or_insert_default();
        self
    }

    /// Returns the ids of the nodes that began or changed since the last call, in order. A view that replaces these nodes
    /// shows the same as one that is built anew. None without [`Timeline::track_changes`].
    ///
    /// ```
    /// use positronic_core::projection::timeline::Timeline;
    /// # fn example(events: &[positronic_core::record::Event]) {
    /// let mut timeline = Timeline::new().track_changes();
    /// for event in events {
    ///     timeline.apply(event);
    ///     let changed: Vec<_> = timeline.take_changes().into_iter().filter_map(|id| timeline.node(id)).collect();
    ///     println!("{}", serde_json::to_string(&changed).unwrap());
    /// }
    /// # }
    /// ```
    pub fn take_changes(&mut self) -> Vec<NodeId> {
        self.changed.as_mut().map(std::mem::take).unwrap_or_default().into_iter().collect()
    }

    /// Returns a node.
    #[must_use]
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id.index())
    }

    /// Returns the nodes below a node, in the order in which they began.
    #[must_use]
    pub fn children(&self, id: NodeId) -> &[NodeId] {
        self.node(id).map_or(&[], Node::children)
    }

    /// Iterates over all nodes in the order of their ids.
    #[must_use]
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = &Node> {
        self.nodes.iter()
    }

    /// Returns the node of a brain, a stage, an iteration or a call.
    #[must_use]
    pub fn at(&self, path: &Path) -> Option<&Node> {
        self.places.get(path).and_then(|id| self.node(*id))
    }

    /// Returns the stage with this path.
    #[must_use]
    pub fn stage(&self, path: &Path) -> Option<&StageNode> {
        match &self.at(path)?.kind {
            NodeKind::Stage(stage) => Some(stage),
            _ => None,
        }
    }

    /// Returns the call with this path.
    #[must_use]
    pub fn call(&self, path: &Path) -> Option<&CallNode> {
        match &self.at(path)?.kind {
            NodeKind::Call(call) => Some(call),
            _ => None,
        }
    }

    /// Iterates over the calls in the order in which they were proposed.
    #[must_use]
    pub fn calls(&self) -> impl DoubleEndedIterator<Item = &CallNode> {
        self.nodes().filter_map(|node| match &node.kind {
            NodeKind::Call(call) => Some(&**call),
            _ => None,
        })
    }

    /// Returns the run's own brain; `None` before its start.
    #[must_use]
    pub fn brain(&self) -> Option<&BrainNode> {
        match self.node(NodeId::ROOT) {
            Some(Node { kind: NodeKind::Brain(brain), started: Some(_), .. }) => Some(brain),
            _ => None,
        }
    }

    /// Returns how the run ended.
    #[must_use]
    pub fn ending(&self) -> Option<&Ending> {
        self.brain()?.ending.as_ref()
    }

    /// Returns whether the run is paused.
    #[must_use]
    pub const fn is_paused(&self) -> bool {
        self.pause.is_some()
    }

    /// Returns the cost of the answers by the price table; all unknown without one.
    #[must_use]
    pub const fn spent(&self) -> &Spent {
        &self.spent
    }

    /// Lists the files that tools and models of the run made, in order; a file that a tool wrote again counts as its last
    /// version.
    #[must_use]
    pub fn files(&self) -> Vec<&FileRef> {
        let mut last: Vec<&FileRef> = Vec::new();
        for node in &self.nodes {
            match &node.kind {
                NodeKind::File { file, .. } => {
                    last.retain(|known| file.name != known.name);
                    last.push(file);
                }
                // Adapters name the pictures of each answer from 1 on.
                NodeKind::Answer(answer) => last.extend(answer.files()),
                _ => {}
            }
        }
        last
    }

    /// Returns the names of the stages and the called tools on the way to a path, from the outside in. A call
    /// that is not in the log is named by its number.
    #[must_use]
    pub fn trail(&self, path: &Path) -> Vec<String> {
        let (mut at, mut names) = (Path::root(), Vec::new());
        for segment in path.segments() {
            match segment {
                Segment::Stage(name) => {
                    at = at.stage(name);
                    names.push(name.to_owned());
                }
                Segment::Call(iteration, index) => {
                    at = at.call(iteration, index);
                    let named = match self.at(&at).map(|node| &node.kind) {
                        Some(NodeKind::Call(call)) => Some(call.tool.clone()),
                        Some(NodeKind::Stage(stage)) => Some(stage.name.clone()),
                        _ => None,
                    };
                    names.push(named.unwrap_or_else(|| format!("{iteration}.{index}")));
                }
                Segment::Iteration(_) | Segment::Question(..) => {}
            }
        }
        names
    }
}
