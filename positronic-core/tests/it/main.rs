//! The core from the outside.

mod first;
