//! The stages of a brain: a builder per kind, which erases the author's types.

mod all;
mod alternatives;
mod ask_person;
mod brain;
mod branch;
mod event;
mod guard;
mod join_child;
mod r#loop;
mod loop_with_output;
mod map;
mod prompt;
mod race;
mod repeat;
mod sleep;
mod step;
mod tries;
mod wait;

pub use all::{All, Member, Members};
pub use ask_person::{Form, FormAnswer, form};
pub use brain::{BrainStage, Mapped, NestedOptions, Unmapped};
pub use branch::{Arm, Arms, Branch};
pub use event::SameEvent;
pub use guard::{GuardCheck, Skipped};
pub use r#loop::IntoLoop;
pub use loop_with_output::{IntoLoopWithOutput, LoopWithOutput};
pub use map::{Each, IntoEach, each};
pub use prompt::{AskedFor, IntoQuestion, PromptContext, PromptQuestion};
pub use race::{Race, RaceOf};
pub use tries::{EndsInLoop, EndsInTimed, EndsInTried, Retry, Timed, Tried, Untried};
pub use wait::{WaitFor, Waits};
