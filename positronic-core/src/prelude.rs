//! The names that most files with brains need.
//!
//! They are few, so that an author's own `Reply` or `Search` does not collide with one of them.

#[cfg(feature = "macros")]
pub use positronic_macros::{Actions, brain, tool};

pub use crate::dsl::{Brain, NoArgs, Tool, ToolContext, ToolReply, Webhook, brain, webhook};
pub use crate::error::{Error, IoContext as _, Result};
pub use crate::record::OnLimit;
pub use crate::runner::Runner;
