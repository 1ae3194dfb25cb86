//! Handoffs of a loop: to another brain, and back.

use schemars::JsonSchema;
use serde::Deserialize;

use super::brain::IntoBrain;
use super::r#loop::Loop;
use super::services::{Services, Within};
use super::trait_bounds::{Options, State};

/// The description of a tool with which a model hands the dialogue back.
pub(super) const HAND_BACK: &str = "Hand the conversation back when you cannot help with the request.";

/// The arguments of that tool.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct HandBack {
    /// What the person wants, and why you hand it back.
    pub(super) reason: String,
}

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
