//! Whether work on a run can continue on this server, as it is cached.

/// What would happen to a run that a worker continues, or that is retried.
#[derive(Clone, Default)]
pub(crate) struct Continuation {
    /// Why a failed run cannot be retried.
    pub(crate) retry_refused: Option<String>,
    /// Why the workers of this server have no model for it.
    pub(crate) missing_model: Option<String>,
    /// Whether it has to be computed again before the run's next event.
    pub(crate) may_change: bool,
}
