//! Long lists in pages, so that neither the store nor its caller holds all rows at once.

use derive_where::derive_where;

use super::{EventStore, PendingFilter, PendingItem, RunFilter, StoreError};
use crate::record::RunSummary;

/// How many rows a page has: a page of summaries is about a hundred kilobytes.
const PAGE: usize = 200;

/// Reads a list of runs in pages.
///
/// ```
/// use positronic_core::store::{MemoryStore, RunFilter, RunPages};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), positronic_core::store::StoreError> {
/// let store = MemoryStore::new();
/// let mut pages = RunPages::new(&store, RunFilter::default());
/// while let Some(page) = pages.next().await? {
///     for row in page {
///         println!("{}", row.run);
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive_where(Debug)]
pub struct RunPages<'a> {
    #[derive_where(skip)]
    store: &'a dyn EventStore,
    filter: RunFilter,
    /// How many rows the caller still wants.
    left: usize,
}

impl<'a> RunPages<'a> {
    /// Creates a reader of the runs that match a filter.
    #[must_use]
    pub fn new(store: &'a dyn EventStore, filter: RunFilter) -> Self {
        Self { store, left: filter.limit.unwrap_or(usize::MAX), filter }
    }

    /// Returns the next page, or `None` at the end.
    ///
    /// # Errors
    ///
    /// Only errors of the store itself.
    pub async fn next(&mut self) -> Result<Option<Vec<RunSummary>>, StoreError> {
        let size = self.left.min(PAGE);
        if size == 0 {
            return Ok(None);
        }
        self.filter.limit = Some(size);
        let page = self.store.runs(&self.filter).await?;
        self.left = if page.len() < size { 0 } else { self.left - page.len() };
        self.filter.after = page.last().map(RunSummary::cursor);
        Ok(Some(page).filter(|page| !page.is_empty()))
    }

    /// Returns all remaining rows. For lists that are short, or whose rows the caller needs at once.
    ///
    /// # Errors
    ///
    /// Only errors of the store itself.
    pub async fn all(mut self) -> Result<Vec<RunSummary>, StoreError> {
        let mut rows = Vec::new();
        while let Some(page) = self.next().await? {
            rows.extend(page);
        }
        Ok(rows)
    }
}

/// Reads a list of pending items in pages.
#[derive_where(Debug)]
pub struct PendingPages<'a> {
    #[derive_where(skip)]
    store: &'a dyn EventStore,
    filter: PendingFilter,
    /// How many items the caller still wants.
    left: usize,
}

impl<'a> PendingPages<'a> {
    /// Creates a reader of the items that match a filter.
    #[must_use]
    pub fn new(store: &'a dyn EventStore, filter: PendingFilter) -> Self {
        Self { store, left: filter.limit.unwrap_or(usize::MAX), filter }
    }

    /// Returns the next page, or `None` at the end.
    ///
    /// # Errors
    ///
    /// Only errors of the store itself.
    pub async fn next(&mut self) -> Result<Option<Vec<PendingItem>>, StoreError> {
        let size = self.left.min(PAGE);
        if size == 0 {
            return Ok(None);
        }
        self.filter.limit = Some(size);
        let page = self.store.pending(&self.filter).await?;
        self.left = if page.len() < size { 0 } else { self.left - page.len() };
        self.filter.after = page.last().map(PendingItem::cursor);
        Ok(Some(page).filter(|page| !page.is_empty()))
    }
}
