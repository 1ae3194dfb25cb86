//! Skills: named sets of tools that the model activates on demand.
//!
//! A model with forty tools chooses badly, and every request contains all their schemas. With skills it reads one line about
//! each set and activates those that it needs; their tools are available from its next answer on.

use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::listed;
use crate::dsl::{
    IntoTool, NoServices, Options, Plugin, PluginState, Preparation, RequestEdit, Services, State, Tool, usage_panic,
};
use crate::error::{Error, Result};

const ACTIVATE: &str = "skill.activate";
const DEACTIVATE: &str = "skill.deactivate";

/// Gives the model named sets of tools, which it activates and deactivates with `skill.activate` and `skill.deactivate`.
///
/// A context item named `skills` has a line about every skill. The tools of active skills are tools of the brain:
/// they see and change its state. Activation persists across iterations and across the loops of a brain.
/// Removed skills are ignored. Two skills may share a tool.
///
/// ```
/// use positronic_core::dsl::Tool;
/// use positronic_core::plugins::Skills;
/// use positronic_core::prelude::*;
///
/// fn read_mail() -> Tool {
///     Tool::new("read_mail", |t| t.description("Reads new mail").read_only().execute(async |_: NoArgs, _| Ok("none")))
/// }
/// fn read_calendar() -> Tool {
///     Tool::new("read_calendar", |t| t.description("Reads today").read_only().execute(async |_: NoArgs, _| Ok("free")))
/// }
///
/// let skills = Skills::new()
///     .skill("email", "Read and write mail", [read_mail()])
///     .skill("calendar", "See and plan appointments", [read_calendar()])
///     .active(["email"]);
/// let brain = brain("Assistant").r#loop("Help", move |cx| cx.system("Help.").plugin(skills.clone()));
/// # let _ = brain;
/// ```
///
/// A skill with a tool of the same name as another tool of the loop fails the loop, even while the skill is inactive.
#[must_use = "skills have their effect when they are given to a loop"]
pub struct Skills<O = (), S = (), V = NoServices> {
    skills: Vec<Skill<O, S, V>>,
}

struct Skill<O, S, V> {
    name: String,
    description: String,
    tools: Vec<Tool<O, S, V>>,
    active: bool,
}

/// The state of [`Skills`]; read it with `cx.plugin_state::<ActiveSkills>()`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ActiveSkills {
    /// The names of the active skills, in the order of activation.
    pub active: Vec<String>,
}

impl PluginState for ActiveSkills {
    const NAME: &'static str = "skills";
}

impl<O: Options, S: State, V: Services> Skills<O, S, V> {
    /// Creates an empty set.
    pub const fn new() -> Self {
        Self { skills: Vec::new() }
    }

    /// Adds a skill: its name, its description for the model, and its tools.
    ///
    /// # Panics
    ///
    /// If there is already a skill with this name, or another skill has a different tool with the same name.
    #[track_caller]
    pub fn skill<T: IntoTool<O, S, V>>(
        mut self,
        name: impl Into<String>,
        description: impl Into<String>,
        tools: impl IntoIterator<Item = T>,
    ) -> Self {
        let (name, description) = (name.into(), description.into());
        let tools: Vec<_> = tools.into_iter().map(IntoTool::into_tool).collect();
        if self.find(&name).is_some() {
            usage_panic(&format!("there are two skills named `{name}`; give one of them another name"));
        }
        for (other, known) in self.skills.iter().flat_map(|skill| skill.tools.iter().map(|tool| (&skill.name, tool))) {
            if let Some(tool) =
                tools.iter().find(|tool| tool.decl().id == known.decl().id && tool.decl() != known.decl())
            {
                let tool = &tool.decl().id;
                usage_panic(&format!(
                    "the skills `{other}` and `{name}` have two tools named `{tool}`; rename one of them"
                ));
            }
        }
        self.skills.push(Skill { name, description, tools, active: false });
        self
    }

    /// Activates skills initially; the model may deactivate them.
    ///
    /// # Panics
    ///
    /// If a skill does not exist.
    #[track_caller]
    pub fn active<'n>(mut self, names: impl IntoIterator<Item = &'n str>) -> Self {
        for name in names {
            match self.skills.iter_mut().find(|skill| skill.name == name) {
                Some(skill) => skill.active = true,
                None => usage_panic(&self.unknown(name)),
            }
        }
        self
    }
}

impl<O, S, V> Skills<O, S, V> {
    fn find(&self, name: &str) -> Option<&Skill<O, S, V>> {
        self.skills.iter().find(|skill| skill.name == name)
    }

    fn unknown(&self, name: &str) -> String {
        format!("there is no skill `{name}`; the skills are {}", listed(self.skills.iter().map(|skill| &skill.name)))
    }
}

