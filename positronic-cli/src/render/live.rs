//! Repaints the end of a terminal while a run goes on.
//!
//! Only the end of the view is repainted; what is settled and no longer fits scrolls up and stays in the terminal's
//! history. A frame is written in one piece, line by line over the one before, and a line that did not change is not
//! written again, so nothing flickers. After a change of the terminal's size the rows that the old frame takes now
//! are counted anew.
//!
//! A chat keeps a foot below the frame, in which a person types, and shows one run after the other.

use std::io::{self, Write};

use crossterm::cursor::{Hide, MoveTo, MoveToColumn, MoveUp, Show};
use crossterm::queue;
use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, DisableLineWrap, EnableLineWrap, EndSynchronizedUpdate,
};
use positronic_core::record::{Delta, Event, PriceTable, Timestamp};

use super::frame::fit;
use super::layout::{Block, Scrolled, blocks};
use super::style::{Line, Style, Tone};
use super::talk::talk;
use super::text::{sanitise, wrap};
use super::view::View;

/// Lays out what has not scrolled away.
type Blocks = fn(&View, &Style, &Scrolled) -> Vec<Block>;

/// What stands below a frame.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Foot {
    pub(crate) lines: Vec<Line>,
    /// The line and the column of the cursor; it is hidden where there is none.
    pub(crate) cursor: Option<(usize, usize)>,
}

/// Shows a view at the end of a terminal.
#[derive(Debug)]
pub(crate) struct Live<W: Write> {
    out: W,
    view: View,
    style: Style,
    scrolled: Scrolled,
    blocks: Blocks,
    foot: Foot,
    painted: Vec<(usize, String)>,
    /// How many of the painted lines stand above the cursor's.
    above: usize,
    /// The cursor's column.
    column: usize,
    columns: usize,
    rows: usize,
}

/// What is painted, with the place of the cursor where it is shown.
#[derive(Debug, Default)]
struct Frame {
    lines: Vec<Line>,
    cursor: Option<(usize, usize)>,
}

impl<W: Write> Live<W> {
    /// Makes a reporter that writes to `out`, a terminal of `columns` and `rows`.
    pub(crate) fn new(out: W, style: Style, columns: usize, rows: usize) -> Self {
        let mut live = Self {
            out,
            view: View::new(),
            style,
            scrolled: Scrolled::default(),
            blocks,
            foot: Foot::default(),
            painted: Vec::new(),
            above: 0,
            column: 0,
            columns: 0,
            rows: 0,
        };
        live.set_size(columns, rows);
        live
    }

    /// Reckons what models cost with these prices.
    #[must_use]
    pub(crate) fn priced(mut self, prices: PriceTable) -> Self {
        self.view = std::mem::take(&mut self.view).priced(prices);
        self
    }

    /// Makes a reporter that lays runs out as parts of a conversation.
    pub(crate) fn of_talk(out: W, style: Style, columns: usize, rows: usize) -> Self {
        let mut live = Self::new(out, Style { stream_lines: usize::MAX, ..style }, columns, rows);
        live.blocks = talk;
        live
    }

    /// Sets what stands below the frame from the next tick on.
    pub(crate) fn set_foot(&mut self, foot: Foot) {
        self.foot = foot;
    }

    /// Adds a remark to what the last event has begun.
    pub(crate) fn note(&mut self, text: String) {
        self.view.note(text);
    }

    /// Paints what is left of the run, and begins with another one.
    pub(crate) fn next_run(&mut self) -> io::Result<()> {
        self.finish()?;
        (self.view, self.scrolled) = (View::new(), Scrolled::default());
        Ok(())
    }

    /// Lets lines scroll away above the repainted ones.
    pub(crate) fn print(&mut self, lines: &[Line]) -> io::Result<()> {
        self.suspend()?;
        self.paint(lines, &Frame::default(), 0, false)
    }

