//! Live view: repaints the end of a terminal while a run continues.
//!
//! Only the end of the view is repainted; settled blocks that no longer fit scroll up and stay in the terminal's history. A
//! foot can stand below the view: the input of a chat, or a question. A chat shows one run after the other.

use std::collections::HashMap;
use std::io::{self, Write};

use crossterm::cursor::Show;
use crossterm::execute;
use crossterm::terminal::EnableLineWrap;
use positronic_core::prices::PriceTable;
use positronic_core::projection::timeline::NodeKind;
use positronic_core::record::{Delta, Event, Path, Timestamp};

use super::chat_layout::chat_layout;
use super::fit_height::fit;
use super::layout::{Block, BlockId, Scrolled, blocks};
use super::preview::preview;
use super::{Frame, Line, Painter, Style, Tone, View, sanitise, wrap};

/// Lays out the blocks that have not scrolled away.
type Blocks = fn(&View, &Style, &Scrolled) -> Vec<Block>;

/// Shows a view at the end of a terminal.
#[derive(Debug)]
pub(crate) struct Live<W: Write> {
    out: W,
    view: View,
    style: Style,
    scrolled: Scrolled,
    blocks: Blocks,
    foot: Frame,
    painter: Painter,
    /// The images that stand below blocks once these have scrolled away.
    images: HashMap<BlockId, Vec<Line>>,
    /// The columns and rows of the terminal.
    size: (usize, usize),
}

impl<W: Write> Live<W> {
    /// Creates a live view that writes to `out`, a terminal of `columns` and `rows`.
    pub(crate) fn new(out: W, style: Style, columns: usize, rows: usize) -> Self {
        let mut live = Self {
            out,
            view: View::new(),
            style,
            scrolled: Scrolled::default(),
            blocks,
            foot: Frame::default(),
            painter: Painter::default(),
            images: HashMap::new(),
            size: (0, 0),
        };
        live.set_size(columns, rows);
        live
    }

    /// Computes model costs with these prices.
    #[must_use]
    pub(crate) fn priced(mut self, prices: Option<PriceTable>) -> Self {
        self.view = std::mem::take(&mut self.view).priced(prices);
        self
    }

    /// Creates a live view that lays runs out as parts of a conversation.
    pub(crate) fn of_chat(out: W, style: Style, columns: usize, rows: usize) -> Self {
        let mut live = Self::new(out, Style { stream_lines: usize::MAX, ..style }, columns, rows);
        live.blocks = chat_layout;
        live
    }

    /// Adds a remark to the node of a file, given the path of its event.
    pub(crate) fn note(&mut self, path: &Path, text: String) {
        self.view.note(path, text);
    }

    /// Shows an image of the event at a path once its name has scrolled away, if the terminal can.
    pub(crate) fn image(&mut self, path: &Path, bytes: &[u8]) {
        let Some(graphics) = self.style.graphics else { return };
        let Some(node) = self.view.with_files(path) else { return };
        let block = match node.kind {
            NodeKind::Answer(_) => BlockId::Tail(node.id),
            _ => BlockId::Head(node.id),
        };
        if let Some(image) = preview(graphics, bytes, self.size) {
            self.images.entry(block).or_default().push(Line::image(image));
        }
    }

    /// Paints the rest of the run, and begins another one.
    pub(crate) fn next_run(&mut self) -> io::Result<()> {
        self.finish()?;
        (self.view, self.scrolled) = (View::new(), Scrolled::default());
        self.images.clear();
        Ok(())
    }

    /// Prints lines that scroll away above the view, below its settled blocks.
    pub(crate) fn print(&mut self, lines: Vec<Line>) -> io::Result<()> {
        let mut gone = Vec::new();
        self.scroll_while(&mut gone, |_| true);
        gone.extend(lines);
        self.repaint(gone)
    }

