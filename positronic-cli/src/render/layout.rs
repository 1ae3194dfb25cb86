//! Layout of a [`View`] in blocks of lines.
//!
//! A node has a head, its children and a tail. A block is *settled* when it will never change again. A block that has
//! scrolled off a terminal cannot be repainted, so [`Scrolled`] remembers it and the layout leaves it out; a stage whose
//! head scrolled away while it was running gets a closing line.

use std::collections::HashMap;

use positronic_core::projection::timeline::NodeId;

use super::lines::NodeRenderer;
use super::style::{Line, Style};
use super::view::{ROOT, View};

/// Names a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum BlockId {
    Head(NodeId),
    Tail(NodeId),
}

/// Lines that belong together.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    pub(crate) id: BlockId,
    pub(crate) lines: Vec<Line>,
    /// The lines of the head of an unfinished node as it scrolls away.
    gone: Vec<Line>,
    /// Whether the block will never change again.
    pub(crate) settled: bool,
    /// Whether this block and all before it can scroll away.
    pub(crate) loose: bool,
}

impl Block {
    pub(crate) const fn node(&self) -> NodeId {
        match self.id {
            BlockId::Head(id) | BlockId::Tail(id) => id,
        }
    }

    /// Returns the lines as they scroll away.
    pub(crate) fn scrolled_lines(&self) -> &[Line] {
        if self.settled { &self.lines } else { &self.gone }
    }
}

/// The blocks that have scrolled away, and whether the node of each was still open.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scrolled(HashMap<BlockId, bool>);

impl Scrolled {
    pub(crate) fn add(&mut self, block: &Block) {
        self.0.insert(block.id, !block.settled);
    }

    /// Says whether a node has begun to scroll away.
    pub(crate) fn has_any(&self, id: NodeId) -> bool {
        self.has(BlockId::Head(id)) || self.has(BlockId::Tail(id))
    }

    pub(super) fn has(&self, id: BlockId) -> bool {
        self.0.contains_key(&id)
    }

    fn has_open(&self, id: NodeId) -> bool {
        self.0.get(&BlockId::Head(id)).copied().unwrap_or(false)
    }
}

/// Lays out all blocks that have not scrolled away.
pub(crate) fn blocks(view: &View, style: &Style, scrolled: &Scrolled) -> Vec<Block> {
    let mut layout = Layout::new(view, style, scrolled);
    layout.node(ROOT, 0);
    layout.blocks
}

pub(super) struct Layout<'a> {
    pub(super) renderer: NodeRenderer<'a>,
    pub(super) scrolled: &'a Scrolled,
    pub(super) blocks: Vec<Block>,
    /// Whether an earlier block cannot scroll away, so that none after it can.
    stuck: bool,
    /// Whether an empty line stands before the next block.
    pub(super) gap: bool,
}

impl<'a> Layout<'a> {
    pub(super) const fn new(view: &'a View, style: &'a Style, scrolled: &'a Scrolled) -> Self {
        Self { renderer: NodeRenderer { view, style }, scrolled, blocks: Vec::new(), stuck: false, gap: false }
    }

    pub(super) fn node(&mut self, id: NodeId, depth: usize) {
        let Some(node) = self.renderer.view.node(id) else { return };
        let children = self.renderer.view.children(id);
        let (open, parent) = (node.status.is_open(), !children.is_empty());
        let head = BlockId::Head(id);
        if !self.scrolled.has(head) {
            let gone = if open && parent { self.renderer.open_head(node, depth) } else { Vec::new() };
            let lines = self.renderer.head(id, node, depth);
            self.push(Block { id: head, lines, gone, settled: !open, loose: parent || !open });
        }
        for child in children {
            self.node(child, if id == ROOT { 0 } else { depth + 1 });
        }
        let tail = BlockId::Tail(id);
        if !self.scrolled.has(tail) {
            let lines = self.renderer.tail(id, node, depth, self.scrolled.has_open(id));
            self.push(Block { id: tail, lines, gone: Vec::new(), settled: !open, loose: !open });
        }
    }

    /// Adds lines that belong to a node and change until it is closed.
    pub(super) fn piece(&mut self, id: BlockId, lines: Vec<Line>, settled: bool) {
        if !self.scrolled.has(id) {
            self.push(Block { id, lines, gone: Vec::new(), settled, loose: settled });
        }
    }

    fn push(&mut self, mut block: Block) {
        self.stuck |= !block.loose;
        block.loose = !self.stuck;
        if !block.lines.is_empty() {
            if std::mem::take(&mut self.gap) {
                block.lines.insert(0, Line::default());
                block.gone.splice(0..0, (!block.gone.is_empty()).then(Line::default));
            }
            self.blocks.push(block);
        }
    }
}
