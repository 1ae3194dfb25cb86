//! A loop as a stage: the closure that configures each iteration, and what is the same in all of them, built with the brain.

use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use derive_where::derive_where;
use indexmap::IndexMap;
use indexmap::map::Entry;

use super::{AnyPlugin, LoopDefinition, PluginName, Scope, ToolDefinition};
use crate::error::Error;
use crate::record::{ToolId, ToolSet};

/// A loop as a stage.
#[derive(Clone)]
#[derive_where(Debug)]
pub struct LoopStage {
    /// Configures an iteration.
    #[derive_where(skip)]
    pub configure: ConfigureFn,
    /// The tool that gives the loop's output, and without which it cannot end.
    pub output: Option<&'static str>,
    /// The tools of each iteration, before those of its configuration.
    pub tools: IndexMap<ToolId, Arc<ToolDefinition>>,
    /// The plugins of each iteration, before those of its configuration.
    #[derive_where(skip)]
    pub plugins: IndexMap<PluginName, Arc<dyn AnyPlugin>>,
    /// The names of exit tools that its plugins offer.
    pub exit_on: Vec<String>,
    /// Whether it takes tools of the run's caller.
    pub caller_tools: bool,
    /// How long a call of one of them waits for its result.
    pub caller_timeout: Option<Duration>,
    /// The webhooks for which its tools wait, as its author declares them.
    pub webhooks: Vec<String>,
}

/// Configures an iteration of a loop.
pub type ConfigureFn = Arc<dyn Fn(Scope) -> Result<LoopDefinition, Error> + Send + Sync>;

/// Why a loop cannot have a tool or a plugin of each iteration, for the author.
type Misuse = String;

impl LoopStage {
    pub(crate) fn new(configure: ConfigureFn, output: Option<&'static str>) -> Self {
        let (tools, plugins) = (IndexMap::new(), IndexMap::new());
        let (exit_on, webhooks) = (Vec::new(), Vec::new());
        Self { configure, output, tools, plugins, exit_on, caller_tools: false, caller_timeout: None, webhooks }
    }

    /// Adds tools of each iteration.
    pub(crate) fn add_tools(&mut self, tools: impl IntoIterator<Item = Arc<ToolDefinition>>) -> Result<(), Misuse> {
        for tool in tools {
            let (id, flags) = (tool.decl.id.clone(), tool.decl.flags);
            if self.output == Some(id.as_str()) || (flags.exit && !flags.hand_back) {
                self.ends_by_output_only(id.as_str())?;
            }
            if self.tools.insert(id.clone(), tool).is_some() {
                return Err(format!("the loop has two tools named `{id}`; give one of them another name"));
            }
        }
        same_for_provider(&self.tools)
    }

    /// Adds a plugin of each iteration.
    pub(crate) fn add_plugin(&mut self, name: PluginName, plugin: Arc<dyn AnyPlugin>) -> Result<(), Misuse> {
        match self.plugins.entry(name) {
            Entry::Occupied(known) => Err(two_plugins(known.key())),
            Entry::Vacant(entry) => {
                entry.insert(plugin);
                Ok(())
            }
        }
    }

    /// Marks exit tools by name. A name that ends in `*` stands for all that begin so, and marks those of the closure, too.
    pub(crate) fn mark_exits<'n>(&mut self, names: impl IntoIterator<Item = &'n str>) -> Result<(), Misuse> {
        let offered: Vec<_> = self.plugins.iter().flat_map(|(instance, plugin)| plugin.tool_names(instance)).collect();
        for name in names {
            self.ends_by_output_only(name)?;
            let mut found = offered.iter().any(|offered| fits(name, offered) || fits(offered, name));
            for (_, tool) in self.tools.iter_mut().filter(|(id, _)| fits(name, id.as_str())) {
                Arc::make_mut(tool).decl.flags.exit = true;
                found = true;
            }
            if !found {
                let known = self.tools.keys().map(ToolId::as_str).chain(offered.iter().map(String::as_str));
                let known = known.map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", ");
                let known = if known.is_empty() {
                    "no tool follows the loop".to_owned()
                } else {
                    format!("the tools that follow the loop are {known}")
                };
                return Err(format!(
                    "`exit_on` names `{name}`, and {known}; add it before `exit_on`, with `.tools(…)` or as one that a `.plugin(…)` lists \
                     (`Plugin::tool_names`), or name a tool of the closure in the closure"
                ));
            }
            self.exit_on.push(name.to_owned());
        }
        Ok(())
    }

    fn ends_by_output_only(&self, tool: &str) -> Result<(), Misuse> {
        match self.output {
            Some(done) => Err(format!(
                "`{tool}` would end the loop without its output, which `{done}` gives; make it a tool that does not end it, or use a loop \
                 of its own"
            )),
            None => Ok(()),
        }
    }

    /// Configures an iteration.
    ///
    /// # Errors
    ///
    /// The error of its closure, or one that names a tool or a plugin that it adds although each iteration has it.
    pub fn configured(&self, scope: Scope) -> Result<LoopDefinition, Error> {
        let mut definition = (self.configure)(scope)?;
        for (id, tool) in before(&mut definition.tools, &self.tools) {
            if definition.tools.insert(id.clone(), tool).is_some() {
                return Err(Error::new(format!(
                    "its closure adds the tool `{id}`, which follows the loop already; rename or drop one of them"
                )));
            }
        }
        for (name, plugin) in before(&mut definition.plugins, &self.plugins) {
            if definition.plugins.insert(name.clone(), plugin).is_some() {
                return Err(Error::new(two_plugins(&name)));
            }
        }
        definition.exit_on.extend_from_slice(&self.exit_on);
        Ok(definition)
    }
}

/// Puts what each iteration has in the place of what a closure has made, and returns that if there is any to add after it.
fn before<K: Clone + Eq + Hash, T: Clone>(made: &mut IndexMap<K, T>, each: &IndexMap<K, T>) -> IndexMap<K, T> {
    if each.is_empty() { IndexMap::new() } else { std::mem::replace(made, each.clone()) }
}

/// Refuses tools that a provider could not tell apart.
pub(super) fn same_for_provider(tools: &IndexMap<ToolId, Arc<ToolDefinition>>) -> Result<(), Misuse> {
    match ToolSet::collision_of(tools.values().map(|tool| &tool.decl)) {
        Some((one, other)) => {
            Err(format!("the tools `{one}` and `{other}` would have the same name for a provider; rename one of them"))
        }
        None => Ok(()),
    }
}

/// Says that a loop has two plugins of one name.
pub(crate) fn two_plugins(name: &str) -> String {
    format!("the loop has two plugins named `{name}`; name one of them with `plugin(…).named(\"…\")`")
}

/// Returns whether a tool has a name, or begins with the part before its `*`.
pub(super) fn fits(name: &str, tool: &str) -> bool {
    name.strip_suffix('*').map_or(name == tool, |prefix| tool.starts_with(prefix))
}