    /// Clears the screen; the next tick paints the view at its top.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        self.painter.clear(&mut self.out)
    }

    pub(crate) const fn style(&self) -> &Style {
        &self.style
    }

    /// Returns the view.
    pub(crate) const fn view(&self) -> &View {
        &self.view
    }

    /// Applies the next event, which the next tick paints.
    pub(crate) fn event(&mut self, event: &Event) {
        self.view.apply(event);
    }

    /// Applies a delta, which the next tick paints.
    pub(crate) fn delta(&mut self, delta: &Delta) {
        self.view.apply_delta(delta);
    }

    /// Advances the time, and repaints what has changed.
    ///
    /// # Errors
    ///
    /// The terminal cannot be written to.
    pub(crate) fn tick(&mut self, now: Timestamp, columns: usize, rows: usize) -> io::Result<()> {
        let foot = std::mem::take(&mut self.foot);
        self.paint(Vec::new(), foot, now, (columns, rows))
    }

    /// Repaints with another foot below the view; `gone` scrolls away above it.
    ///
    /// # Errors
    ///
    /// The terminal cannot be written to.
    pub(crate) fn paint(
        &mut self,
        gone: Vec<Line>,
        foot: Frame,
        now: Timestamp,
        (columns, rows): (usize, usize),
    ) -> io::Result<()> {
        self.foot = foot;
        self.view.tick(now);
        if (columns, rows) != self.size {
            self.set_size(columns, rows);
        }
        if gone.is_empty() { self.repaint(gone) } else { self.print(gone) }
    }

    fn repaint(&mut self, mut gone: Vec<Line>) -> io::Result<()> {
        let (scrolled, lines) = self.scroll();
        gone.extend(scrolled);
        let frame = self.foot.clone().below(lines);
        self.painter.paint(&mut self.out, &self.style, &gone, &frame, self.size)
    }

    /// Prints a remark above the view.
    ///
    /// # Errors
    ///
    /// The terminal cannot be written to.
    pub(crate) fn say(&mut self, tone: Tone, text: &str) -> io::Result<()> {
        let text = sanitise(text);
        let remark = wrap(&text, self.style.width).into_iter().map(|line| Line::new(0).with(tone, line));
        self.print(remark.collect())
    }

    /// Paints the last frame in full, and shows the cursor again.
    ///
    /// # Errors
    ///
    /// The terminal cannot be written to.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        let mut gone = Vec::new();
        self.scroll_while(&mut gone, |_| true);
        let rest = (self.blocks)(&self.view, &self.style, &self.scrolled);
        for block in &rest {
            gone.extend(block.lines.iter().cloned());
            gone.extend(self.images.remove(&block.id).into_iter().flatten());
            self.scrolled.add(block);
        }
        self.painter.paint(&mut self.out, &self.style, &gone, &Frame::default(), self.size)?;
        execute!(self.out, Show)
    }

    #[cfg(test)]
    pub(super) const fn writer(&mut self) -> &mut W {
        &mut self.out
    }

    /// The last column stays free: some terminals wrap a line that fills it.
    fn set_size(&mut self, columns: usize, rows: usize) {
        self.size = (columns, rows);
        self.style.width = columns.saturating_sub(1).clamp(2, 200);
        self.style.height = Some(rows.saturating_sub(1).max(3));
    }

    /// Scrolls away the blocks that do not fit; returns their lines and those of the frame.
    fn scroll(&mut self) -> (Vec<Line>, Vec<Line>) {
        let whole = self.style;
        self.style.height = whole.height.map(|height| height.saturating_sub(self.foot.lines.len()).max(1));
        let height = self.style.height.unwrap_or(usize::MAX);
        if whole.stream_lines == usize::MAX {
            // A message that arrives meanwhile needs room, too.
            self.style.stream_lines = height.saturating_sub(5).max(1);
        }
        let mut gone = Vec::new();
        let left = self.scroll_while(&mut gone, |lines| lines > height);
        let lines =
            left.into_iter().flat_map(|block| block.lines.into_iter().map(move |line| (block.settled, line))).collect();
        let frame = fit(lines, &self.style);
        self.style = whole;
        (gone, frame)
    }

    /// Scrolls blocks away from the top while `more` accepts the number of lines that are left.
    fn scroll_while(&mut self, gone: &mut Vec<Line>, more: impl Fn(usize) -> bool) -> Vec<Block> {
        loop {
            let left = (self.blocks)(&self.view, &self.style, &self.scrolled);
            let mut lines: usize = left.iter().map(|block| block.lines.len()).sum();
            let before = gone.len();
            for block in left.iter().take_while(|block| block.loose) {
                if !more(lines) {
                    break;
                }
                lines -= block.lines.len();
                gone.extend(block.scrolled_lines().iter().cloned());
                gone.extend(self.images.remove(&block.id).into_iter().flatten());
                self.scrolled.add(block);
                self.view.fix(block.node());
            }
            if gone.len() == before {
                return left;
            }
            self.view.forget(|id| self.scrolled.has_any(id));
        }
    }
}

impl<W: Write> Drop for Live<W> {
    fn drop(&mut self) {
        // A terminal that is gone needs none of this.
        _ = execute!(self.out, EnableLineWrap, Show);
    }
}