    /// Takes everything off the screen, and paints anew with the next tick what can be painted anew.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        queue!(self.out, Clear(ClearType::All), MoveTo(0, 0))?;
        (self.painted, self.above, self.column) = (Vec::new(), 0, 0);
        self.out.flush()
    }

    pub(crate) const fn style(&self) -> &Style {
        &self.style
    }

    /// Returns the view.
    pub(crate) const fn view(&self) -> &View {
        &self.view
    }

    /// Takes in the next event; it is seen with the next tick.
    pub(crate) fn event(&mut self, event: &Event) {
        self.view.apply(event);
    }

    /// Takes in a streamed piece; it is seen with the next tick.
    pub(crate) fn delta(&mut self, delta: &Delta) {
        self.view.apply_delta(delta);
    }

    /// Lets time pass, and repaints where something has changed.
    ///
    /// # Errors
    ///
    /// What the terminal answers.
    pub(crate) fn tick(&mut self, now: Timestamp, columns: usize, rows: usize) -> io::Result<()> {
        self.view.tick(now);
        let resized = (columns, rows) != (self.columns, self.rows);
        let old_rows = if resized { self.rows_at(columns) } else { self.above };
        if resized {
            self.set_size(columns, rows);
        }
        let (gone, mut lines) = self.scroll();
        let above = lines.len();
        lines.extend(self.foot.lines.iter().cloned());
        let cursor = self.foot.cursor.map(|(row, column)| (above + row, column));
        self.paint(&gone, &Frame { lines, cursor }, old_rows, resized)
    }

    /// Clears the repainted lines, so that something else can use the terminal. What is settled stays. The next tick
    /// paints again.
    ///
    /// # Errors
    ///
    /// What the terminal answers.
    pub(crate) fn suspend(&mut self) -> io::Result<()> {
        let mut gone = Vec::new();
        self.scroll_while(&mut gone, |_| true);
        self.paint(&gone, &Frame::default(), self.above, true)?;
        self.show_cursor()
    }

    /// Lets a remark scroll away above the repainted lines.
    ///
    /// # Errors
    ///
    /// What the terminal answers.
    pub(crate) fn say(&mut self, text: &str) -> io::Result<()> {
        self.suspend()?;
        let text = sanitise(text, self.style.unicode);
        let remark: Vec<Line> =
            wrap(&text, self.style.width).into_iter().map(|line| Line::new(0).with(Tone::Warn, line)).collect();
        self.paint(&remark, &Frame::default(), 0, false)
    }

    /// Paints the last frame in full and leaves the terminal to others.
    ///
    /// # Errors
    ///
    /// What the terminal answers.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        let mut gone = Vec::new();
        self.scroll_while(&mut gone, |_| true);
        let rest = (self.blocks)(&self.view, &self.style, &self.scrolled);
        for block in &rest {
            gone.extend(block.lines.iter().cloned());
            self.scrolled.add(block);
        }
        self.paint(&gone, &Frame::default(), self.above, false)?;
        self.show_cursor()
    }

    #[cfg(test)]
    pub(super) const fn writer(&mut self) -> &mut W {
        &mut self.out
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        queue!(self.out, Show)?;
        self.out.flush()
    }

    /// The last column stays free: some terminals wrap a line that fills it.
    fn set_size(&mut self, columns: usize, rows: usize) {
        (self.columns, self.rows) = (columns, rows);
        self.style.width = columns.saturating_sub(1).clamp(2, 200);
        self.style.height = Some(rows.saturating_sub(1).max(3));
    }

    /// Counts the rows that the painted lines above the cursor take in a terminal of another width.
    fn rows_at(&self, columns: usize) -> usize {
        let columns = columns.max(1);
        let above = self.painted.iter().take(self.above).map(|(width, _)| width.div_ceil(columns).max(1));
        above.sum::<usize>() + self.column / columns
    }

    /// Lets scroll away what does not fit, and returns it and the lines of the frame.
    fn scroll(&mut self) -> (Vec<Line>, Vec<Line>) {
        let whole = self.style;
        self.style.height = whole.height.map(|height| height.saturating_sub(self.foot.lines.len()).max(1));
        let height = self.style.height.unwrap_or(usize::MAX);
        if whole.stream_lines == usize::MAX {
            // A message that is said meanwhile is to be seen, too.
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

    /// Lets blocks scroll away from the top for as long as `more` says so of the number of lines that are left.
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
                self.scrolled.add(block);
                self.view.fix(block.node());
            }
            if gone.len() == before {
                return left;
            }
            self.view.forget(|id| self.scrolled.has_any(id));
        }
    }

    fn paint(&mut self, gone: &[Line], frame: &Frame, old_rows: usize, all: bool) -> io::Result<()> {
        let new: Vec<(usize, String)> =
            frame.lines.iter().map(|line| (line.width(), line.paint(&self.style))).collect();
        let (above, column) = frame.cursor.unwrap_or((new.len(), 0));
        if gone.is_empty() && !all && new == self.painted && (above, column) == (self.above, self.column) {
            return Ok(());
        }
        let mut bytes = Vec::new();
        queue!(bytes, BeginSynchronizedUpdate, Hide, DisableLineWrap, MoveToColumn(0))?;
        if old_rows > 0 {
            queue!(bytes, MoveUp(u16::try_from(old_rows).unwrap_or(u16::MAX)))?;
        }
        if all {
            queue!(bytes, Clear(ClearType::FromCursorDown))?;
        }
        for line in gone {
            write!(bytes, "{}", line.paint(&self.style))?;
            queue!(bytes, Clear(ClearType::UntilNewLine))?;
            bytes.extend_from_slice(b"\r\n");
        }
        let shifted = !gone.is_empty() || all;
        for (index, (width, line)) in new.iter().enumerate() {
            let same = !shifted && self.painted.get(index).is_some_and(|(w, old)| (w, old) == (width, line));
            if !same {
                bytes.extend_from_slice(line.as_bytes());
                queue!(bytes, Clear(ClearType::UntilNewLine))?;
            }
            bytes.extend_from_slice(b"\r\n");
        }
        queue!(bytes, Clear(ClearType::FromCursorDown), EnableLineWrap)?;
        if frame.cursor.is_some() {
            let up = u16::try_from(new.len().saturating_sub(above)).unwrap_or(u16::MAX);
            queue!(bytes, MoveUp(up), MoveToColumn(u16::try_from(column).unwrap_or(u16::MAX)), Show)?;
        }
        queue!(bytes, EndSynchronizedUpdate)?;
        (self.painted, self.above, self.column) = (new, above, column);
        self.out.write_all(&bytes)?;
        self.out.flush()
    }
}

impl<W: Write> Drop for Live<W> {
    fn drop(&mut self) {
        // Where the terminal is gone there is nobody to tell.
        _ = queue!(self.out, EnableLineWrap, Show);
        _ = self.out.flush();
    }
}
