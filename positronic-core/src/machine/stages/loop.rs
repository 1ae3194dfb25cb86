//! Loops: their events, and the calls of their batches.

pub(in crate::machine) mod batch;
mod faults;
pub(in crate::machine) mod fold;

pub(in crate::machine) use faults::EMPTY;
