//! Runs and stores in files.

pub(crate) mod backup;
pub(crate) mod file;
pub(crate) mod record;
