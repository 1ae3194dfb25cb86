//! The structure of a brain as data.

use schemars::JsonSchema;
use serde::Serialize;

use super::{ArmDefinition, BrainDefinition, StageDefinition, ToolBody, ToolDefinition};
use crate::record::{StageKind, StageShape, ToolDecl, WaitSpec};

/// The structure of a brain: its stages, and the brains that they run.
///
/// Of the tools of a loop it has those that follow the loop. What its closure and its plugins add is decided before each iteration.
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
    /// The tools that follow a loop, which it has in every iteration, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolStructure>,
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

/// One tool that follows a loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct ToolStructure {
    /// Its name, unique within the loop.
    pub name: String,
    /// The description for the model.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Whether a call can need the approval of a person.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approval: bool,
    /// Whether a successful call can end the loop.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exit: bool,
    /// The brain that it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brain: Option<Structure>,
}

impl StageStructure {
    /// Lists the brains that it runs: its own, those of its arms, those of its tools.
    pub fn brains(&self) -> impl Iterator<Item = &Structure> {
        let arms = self.arms.iter().filter_map(|arm| arm.brain.as_ref());
        let tools = self.tools.iter().filter_map(|tool| tool.brain.as_ref());
        self.brain.iter().chain(arms).chain(tools)
    }
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
            for brain in stage.brains() {
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
        let webhooks = self.body.webhooks().to_vec();
        let tools = self
            .body
            .as_loop()
            .map_or_else(Vec::new, |stage| stage.tools.values().map(|tool| tool.structure()).collect());
        let brain = self.body.nested(None).map(|nested| nested.definition.structure());
        let arms = self.body.arms().iter().map(ArmDefinition::structure).collect();
        StageStructure { name, kind, brain, arms, tools, webhooks, rounds: (rounds > 0).then_some(rounds), undo }
    }
}

impl ToolDefinition {
    fn structure(&self) -> ToolStructure {
        let ToolDecl { id, description, flags, .. } = &self.decl;
        let brain = match &self.body {
            ToolBody::Brain(nested) => Some(nested.definition.structure()),
            ToolBody::Function { .. } => None,
        };
        ToolStructure {
            name: id.to_string(),
            description: description.clone(),
            approval: self.gate.is_some(),
            exit: flags.exit,
            brain,
        }
    }
}

impl ArmDefinition {
    fn structure(&self) -> ArmStructure {
        let brain = self.nested().map(|nested| nested.definition.structure());
        ArmStructure { name: self.name.clone(), brain }
    }
}
