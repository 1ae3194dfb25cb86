//! The lists of runs and of what they wait for.

use super::{
    BoxFuture, EventMatches, EventSearch, FigureFilter, Figures, PendingFilter, PendingItem, RunCounts, RunFilter,
    RunSums, StoreError,
};
use crate::record::{RunId, RunSummary};

/// Lists the runs and what they wait for, without their logs.
#[diagnostic::on_unimplemented(note = "a store around another one gets this trait by implementing `StoreWrapper`")]
pub trait RunIndex: Send + Sync + 'static {
    /// Returns the summary of a run.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoSuchRun`] when the run does not exist.
    fn run<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<RunSummary, StoreError>>;

    /// Lists the summaries of runs that match a filter, latest start first, in the order of [`RunCursor`](super::RunCursor). It skips those
    /// that it cannot decode. There are fewer than the filter's limit only at the end of the list; [`RunPages`](super::RunPages) reads a
    /// long one in pages.
    fn runs<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunSummary>, StoreError>>;

    /// Counts the runs that match a filter by their status, without decoding summaries. It ignores the filter's place and limit.
    fn counts<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<RunCounts, StoreError>>;

    /// Adds up the tokens and the costs of the runs that match a filter, also of open ones, without reading the summaries of those that are
    /// over. It ignores the filter's place and limit.
    fn sums<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<RunSums, StoreError>>;

    /// Lists the runs that [`RunIndex::runs`] skips, each with its error.
    fn unreadable<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<(RunId, StoreError)>, StoreError>>;

    /// Lists the pending items of all runs, oldest first, in the order of [`PendingCursor`](super::PendingCursor). It skips those that it cannot
    /// decode. There are fewer than the filter's limit only at the end of the list; [`PendingPages`](super::PendingPages) reads a long one in
    /// pages.
    fn pending<'a>(&'a self, filter: &'a PendingFilter) -> BoxFuture<'a, Result<Vec<PendingItem>, StoreError>>;

    /// Adds up how runs have ended and what they have cost in a range of time, and counts the open ones, without decoding summaries.
    /// The groups have no order; see [`Figures::sorted`].
    fn figures<'a>(&'a self, filter: &'a FigureFilter) -> BoxFuture<'a, Result<Figures, StoreError>>;

    /// Finds events whose JSON contains a text, ignoring case, newest run first.
    fn search<'a>(&'a self, search: &'a EventSearch) -> BoxFuture<'a, Result<EventMatches, StoreError>>;
}
