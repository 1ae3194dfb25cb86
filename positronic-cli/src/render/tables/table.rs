//! Layout of a table in the columns of a terminal.

use std::fmt;

use crate::render::text::{shorten, width};

/// Minimum width of the last column.
const ROOM: usize = 24;

/// Separates two columns.
const GAP: &str = "  ";

/// Rows of cells, in columns as wide as their widest cell.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    /// The width of each column; 0 hides it.
    widths: Vec<usize>,
    columns: usize,
    /// The last column, which takes the remaining width or its own line.
    rest: Option<Vec<String>>,
}

impl Table {
    pub(crate) fn new(heads: &[&str], rows: impl Iterator<Item = Vec<String>>, columns: usize) -> Self {
        let mut all = vec![heads.iter().map(|head| (*head).to_owned()).collect::<Vec<_>>()];
        all.extend(rows);
        let widest = |column: usize| all.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max();
        let widths = (0..heads.len()).map(|column| widest(column).unwrap_or(0)).collect();
        Self { rows: all, widths, columns, rest: None }
    }

    fn taken(&self) -> usize {
        self.widths.iter().filter(|width| **width > 0).map(|width| width + GAP.len()).sum()
    }

    fn excess(&self) -> usize {
        self.taken().saturating_sub(self.columns + GAP.len())
    }

    /// Limits the width of a column.
    pub(in crate::render) fn limit(&mut self, column: usize, most: usize) {
        if let Some(width) = self.widths.get_mut(column) {
            *width = most.min(*width);
        }
    }

    /// Narrows a column as far as the table does not fit, but not below `least`.
    pub(in crate::render) fn narrow(&mut self, column: usize, least: usize) {
        let width = self.widths.get(column).copied().unwrap_or(0);
        self.limit(column, width.saturating_sub(self.excess()).max(least.min(width)));
    }

    /// Narrows a column, but not below `least`, until the last one has `room`.
    pub(in crate::render) fn leave(&mut self, room: usize, column: usize, least: usize) {
        let width = self.widths.get(column).copied().unwrap_or(0);
        let missing = (self.taken() + room).saturating_sub(self.columns);
        self.limit(column, width.saturating_sub(missing).max(least.min(width)));
    }

    /// Hides columns, the first ones first, until the table fits.
    pub(in crate::render) fn hide(&mut self, columns: &[usize]) {
        for column in columns {
            if self.excess() > 0 {
                self.limit(*column, 0);
            }
        }
    }

    /// Adds a last column, which takes the remaining width or its own line.
    pub(in crate::render) fn rest(&mut self, head: &str, cells: impl Iterator<Item = String>) {
        self.rest = Some(std::iter::once(head.to_owned()).chain(cells).collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let room = self.columns.saturating_sub(self.taken());
        for (index, row) in self.rows.iter().enumerate() {
            let shown = row.iter().zip(&self.widths).filter(|(_, width)| **width > 0);
            let mut line: String =
                shown.map(|(cell, columns)| padded(&shorten(cell, *columns), *columns) + GAP).collect();
            let rest = self.rest.as_ref().and_then(|rest| rest.get(index)).map_or("", String::as_str);
            if room >= ROOM {
                line.push_str(&shorten(rest, room));
            }
            writeln!(f, "{}", shorten(line.trim_end(), self.columns))?;
            if room < ROOM && index > 0 && !rest.is_empty() {
                writeln!(f, "{}", shorten(&format!("{GAP}{rest}"), self.columns))?;
            }
        }
        Ok(())
    }
}

/// Renders pairs as lines, the second parts below each other.
pub(crate) fn aligned(pairs: &[(String, String)]) -> Vec<String> {
    let column = pairs.iter().map(|(first, _)| width(first)).max().unwrap_or(0);
    let line = |(first, second): &(String, String)| format!("{}{GAP}{second}", padded(first, column));
    pairs.iter().map(|pair| line(pair).trim_end().to_owned()).collect()
}

fn padded(cell: &str, columns: usize) -> String {
    format!("{cell}{}", " ".repeat(columns.saturating_sub(width(cell))))
}
