//! Processes that work on the runs of a store, and tokens of their API.

#[cfg(feature = "serve")]
pub(crate) mod token;
pub(crate) mod work;
