//! Words and layout: the only place that puts runs into English.
//!
//! [`View`] takes in events, streamed pieces and the passing of time; [`render`] writes it as a frame, to a string.
//! Two reporters show a view while the run continues: [`Live`] repaints the end of a terminal, [`Plain`] appends one
//! line for each notable event. A recorded run is shown by the same code.

mod answer_lines;
mod arguments;
mod budget_text;
mod chat_layout;
mod conversation;
pub(crate) mod cost_line;
pub(crate) mod diagram;
pub(crate) mod figures;
mod fit_height;
mod layout;
mod lines;
mod live;
pub(crate) mod markdown;
mod model_routing;
mod painter;
mod plain;
mod preview;
mod report;
pub(crate) mod sentences;
mod shown_answer;
mod style;
mod summary;
mod tables;
mod text;
mod view;
pub(crate) mod words;

#[cfg(test)]
mod live_tests;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use arguments::{ArgumentLayout, extent};
pub(crate) use budget_text::{budget_limits, budget_usage, limit_question};
pub(crate) use chat_layout::chat_text;
pub(crate) use conversation::{conversation_markdown, is_own, plain_answer};
pub(crate) use fit_height::render;
pub(crate) use live::Live;
pub(crate) use painter::{Frame, Painter};
pub(crate) use plain::Plain;
pub(crate) use preview::Graphics;
pub(crate) use report::report_markdown;
pub(crate) use style::{Line, Sign, Style, Tone};
pub(crate) use tables::conversation_table::{ConversationRow, conversation_table};
pub(crate) use tables::cost_table::{CostRow, cost_table};
pub(crate) use tables::model_table::{CheckRow, ProviderRow, check_table, provider_table};
pub(crate) use tables::run_table::{Differences, run_table, truncate};
pub(crate) use tables::short_ids::{DASHES, ShortIds};
pub(crate) use tables::table::{Table, aligned};
pub(crate) use text::{arguments, escaped_json, one_line, printable, sanitise, shorten, value_line, width, wrap};
pub(crate) use view::View;
