//! `/conversations`: lists them, and sends messages to them.

pub(crate) mod attachments;
pub(crate) mod list;
pub(crate) mod message_key;
pub(crate) mod messages;
