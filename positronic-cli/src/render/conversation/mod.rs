//! A conversation as Markdown, and its answers as plain text.

mod answer;
mod markdown;
mod remarks;

pub(crate) use answer::{is_own, plain};
pub(crate) use markdown::{Chapter, conversation_markdown};
