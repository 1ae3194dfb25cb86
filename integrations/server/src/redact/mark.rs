//! Marks: of a secret that was removed, and of an answer that stays as it is.

/// What stands in the place of a secret.
pub const REDACTED: &str = "[redacted]";

/// Marks an answer that is not to be redacted: a file, or JSON that already is redacted.
#[derive(Clone)]
pub(crate) struct AsIs;
