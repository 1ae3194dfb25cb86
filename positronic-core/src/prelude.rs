//! The names that an author's file begins with.

pub use crate::dsl::{Brain, NoArgs, ToolContext, Webhook, brain, webhook};
pub use crate::error::{Error, Result};
pub use crate::record::OnLimit;
