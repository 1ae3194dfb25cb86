//! Starts by webhook, with their types erased.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::error::Result;
use crate::tools::Schema;

/// Computes the input of a run from a payload that fits the schema. The number is the most bytes of its options.
pub(crate) type RunInputFn = Arc<dyn Fn(&Value, usize) -> Result<RunInput> + Send + Sync>;

/// A webhook that starts runs of a brain: see [`Runner::start_on`](crate::runner::Runner::start_on).
pub struct StartOn {
    /// The webhook's name.
    pub webhook: String,
    /// The schema of its payload.
    pub schema: Arc<Schema>,
    /// The title of the brain.
    pub brain: String,
    /// Computes the input of a run.
    pub(crate) input: RunInputFn,
}

/// What a delivery starts a run with.
#[derive(Debug)]
pub(crate) struct RunInput {
    pub(crate) options: Value,
    pub(crate) user: Option<String>,
    pub(crate) tags: Vec<String>,
}

impl fmt::Debug for StartOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StartOn").field("webhook", &self.webhook).field("brain", &self.brain).finish_non_exhaustive()
    }
}
