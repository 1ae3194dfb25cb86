//! The structure of a brain as data.

use schemars::JsonSchema;
use serde::Serialize;

use super::{ArmDefinition, BrainDefinition, StageDefinition};
use crate::record::{StageKind, StageShape, WaitSpec};

/// The structure of a brain: its stages, and the brains that they run.
///
/// The tools of a loop are not part of it: its closure decides on them before each iteration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Structure {
    /// The title of the brain.
    pub title: String,
    /// The version set by its author.
    pub version: u32,
    /// The stages, in order.
    pub stages: Vec<StageStructure>,
}

/// One stage of a brain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct StageStructure {
    /// Its name, unique within the brain.
    pub name: String,
    /// Its kind: `step`, `loop`, `brain`, …
    #[schemars(with = "String")]
    pub kind: StageKind,
    /// The brain that it runs; a `map` runs it for each item, a `repeat` in each round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brain: Option<Structure>,
    /// The arms of a branch, or the brains of a group that has several, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arms: Vec<ArmStructure>,
    /// The webhooks for which it waits; `reply` for a person's reply. Of a loop, those for which its tools wait, as its author declares them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub webhooks: Vec<String>,
    /// The maximum number of rounds of a `repeat`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u32>,
    /// Whether it can be undone after it has completed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undo: bool,
}

/// One arm of a branch, or one brain of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct ArmStructure {
    /// Its name, unique within the stage.
    pub name: String,
    /// Its brain; an arm without one computes the next state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brain: Option<Structure>,
}

impl Structure {
    /// Returns the webhooks for which the stages wait, also those of nested brains, each with the names of the stages that lead to it.
    #[must_use]
    pub fn waits(&self) -> Vec<(String, &str)> {
        let mut waits = Vec::new();
        self.collect_waits("", &mut waits);
        waits
    }

    fn collect_waits<'a>(&'a self, outer: &str, waits: &mut Vec<(String, &'a str)>) {
        for stage in &self.stages {
            let at = if outer.is_empty() { stage.name.clone() } else { format!("{outer}/{}", stage.name) };
            let webhooks = stage.webhooks.iter().filter(|name| !is_reserved(name));
            waits.extend(webhooks.map(|name| (at.clone(), name.as_str())));
            for brain in stage.brain.iter().chain(stage.arms.iter().filter_map(|arm| arm.brain.as_ref())) {
                brain.collect_waits(&at, waits);
            }
        }
    }
}

/// Returns whether a wait is for a reply, a child run or a time, and not for a webhook.
fn is_reserved(name: &str) -> bool {
    name == WaitSpec::REPLY || name == WaitSpec::CHILD
}

impl BrainDefinition {
    /// Returns the structure of the brain, with all brains that its stages run.
    #[must_use]
    pub fn structure(&self) -> Structure {
        let stages = self.stages.iter().map(StageDefinition::structure).collect();
        Structure { title: self.title.clone(), version: self.version, stages }
    }
}

impl StageDefinition {
    fn structure(&self) -> StageStructure {
        let StageShape { name, kind, rounds, undo, .. } = self.shape();
        let webhooks = self.webhooks();
        let brain = self.body.nested(None).map(|nested| nested.definition.structure());
        let arms = self.body.arms().iter().map(ArmDefinition::structure).collect();
        StageStructure { name, kind, brain, arms, webhooks, rounds: (rounds > 0).then_some(rounds), undo }
    }
}

impl ArmDefinition {
    fn structure(&self) -> ArmStructure {
        let brain = self.nested().map(|nested| nested.definition.structure());
        ArmStructure { name: self.name.clone(), brain }
    }
}
