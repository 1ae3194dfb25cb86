//! Time limit of the guards of a loop and of the hooks of its plugins: the runner's.

use crate::definition::Scope;
use crate::error::caught;
use crate::error::{Error, Result};
use crate::machine::Overdue;
use crate::record::Path;

/// Awaits a guard or a hook, which asks its questions at a path. A panic is an error, and so is more time than it has.
pub(in crate::runner) async fn in_time<T: Send>(
    scope: &Scope,
    at: &Path,
    name: &str,
    hook: impl Future<Output = Result<T>> + Send,
) -> Result<T> {
    let mut result = None;
    let limited = scope.link.limit(at, Box::pin(async { result = Some(caught(hook).await) })).await;
    let late = |limit| Error::permanent(Overdue(format!("{name} took longer than {limit:?}")));
    limited.map_err(late)?;
    result.unwrap_or_else(|| Err(Error::new(format!("{name} has not ended"))))
}
