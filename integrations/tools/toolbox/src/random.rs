//! Random numbers for names that others must not guess.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// Returns a number that other processes cannot predict: a keyed hash, whose key comes from the operating system.
pub(super) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
