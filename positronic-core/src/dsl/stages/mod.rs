//! The stages of a brain: a builder per kind, which erases the author's types.

mod brain;
mod r#loop;
mod step;

pub use brain::{BrainStage, Mapped, NestedOptions, Unmapped};
pub use r#loop::IntoLoop;
