//! Toolsets: named sets of tools that the model activates on demand.
//!
//! A model with forty tools chooses badly, and every request contains all their schemas. With toolsets it reads one line about
//! each set and activates those that it needs; their tools are available from its next answer on.

use std::collections::BTreeSet;

use derive_where::derive_where;
use positronic_core::dsl::{IntoTool, Options, Plugin, PluginState, Preparation, RequestEdit, Services, State, Tool};
use positronic_core::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::listed;
use super::usage_panic::usage_panic;

const ACTIVATE: &str = "toolset.activate";
const DEACTIVATE: &str = "toolset.deactivate";

/// Gives the model named sets of tools, which it activates and deactivates with `toolset.activate` and `toolset.deactivate`.
///
/// A context item named `toolsets` has a line about every toolset. The tools of active toolsets are tools of the brain:
/// they see and change its state. Activation persists across iterations and across the loops of a brain.
/// Removed toolsets are ignored. Two toolsets may share a tool.
///
/// ```
/// use positronic_core::dsl::Tool;
/// use positronic_plugins::Toolsets;
/// use positronic_core::prelude::*;
///
/// fn read_mail() -> Tool {
///     Tool::new("read_mail", |t| t.description("Reads new mail").read_only().execute(async |_: NoArgs, _| Ok("none")))
/// }
/// fn read_calendar() -> Tool {
///     Tool::new("read_calendar", |t| t.description("Reads today").read_only().execute(async |_: NoArgs, _| Ok("free")))
/// }
///
/// let toolsets = Toolsets::new()
///     .set("email", "Read and write mail", [read_mail()])
///     .set("calendar", "See and plan appointments", [read_calendar()])
///     .active(["email"]);
/// let brain = brain("Assistant").r#loop("Help", move |cx| cx.system("Help.").plugin(toolsets.clone()));
/// # let _ = brain;
/// ```
///
/// A toolset with a tool of the same name as another tool of the loop fails the loop, even while the toolset is inactive.
#[must_use = "toolsets have their effect when they are given to a loop"]
#[derive_where(Clone, Debug)]
pub struct Toolsets<O = (), S = (), V = ()> {
    toolsets: Vec<Toolset<O, S, V>>,
}

#[derive_where(Clone, Debug)]
struct Toolset<O, S, V> {
    name: String,
    description: String,
    tools: Vec<Tool<O, S, V>>,
    active: bool,
}

/// The state of [`Toolsets`]; read it with `cx.plugin_state::<ActiveToolsets>()`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ActiveToolsets {
    /// The names of the active toolsets, in the order of activation.
    pub active: Vec<String>,
}

impl PluginState for ActiveToolsets {
    const NAME: &'static str = "toolsets";
}

impl<O: Options, S: State, V: Services> Toolsets<O, S, V> {
    /// Creates an empty set.
    pub const fn new() -> Self {
        Self { toolsets: Vec::new() }
    }

    /// Adds a toolset: its name, its description for the model, and its tools.
    ///
    /// # Panics
    ///
    /// If there is already a toolset with this name, or another toolset has a different tool with the same name.
    #[track_caller]
    pub fn set<T: IntoTool<O, S, V>>(
        mut self,
        name: impl Into<String>,
        description: impl Into<String>,
        tools: impl IntoIterator<Item = T>,
    ) -> Self {
        let (name, description) = (name.into(), description.into());
        let tools: Vec<_> = tools.into_iter().map(IntoTool::into_tool).collect();
        if self.find(&name).is_some() {
            usage_panic(&format!("there are two toolsets named `{name}`; give one of them another name"));
        }
        for (other, known) in
            self.toolsets.iter().flat_map(|toolset| toolset.tools.iter().map(|tool| (&toolset.name, tool)))
        {
            if let Some(tool) =
                tools.iter().find(|tool| tool.decl().id == known.decl().id && tool.decl() != known.decl())
            {
                let tool = &tool.decl().id;
                usage_panic(&format!(
                    "the toolsets `{other}` and `{name}` have two tools named `{tool}`; rename one of them"
                ));
            }
        }
        self.toolsets.push(Toolset { name, description, tools, active: false });
        self
    }

    /// Activates toolsets initially; the model may deactivate them.
    ///
    /// # Panics
    ///
    /// If a toolset does not exist.
    #[track_caller]
    pub fn active<'n>(mut self, names: impl IntoIterator<Item = &'n str>) -> Self {
        for name in names {
            match self.toolsets.iter_mut().find(|toolset| toolset.name == name) {
                Some(toolset) => toolset.active = true,
                None => usage_panic(&self.unknown(name)),
            }
        }
        self
    }
}

impl<O, S, V> Toolsets<O, S, V> {
    fn find(&self, name: &str) -> Option<&Toolset<O, S, V>> {
        self.toolsets.iter().find(|toolset| toolset.name == name)
    }

    fn unknown(&self, name: &str) -> String {
        format!(
            "there is no toolset `{name}`; the toolsets are {}",
            listed(self.toolsets.iter().map(|toolset| &toolset.name))
        )
    }
}

