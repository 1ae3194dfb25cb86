//! Handoffs of a loop: to another brain, and back.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::brain::IntoBrain;
use super::brain_tool::BrainTool;
use super::r#loop::Loop;
use super::services::{Services, Within};
use super::tool::{Tool, ToolBuilder};
use super::trait_bounds::{Options, State};
use crate::record::Dialogue;

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
        self.tool(name, ToolBuilder::hand_back)
    }
}

impl<O: Options, S: State, V: Services, O2: Options, R: DeserializeOwned + 'static> BrainTool<O, S, V, O2, R> {
    /// Hands the dialogue over to the brain: its first loop continues that of the call, and the loop of the call ends with the
    /// brain's result. If the brain fails, the call does, and the loop goes on.
    ///
    /// The answer with the call is not part of what the brain's loop reads, with all calls in it. A loop without an
    /// [`input`](super::Loop::input) of its own begins with the last message of the person.
    ///
    /// ```
    /// use positronic_core::prelude::*;
    /// use positronic_core::record::Dialogue;
    ///
    /// let billing = brain("Billing").r#loop("Talk", |cx| cx.system("You answer questions about bills."));
    /// let desk = brain("Desk").r#loop("Chat", move |cx| {
    ///     cx.system("Hand questions about bills over.")
    ///         .tool("billing", |t| t.brain(billing.clone()).handoff().dialogue(Dialogue::Said))
    /// });
    /// # let _ = desk;
    /// ```
    pub const fn handoff(mut self) -> Self {
        self.about.flags.handoff = true;
        self.about.flags.exit = true;
        self.about.flags.sequential = true;
        self
    }

    /// Makes it a [`handoff`](Self::handoff) after which the conversation stays with the brain: the next messages go to it, until it hands the
    /// dialogue back ([`Loop::hand_back`](super::Loop::hand_back)) or fails.
    ///
    /// The next run of the conversation starts the run's own brain. When it reaches the loop, the loop repeats the call without asking its
    /// model or a person, and the first loop of the brain reads the message. The brain starts with a new state, unless it
    /// [keeps](super::BrainBuilder::keep_state) its own. This holds for the loops of the run's brain, and for those of a brain that has
    /// taken over.
    ///
    /// ```
    /// use positronic_core::prelude::*;
    ///
    /// let billing = brain("Billing").r#loop("Talk", |cx| cx.system("You answer questions about bills.").hand_back("desk"));
    /// let desk = brain("Desk").r#loop("Chat", move |cx| {
    ///     cx.system("Hand questions about bills over.").tool("billing", |t| t.brain(billing.clone()).stay())
    /// });
    /// # let _ = desk;
    /// ```
    pub const fn stay(self) -> Self {
        let mut handoff = self.handoff();
        handoff.about.flags.stay = true;
        handoff
    }

    /// Sets how much of the dialogue the brain of a [`handoff`](Self::handoff) reads; all of it by default. For a summary, the model
    /// writes one into an option of the brain, which reads the last message of the person alone. With [`stay`](Self::stay), the summary stays that of
    /// the first call, so the next messages of the conversation read what was said since, as with [`Dialogue::Said`].
    ///
    /// ```
    /// use positronic_core::prelude::*;
    /// use positronic_core::record::Dialogue;
    /// use schemars::JsonSchema;
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize, JsonSchema)]
    /// struct Case {
    ///     /// What was said and found out so far
    ///     summary: String,
    /// }
    ///
    /// let billing = brain("Billing")
    ///     .options::<Case>()
    ///     .r#loop("Talk", |cx| cx.system(format!("You know all bills. So far: {}", cx.options.summary)));
    /// let desk = brain("Desk").r#loop("Chat", move |cx| {
    ///     cx.system("Hand questions about bills over.")
    ///         .tool("billing", |t| t.brain(billing.clone()).handoff().dialogue(Dialogue::Message))
    /// });
    /// # let _ = desk;
    /// ```
    pub const fn dialogue(mut self, dialogue: Dialogue) -> Self {
        self.dialogue = dialogue;
        self
    }
}

impl<O: Options, S: State, V: Services> ToolBuilder<O, S, V> {
    /// Makes a tool with which the model hands the dialogue back; see [`Loop::hand_back`](crate::dsl::Loop::hand_back). It has a description,
    /// unless one is set.
    #[must_use]
    pub fn hand_back(mut self) -> Tool<O, S, V> {
        (self.about.flags.exit, self.about.flags.hand_back, self.about.flags.idempotent) = (true, true, true);
        if self.about.description.is_empty() {
            self.about.description = HAND_BACK.to_owned();
        }
        self.execute(async |HandBack { reason }, _| Ok(reason))
    }
}

/// The description of a tool with which a model hands the dialogue back.
const HAND_BACK: &str = "Hand the conversation back when you cannot help with the request.";

/// The arguments of that tool.
#[derive(Debug, Deserialize, JsonSchema)]
struct HandBack {
    /// What the person wants, and why you hand it back.
    reason: String,
}
