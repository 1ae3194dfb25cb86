//! One run at the command line: its events to the screen, its questions to the person or the cassette that answers, and
//! interrupts to the run.

pub(crate) mod answers;
pub(crate) mod driver;
pub(crate) mod interrupts;
pub(crate) mod outcome;
pub(crate) mod pending;
#[cfg(test)]
mod pending_tests;
pub(crate) mod screen;
pub(crate) mod signals;
