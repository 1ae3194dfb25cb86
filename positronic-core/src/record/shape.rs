//! The shape of a brain in a run's first event, so that the machine does not need its code.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::record::encoding::content_hash::{ContentHash, hash_json};
use crate::record::encoding::ordered_json::OrderedJson;
use crate::record::encoding::skip::is_default;

/// The stages of a brain, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Shape(pub Vec<StageShape>);

/// One stage of a brain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageShape {
    /// The stage's name, unique within its brain.
    pub name: String,
    /// The kind of stage.
    pub kind: StageKind,
    /// The fingerprint of a nested brain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brain: Option<ContentHash>,
    /// The webhooks for which it waits, in order; `reply` for a person's reply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub webhooks: Vec<String>,
    /// The arms of a branch, or the brains that run at the same time, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arms: Vec<ArmShape>,
    /// The maximum number of rounds of a `repeat`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rounds: u32,
    /// Whether it can be undone after it has completed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub undo: bool,
    /// How long a loop, or each brain that the stage runs, may take, stored in microseconds.
    #[serde(default, with = "crate::record::encoding::micros::optional", skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// Whether a loop takes tools of the run's caller.
    #[serde(default, skip_serializing_if = "is_default")]
    pub caller_tools: bool,
    /// How long a call of one of them waits for its result, stored in microseconds; without an end if not set.
    #[serde(default, with = "crate::record::encoding::micros::optional", skip_serializing_if = "Option::is_none")]
    pub caller_timeout: Option<Duration>,
}

/// One arm of a branch, or one of the brains that run at the same time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArmShape {
    /// Its name, unique within the stage.
    pub name: String,
    /// The fingerprint of its brain; an arm without a brain computes the next state at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brain: Option<ContentHash>,
    /// Whether its failure is one of the stage's results, and does not fail the stage.
    #[serde(default, skip_serializing_if = "is_default")]
    pub may_fail: bool,
}

/// The kinds of stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum StageKind {
    /// A function from one state to the next.
    Step,
    /// A model that calls tools until the work is done.
    Loop,
    /// A nested brain.
    Brain,
    /// One of several arms, each with or without a brain.
    Branch,
    /// Several brains at the same time; the stage ends with the last one.
    All,
    /// Several brains at the same time; the first that completes ends the stage.
    Race,
    /// One brain for each item of a list.
    Map,
    /// A nested brain that runs again until the state is done.
    Repeat,
    /// A check that ends its brain if it does not pass.
    Guard,
    /// A question to a model, with an answer of one type.
    Prompt,
    /// A wait for webhooks, a person's reply or a time.
    Wait,
    /// A question to a person, who fills in a form.
    #[strum(to_string = "question")]
    AskPerson,
    /// A wait for a time alone.
    Sleep,
    /// A wait for the end of a child run.
    Join,
}

impl StageShape {
    /// Creates the shape of a stage without brains, webhooks and arms.
    #[must_use]
    pub fn new(name: impl Into<String>, kind: StageKind) -> Self {
        let (webhooks, arms) = (Vec::new(), Vec::new());
        Self {
            name: name.into(),
            kind,
            brain: None,
            webhooks,
            arms,
            rounds: 0,
            undo: false,
            timeout: None,
            caller_tools: false,
            caller_timeout: None,
        }
    }
}

impl StageKind {
    /// Returns whether a stage of this kind is a dialogue with a model: iterations with messages, answers and calls.
    #[must_use]
    pub const fn has_iterations(self) -> bool {
        match self {
            Self::Loop => true,
            Self::Step
            | Self::Branch
            | Self::All
            | Self::Race
            | Self::Map
            | Self::Repeat
            | Self::Guard
            | Self::Prompt
            | Self::Brain
            | Self::Wait
            | Self::AskPerson
            | Self::Sleep
            | Self::Join => false,
        }
    }

    /// Returns whether a stage of this kind runs a function of the author: a step, or a prompt.
    #[must_use]
    pub const fn is_step(self) -> bool {
        matches!(self, Self::Step | Self::Prompt)
    }

    /// Returns whether a stage of this kind has nothing below it but its questions to models: while it is open, it works itself.
    #[must_use]
    pub const fn is_leaf(self) -> bool {
        match self {
            Self::Step | Self::Guard | Self::Prompt | Self::Wait | Self::AskPerson | Self::Sleep | Self::Join => true,
            Self::Loop | Self::Brain | Self::Branch | Self::All | Self::Race | Self::Map | Self::Repeat => false,
        }
    }
}

impl Shape {
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Hashes the identity of a brain: title, version, options schema, stages. The order of the options' fields does not
    /// count, nor do timeouts.
    #[must_use]
    pub fn fingerprint(&self, title: &str, version: u32, options_schema: &serde_json::Value) -> ContentHash {
        let untimed = |stage: &StageShape| StageShape { timeout: None, ..stage.clone() };
        let stages: Vec<StageShape> = self.0.iter().map(untimed).collect();
        hash_json(&serde_json::json!({
            "title": title,
            "version": version,
            "options": OrderedJson::of_schema(options_schema).to_value(),
            "stages": stages,
        }))
    }
}