impl<O: Options, S: State, V: Services> Toolsets<O, S, V> {
    /// Returns the text about the toolsets for the model.
    fn described(&self, state: &ActiveToolsets, [activate, deactivate]: [String; 2]) -> String {
        let mut lines = vec![format!(
            "Tools come in toolsets. The tools of a toolset are available from your next answer on after `{activate}`, until \
             `{deactivate}`. Activate the toolsets that your task needs."
        )];
        for toolset in &self.toolsets {
            let active = if state.active.contains(&toolset.name) { " (active)" } else { "" };
            let Toolset { name, description, tools, .. } = toolset;
            lines.push(format!("- `{name}`{active}: {description}. Tools: {}", tool_names(tools)));
        }
        lines.join("\n")
    }

    fn active_tools(&self, state: &ActiveToolsets) -> Vec<&Tool<O, S, V>> {
        let mut seen = BTreeSet::new();
        let active = state.active.iter().filter_map(|name| self.find(name));
        active.flat_map(|toolset| &toolset.tools).filter(|tool| seen.insert(&tool.decl().id)).collect()
    }
}

fn tool_names<O: Options, S: State, V: Services>(tools: &[Tool<O, S, V>]) -> String {
    listed(tools.iter().map(|tool| tool.decl().id.wire_name()))
}

impl<O: Options, S: State, V: Services> Default for Toolsets<O, S, V> {
    fn default() -> Self {
        Self::new()
    }
}

/// The arguments of the tools.
#[derive(Debug, Deserialize, JsonSchema)]
struct Named {
    /// The toolset's name
    toolset: String,
}

impl<O: Options, S: State, V: Services> Plugin<O, S, V> for Toolsets<O, S, V> {
    type State = ActiveToolsets;

    fn initial(&self) -> ActiveToolsets {
        let active = self.toolsets.iter().filter(|toolset| toolset.active);
        ActiveToolsets { active: active.map(|toolset| toolset.name.clone()).collect() }
    }

    fn tool_names(&self, own: &dyn Fn(&str) -> String) -> Vec<String> {
        let tools = self.toolsets.iter().flat_map(|toolset| &toolset.tools).map(|tool| tool.decl().id.to_string());
        [ACTIVATE, DEACTIVATE].map(own).into_iter().chain(tools).collect()
    }

    async fn prepare(&self, cx: &mut Preparation<'_, O, S, V, ActiveToolsets>) -> Result<()> {
        let tools = [ACTIVATE, DEACTIVATE].map(|tool| cx.tool_name(tool).replace('.', "_"));
        let described = self.described(&cx.state, tools);
        cx.context("toolsets", described);
        let toolsets = self.clone();
        cx.tool(ACTIVATE, |t| {
            let t = t.description("Activates a toolset: its tools are available from your next answer on").idempotent();
            t.execute(move |Named { toolset }, cx| {
                let known = toolsets.find(&toolset).map(|toolset| tool_names(&toolset.tools));
                let answer = match known {
                    None => Err(Error::new(toolsets.unknown(&toolset))),
                    Some(_) if cx.state.active.contains(&toolset) => {
                        Ok(cx.result(format!("`{toolset}` is active already")))
                    }
                    Some(tools) => {
                        let reply = cx.result(format!("`{toolset}` is active; its tools are {tools}"));
                        Ok(reply.update(|state| {
                            if !state.active.contains(&toolset) {
                                state.active.push(toolset);
                            }
                        }))
                    }
                };
                async { answer }
            })
        })?;
        let toolsets = self.clone();
        cx.tool(DEACTIVATE, |t| {
            let t = t.description("Deactivates a toolset: its tools are no longer available").idempotent();
            t.execute(move |Named { toolset }, cx| {
                let answer = if cx.state.active.contains(&toolset) {
                    let reply = cx.result(format!("`{toolset}` is no longer active"));
                    Ok(reply.update(move |state| state.active.retain(|active| *active != toolset)))
                } else if toolsets.find(&toolset).is_some() {
                    Ok(cx.result(format!("`{toolset}` is not active")))
                } else {
                    Err(Error::new(toolsets.unknown(&toolset)))
                };
                async { answer }
            })
        })?;
        let tools = self.active_tools(&cx.state);
        cx.brain_tools(tools)
    }

    async fn request(&self, cx: &mut RequestEdit<'_, O, S, V, ActiveToolsets>) -> Result<()> {
        let active: BTreeSet<_> = self.active_tools(&cx.state).iter().map(|tool| tool.decl().id.clone()).collect();
        let others: BTreeSet<_> = cx.tools().map(|tool| &tool.id).filter(|id| !active.contains(*id)).collect();
        for toolset in &self.toolsets {
            if let Some(tool) = toolset.tools.iter().find(|tool| others.contains(&tool.decl().id)) {
                let (tool, toolset) = (&tool.decl().id, &toolset.name);
                return Err(Error::new(format!(
                    "the tool `{tool}` of the toolset `{toolset}` has the name of another tool of the loop; rename one of them"
                )));
            }
        }
        Ok(())
    }
}
