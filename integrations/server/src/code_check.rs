//! The last check of a run's code, as it is cached.

use std::sync::Arc;

use parking_lot::Mutex;
use positronic_core::record::Seq;
use positronic_core::runner::CodeCheck;

/// A check of the code, and the number of the run's next event at that time.
pub(crate) type KnownCheck = Arc<Mutex<Option<(Seq, CodeCheck)>>>;
