//! Conversations: consecutive runs with a shared history and a shared budget.

mod budget;
pub(super) mod conversation;
pub(super) mod conversations;
pub(super) mod error;
pub(super) mod histories;
