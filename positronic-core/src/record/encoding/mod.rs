//! How values become JSON: canonical documents and their limits, hashes, numbers, and what serde calls for single fields.

pub(crate) mod base64;
pub(crate) mod canonical;
pub(in crate::record) mod content_hash;
pub(in crate::record) mod document;
pub(crate) mod micros;
pub(crate) mod number;
pub(in crate::record) mod ordered;
pub(crate) mod scratch;
pub(crate) mod skip;
