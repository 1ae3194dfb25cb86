//! The embedded store.

mod suite;
