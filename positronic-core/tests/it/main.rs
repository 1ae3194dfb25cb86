//! The core from the outside.

mod first;
mod layers;
