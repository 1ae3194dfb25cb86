//! What happens if the system lacks a protection.

use super::{CodeError, CodeOptions, OnMissing, Protection};

/// Checks whether a program may run without these protections.
pub(super) fn may_run(options: &CodeOptions, missing: &[Protection]) -> Result<(), CodeError> {
    if options.on_missing == OnMissing::Say || missing.is_empty() {
        return Ok(());
    }
    let missing: Vec<_> = missing.iter().map(|missing| missing.missing()).collect();
    Err(CodeError::NotProtected { missing: missing.join(", ") })
}
