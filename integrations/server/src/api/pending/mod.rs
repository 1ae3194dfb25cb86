//! `/pending`: what waits for a person or a program, and the decisions about it.

pub(crate) mod decision;
pub(crate) mod decisions;
pub(crate) mod history;
pub(crate) mod item;
pub(crate) mod items;
pub(crate) mod list;
pub(crate) mod questions;
