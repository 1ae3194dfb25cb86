//! Repaints the end of a terminal while a run goes on.
//!
//! Only the end of the view is repainted; what is settled and no longer fits scrolls up and stays in the terminal's
//! history. A frame is written in one piece, line by line over the one before, and a line that did not change is not
//! written again, so nothing flickers. After a change of the terminal's size the rows that the old frame takes now
//! are counted anew.

use std::io::{self, Write};
use std::sync::Arc;

use crossterm::cursor::{Hide, MoveToColumn, MoveUp, Show};
use crossterm::queue;
use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, DisableLineWrap, EnableLineWrap, EndSynchronizedUpdate,
};
use positronic_core::record::{Delta, Event, PriceTable, Timestamp};

use super::frame::fit;
use super::layout::{Block, Scrolled, blocks};
use super::style::{Line, Style, Tone};
use super::text::{sanitise, wrap};
use super::view::View;

/// Shows a view at the end of a terminal.
#[derive(Debug)]
pub struct Live<W: Write> {
    out: W,
    view: View,
    style: Style,
    scrolled: Scrolled,
    painted: Vec<(usize, String)>,
    columns: usize,
    rows: usize,
}

impl<W: Write> Live<W> {
    /// Makes a reporter that writes to `out`, a terminal of `columns` and `rows`.
    pub fn new(out: W, style: Style, columns: usize, rows: usize) -> Self {
        let mut live = Self {
            out,
            view: View::new(),
            style,
            scrolled: Scrolled::default(),
            painted: Vec::new(),
            columns: 0,
            rows: 0,
        };
        live.set_size(columns, rows);
        live
    }

    /// Reckons what models cost with these prices.
    #[must_use]
    pub fn priced(mut self, prices: PriceTable) -> Self {
        self.view.prices = Some(Arc::new(prices));
        self
    }

    /// Returns the view.
    pub const fn view(&self) -> &View {
        &self.view
    }

    /// Takes in the next event; it is seen with the next tick.
    pub fn event(&mut self, event: &Event) {
        self.view.fold(event);
    }

    /// Takes in a streamed piece; it is seen with the next tick.
    pub fn delta(&mut self, delta: &Delta) {
        self.view.delta(delta);
    }

    /// Lets time pass, and repaints where something has changed.
    ///
    /// # Errors
    ///
    /// What the terminal answers.
    pub fn tick(&mut self, now: Timestamp, columns: usize, rows: usize) -> io::Result<()> {
        self.view.tick(now);
        let resized = (columns, rows) != (self.columns, self.rows);
        let old_rows = if resized { self.rows_at(columns) } else { self.painted.len() };
        if resized {
            self.set_size(columns, rows);
        }
        let (gone, frame) = self.scroll();
        self.paint(&gone, &frame, old_rows, resized)
    }

    /// Clears the repainted lines, so that something else can use the terminal. What is settled stays. The next tick
    /// paints again.
    ///
    /// # Errors
    ///
    /// What the terminal answers.
    pub fn suspend(&mut self) -> io::Result<()> {
        let mut gone = Vec::new();
        self.scroll_while(&mut gone, |_| true);
        let rows = self.painted.len();
        self.paint(&gone, &[], rows, true)?;
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
        self.paint(&remark, &[], 0, false)
    }

    /// Paints the last frame in full and leaves the terminal to others.
    ///
    /// # Errors
    ///
    /// What the terminal answers.
    pub fn finish(&mut self) -> io::Result<()> {
        let mut gone = Vec::new();
        self.scroll_while(&mut gone, |_| true);
        let rest = blocks(&self.view, &self.style, &self.scrolled);
        for block in &rest {
            gone.extend(block.lines.iter().cloned());
            self.scrolled.add(block);
        }
        let rows = self.painted.len();
        self.paint(&gone, &[], rows, false)?;
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

    /// Counts the rows that the painted lines take in a terminal of another width.
    fn rows_at(&self, columns: usize) -> usize {
        self.painted.iter().map(|(width, _)| width.div_ceil(columns.max(1)).max(1)).sum()
    }

    /// Lets scroll away what does not fit, and returns it and the lines of the frame.
    fn scroll(&mut self) -> (Vec<Line>, Vec<Line>) {
        let height = self.style.height.unwrap_or(usize::MAX);
        let mut gone = Vec::new();
        let left = self.scroll_while(&mut gone, |lines| lines > height);
        let lines =
            left.into_iter().flat_map(|block| block.lines.into_iter().map(move |line| (block.settled, line))).collect();
        (gone, fit(lines, &self.style))
    }

    /// Lets blocks scroll away from the top for as long as `more` says so of the number of lines that are left.
    fn scroll_while(&mut self, gone: &mut Vec<Line>, more: impl Fn(usize) -> bool) -> Vec<Block> {
        loop {
            let left = blocks(&self.view, &self.style, &self.scrolled);
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
            self.view.forget(|id| self.scrolled.has_head(id));
        }
    }

    fn paint(&mut self, gone: &[Line], frame: &[Line], old_rows: usize, all: bool) -> io::Result<()> {
        let new: Vec<(usize, String)> = frame.iter().map(|line| (line.width(), line.paint(&self.style))).collect();
        if gone.is_empty() && !all && new == self.painted {
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
        queue!(bytes, Clear(ClearType::FromCursorDown), EnableLineWrap, EndSynchronizedUpdate)?;
        self.painted = new;
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
