//! `/pending`: what waits for a person or a program, and the decisions about it.

pub(crate) mod closed_question;
pub(crate) mod decision;
pub(crate) mod decisions;
pub(crate) mod history;
pub(crate) mod item_context;
pub(crate) mod list;
pub(crate) mod pending_item;
