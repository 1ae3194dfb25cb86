//! What a person sees of a run: a fold of its events.
//!
//! [`View`] takes in events, streamed pieces and the passing of time; [`render`] writes it as a frame, to a string.
//! Two reporters show a view while the run goes on: [`Live`] repaints the end of a terminal, [`Plain`] appends one
//! line for each event worth telling. A recorded run is shown by the same code.

mod answers;
pub(crate) mod figures;
mod frame;
pub(crate) mod given;
mod layout;
mod lines;
mod live;
mod plain;
mod style;
mod summary;
mod talk;
pub(crate) mod text;
mod view;
mod way;
mod words;

#[cfg(test)]
mod live_tests;
#[cfg(test)]
pub(crate) mod stories;
#[cfg(test)]
mod tests;

pub use frame::render;
pub(crate) use live::Foot;
pub use live::Live;
pub use plain::Plain;
pub use style::Style;
pub(crate) use style::{Line, Sign, Tone};
pub(crate) use talk::shown as talk_text;
pub use view::View;
pub(crate) use words::{by, granted, why};
