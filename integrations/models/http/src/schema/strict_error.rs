//! Why a schema cannot be made strict.

/// The reason why a schema cannot be made strict.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("strict mode cannot express the schema: {0}")]
pub struct NotStrict(pub(super) String);

pub(super) type Result<T> = std::result::Result<T, NotStrict>;

/// Refuses a schema for this reason.
pub(super) fn refuse<T>(reason: impl Into<String>) -> Result<T> {
    Err(NotStrict(reason.into()))
}