impl<O: Options, S: State, V: Services> Skills<O, S, V> {
    /// Returns the text about the skills for the model.
    fn described(&self, state: &ActiveSkills) -> String {
        let mut lines = vec![
            "You have skills. The tools of a skill are there from your next answer on after `skill_activate`, until \
             `skill_deactivate`. Activate what your task needs."
                .to_owned(),
        ];
        for skill in &self.skills {
            let active = if state.active.contains(&skill.name) { " (active)" } else { "" };
            let Skill { name, description, tools, .. } = skill;
            lines.push(format!("- `{name}`{active}: {description}. Tools: {}", tool_names(tools)));
        }
        lines.join("\n")
    }

    fn active_tools(&self, state: &ActiveSkills) -> Vec<&Tool<O, S, V>> {
        let mut seen = BTreeSet::new();
        let active = state.active.iter().filter_map(|name| self.find(name));
        active.flat_map(|skill| &skill.tools).filter(|tool| seen.insert(&tool.decl().id)).collect()
    }
}

fn tool_names<O: Options, S: State, V: Services>(tools: &[Tool<O, S, V>]) -> String {
    listed(tools.iter().map(|tool| tool.decl().id.wire_name()))
}

impl<O: Options, S: State, V: Services> Default for Skills<O, S, V> {
    fn default() -> Self {
        Self::new()
    }
}

/// The arguments of the tools.
#[derive(Debug, Deserialize, JsonSchema)]
struct Named {
    /// The skill's name
    skill: String,
}

impl<O: Options, S: State, V: Services> Plugin<O, S, V> for Skills<O, S, V> {
    type State = ActiveSkills;

    fn initial(&self) -> ActiveSkills {
        let active = self.skills.iter().filter(|skill| skill.active);
        ActiveSkills { active: active.map(|skill| skill.name.clone()).collect() }
    }

    async fn prepare(&self, cx: &mut Preparation<'_, O, S, V, ActiveSkills>) -> Result<()> {
        let described = self.described(&cx.state);
        cx.context("skills", described);
        let skills = self.clone();
        cx.tool(ACTIVATE, |t| {
            let t = t.description("Activates a skill: its tools are there from your next answer on").idempotent();
            t.execute(move |Named { skill }, cx| {
                let known = skills.find(&skill).map(|skill| tool_names(&skill.tools));
                let answer = match known {
                    None => Err(Error::new(skills.unknown(&skill))),
                    Some(_) if cx.state.active.contains(&skill) => {
                        Ok(cx.result(format!("`{skill}` is active already")))
                    }
                    Some(tools) => {
                        let reply = cx.result(format!("`{skill}` is active; its tools are {tools}"));
                        Ok(reply.update(|state| {
                            if !state.active.contains(&skill) {
                                state.active.push(skill);
                            }
                        }))
                    }
                };
                async { answer }
            })
        })?;
        let skills = self.clone();
        cx.tool(DEACTIVATE, |t| {
            let t = t.description("Deactivates a skill: its tools go").idempotent();
            t.execute(move |Named { skill }, cx| {
                let answer = if cx.state.active.contains(&skill) {
                    let reply = cx.result(format!("`{skill}` is not active any more"));
                    Ok(reply.update(move |state| state.active.retain(|active| *active != skill)))
                } else if skills.find(&skill).is_some() {
                    Ok(cx.result(format!("`{skill}` is not active")))
                } else {
                    Err(Error::new(skills.unknown(&skill)))
                };
                async { answer }
            })
        })?;
        let tools = self.active_tools(&cx.state);
        cx.brain_tools(tools)
    }

    async fn request(&self, cx: &mut RequestEdit<'_, O, S, V, ActiveSkills>) -> Result<()> {
        let active: BTreeSet<_> = self.active_tools(&cx.state).iter().map(|tool| tool.decl().id.clone()).collect();
        let others: BTreeSet<_> = cx.tools().map(|tool| &tool.id).filter(|id| !active.contains(*id)).collect();
        for skill in &self.skills {
            if let Some(tool) = skill.tools.iter().find(|tool| others.contains(&tool.decl().id)) {
                let (tool, skill) = (&tool.decl().id, &skill.name);
                return Err(Error::new(format!(
                    "the tool `{tool}` of the skill `{skill}` has the name of another tool of the loop; rename one of them"
                )));
            }
        }
        Ok(())
    }
}

impl<O, S, V> Clone for Skills<O, S, V> {
    fn clone(&self) -> Self {
        Self { skills: self.skills.clone() }
    }
}

impl<O, S, V> Clone for Skill<O, S, V> {
    fn clone(&self) -> Self {
        let Self { name, description, tools, active } = self;
        Self { name: name.clone(), description: description.clone(), tools: tools.clone(), active: *active }
    }
}

impl<O, S, V> fmt::Debug for Skills<O, S, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.skills.iter().map(|skill| &skill.name)).finish()
    }
}
