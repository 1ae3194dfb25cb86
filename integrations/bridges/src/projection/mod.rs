//! The fold of a run's log, and of its live deltas, to [items](Item) that people see.
//!
//! ```text
//! event of the log ──▶ apply ──▶ items      the same ones for each reader
//! live delta ────────▶ piece ──▶ items      only text and arguments before their event, which completes or discards them
//! ```
//!
//! Items of the log depend on nothing but the log. A delta only brings a piece of them earlier: the event of the answer sends
//! what the reader lacks, and discards what does not fit.

mod answers;
mod apply;
mod item;
mod open_brains;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use positronic_core::machine::RunState;
use positronic_core::record::{Path, RunId, Seq};
use positronic_server::extension::Viewer;
use serde_json::Value;

pub(crate) use apply::asks_for_text;
pub(crate) use item::{ApprovalOutcome, BrainOutcome, Item, Placed, TextKind};

/// Says which part of a state a browser sees: of the state of the brain with this title. `None` shows nothing.
pub(crate) type PublicState = Arc<dyn Fn(&str, &Value) -> Option<Value> + Send + Sync>;

/// The fold of a run.
pub(crate) struct Projection {
    run: RunId,
    viewer: Viewer,
    public_state: Option<PublicState>,
    state: RunState,
    /// The number of the event after the last one that is not about workers.
    next: Seq,
    /// The last public state.
    public: Option<Value>,
    /// The loops that are hidden from people.
    hidden: Vec<Path>,
    /// The requests to models that are questions of code, and not answers of a loop.
    questions: HashSet<Path>,
    /// The try of each request in flight.
    attempts: HashMap<Path, u32>,
    /// What was sent of the answers in flight.
    live: HashMap<Path, answers::LiveAnswer>,
    /// The question that each waiting call or stage asks.
    asked: HashMap<Path, apply::AskedQuestion>,
    /// How many brains have begun at each path.
    begun: HashMap<Path, u32>,
    /// The calls of loops, whose paths look like those of a group's brains.
    calls: HashSet<Path>,
    /// Those whose brain takes the dialogue over.
    handoffs: HashSet<Path>,
    /// What is open, in the order in which it began.
    open: Vec<Open>,
    items: Vec<Placed>,
}

/// A stage or a nested brain that is open.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Open {
    Stage { path: Path },
    Brain { path: Path, id: String, title: String },
}

impl Open {
    pub(crate) const fn path(&self) -> &Path {
        match self {
            Self::Stage { path } | Self::Brain { path, .. } => path,
        }
    }
}

impl fmt::Debug for Projection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Projection").field("run", &self.run).field("next", &self.state.next).finish_non_exhaustive()
    }
}

impl Projection {
    pub(crate) fn new(run: &RunId, viewer: Viewer, public_state: Option<PublicState>) -> Self {
        Self {
            run: run.clone(),
            viewer,
            public_state,
            state: RunState::default(),
            next: Seq(0),
            public: None,
            hidden: Vec::new(),
            questions: HashSet::new(),
            attempts: HashMap::new(),
            live: HashMap::new(),
            asked: HashMap::new(),
            begun: HashMap::new(),
            calls: HashSet::new(),
            handoffs: HashSet::new(),
            open: Vec::new(),
            items: Vec::new(),
        }
    }

    pub(crate) const fn run(&self) -> &RunId {
        &self.run
    }

    pub(crate) const fn viewer(&self) -> &Viewer {
        &self.viewer
    }

    /// Returns the state of the run as of the last event.
    pub(crate) const fn state(&self) -> &RunState {
        &self.state
    }

    /// Returns the number of the event after the last one that is not about workers, which depends only on what has happened.
    pub(crate) const fn next(&self) -> Seq {
        self.next
    }

    /// Returns the public state; `None` if the author shows none.
    pub(crate) const fn public(&self) -> Option<&Value> {
        self.public.as_ref()
    }

    /// Returns what is open, in the order in which it began.
    pub(crate) fn open(&self) -> &[Open] {
        &self.open
    }

    fn push(&mut self, path: &Path, item: Item) {
        let (brain, in_dialogue) = (self.brain_of(path), self.in_dialogue(path));
        self.items.push(Placed { brain, in_dialogue, item });
    }
}
