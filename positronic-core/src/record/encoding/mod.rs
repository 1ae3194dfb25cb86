//! How values become JSON: canonical documents and their limits, hashes, numbers, and what serde calls for single fields.

pub(crate) mod base64;
pub(in crate::record) mod content_hash;
pub(crate) mod document;
pub(crate) mod micros;
pub(crate) mod number;
pub(in crate::record) mod ordered_json;
pub(crate) mod scratch;
pub(crate) mod skip;
pub(crate) mod state_patch;
