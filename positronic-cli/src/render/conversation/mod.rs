//! A conversation as Markdown, and its answers as plain text.

mod answer;
mod markdown;

pub(crate) use answer::{is_own, plain_answer};
pub(crate) use markdown::conversation_markdown;
