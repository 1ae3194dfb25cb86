//! Events, and what is part of no other record: failures, results, undo.

pub(in crate::record) mod event_envelope;
pub(in crate::record) mod event_fields;
pub(in crate::record) mod event_kind;
pub(in crate::record) mod failure;
pub(in crate::record) mod repair;
pub(in crate::record) mod result;
pub(in crate::record) mod routing;
pub(in crate::record) mod undo;
