//! Words and layout: the only place that puts runs into English.
//!
//! [`View`] takes in events, streamed pieces and the passing of time; [`render`] writes it as a frame, to a string.
//! Two reporters show a view while the run goes on: [`Live`] repaints the end of a terminal, [`Plain`] appends one
//! line for each event worth telling. A recorded run is shown by the same code.

mod answers;
pub(crate) mod arguments;
pub(crate) mod conversation;
pub(crate) mod conversation_table;
pub(crate) mod costs;
pub(crate) mod figures;
mod frame;
mod layout;
pub(crate) mod limits;
mod lines;
mod live;
pub(crate) mod markdown;
mod painter;
mod plain;
pub(crate) mod report;
mod routing;
pub(crate) mod run_table;
pub(crate) mod short_ids;
mod style;
mod summary;
pub(crate) mod table;
mod talk;
pub(crate) mod text;
mod view;
pub(crate) mod words;

#[cfg(test)]
mod live_tests;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use frame::render;
pub(crate) use live::Live;
pub(crate) use painter::{Frame, Painter};
pub(crate) use plain::Plain;
pub(crate) use style::{Line, Sign, Style, Tone};
pub(crate) use talk::shown as talk_text;
pub(crate) use view::View;
