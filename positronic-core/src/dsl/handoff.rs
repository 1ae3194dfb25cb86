//! Handoffs of a loop: to another brain, and back.

use super::brain::IntoBrain;
use super::r#loop::Loop;
use super::services::{Services, Within};
use super::trait_bounds::{Options, State};

impl<O: Options, S: State, V: Services> Loop<O, S, V> {
    /// Adds a brain that the model can hand the dialogue over to: the brain's first loop continues it, and this loop ends with the
    /// brain's result. [`BrainTool::handoff`](super::BrainTool::handoff) has the details, and settings.
    ///
    /// # Panics
    ///
    /// If the name is invalid, or the loop already has a tool with this name.
    #[track_caller]
    pub fn handoff<B: IntoBrain<Services: Within<V>>>(self, name: &str, brain: B) -> Self {
        self.tool(name, |t| t.brain(brain).handoff())
    }

    /// Adds an exit tool with which the model hands the dialogue back to the loop that has handed it over: that loop goes on, reads the
    /// reason, and answers. Only a loop of the brain that took the dialogue over offers it. A text still ends the loop.
    ///
    /// For another description, use [`ToolBuilder::hand_back`](super::ToolBuilder::hand_back).
    ///
    /// # Panics
    ///
    /// If the name is invalid, or the loop already has a tool with this name.
    #[track_caller]
    pub fn hand_back(self, name: &str) -> Self {
        self.tool(name, super::ToolBuilder::hand_back)
    }
}
