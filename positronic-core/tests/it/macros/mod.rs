//! The macros together with the library.

mod actions;
mod bench;
mod places;
mod runs;
mod tools;
