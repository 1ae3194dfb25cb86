//! Layout of a table in the columns of a terminal.

use super::text::{shorten, width};

/// Separates two columns.
pub(super) const GAP: &str = "  ";

/// Rows of cells, in columns as wide as their widest cell.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    /// The width of each column; 0 hides it.
    widths: Vec<usize>,
    columns: usize,
    unicode: bool,
}

impl Table {
    pub(crate) fn new(heads: &[&str], rows: impl Iterator<Item = Vec<String>>, columns: usize, unicode: bool) -> Self {
        let mut all = vec![heads.iter().map(|head| (*head).to_owned()).collect::<Vec<_>>()];
        all.extend(rows);
        let widest = |column: usize| all.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max();
        let widths = (0..heads.len()).map(|column| widest(column).unwrap_or(0)).collect();
        Self { rows: all, widths, columns, unicode }
    }

    fn taken(&self) -> usize {
        self.widths.iter().filter(|width| **width > 0).map(|width| width + GAP.len()).sum()
    }

    fn excess(&self) -> usize {
        self.taken().saturating_sub(self.columns + GAP.len())
    }

    /// Returns the remaining width behind the last column.
    pub(super) fn room(&self) -> usize {
        self.columns.saturating_sub(self.taken())
    }

    /// Limits the width of a column.
    pub(super) fn limit(&mut self, column: usize, most: usize) {
        if let Some(width) = self.widths.get_mut(column) {
            *width = most.min(*width);
        }
    }

    /// Narrows a column as far as the table does not fit, but not below `least`.
    pub(super) fn narrow(&mut self, column: usize, least: usize) {
        let width = self.widths.get(column).copied().unwrap_or(0);
        self.limit(column, width.saturating_sub(self.excess()).max(least.min(width)));
    }

    /// Hides columns, the first ones first, until the table fits.
    pub(super) fn hide(&mut self, columns: &[usize]) {
        for column in columns {
            if self.excess() > 0 {
                self.limit(*column, 0);
            }
        }
    }

    /// Renders the rows, the heads first, each with a gap at its end.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        self.rows.iter().map(|row| {
            let shown = row.iter().zip(&self.widths).filter(|(_, width)| **width > 0);
            shown.map(|(cell, columns)| padded(&shorten(cell, *columns, self.unicode), *columns) + GAP).collect()
        })
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.lines().try_for_each(|line| writeln!(f, "{}", shorten(line.trim_end(), self.columns, self.unicode)))
    }
}

fn padded(cell: &str, columns: usize) -> String {
    format!("{cell}{}", " ".repeat(columns.saturating_sub(width(cell))))
}
