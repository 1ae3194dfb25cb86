//! A loop as a stage: the closure that configures each iteration, and what is the same in all of them, built with the brain.

use std::sync::Arc;
use std::time::Duration;

use derive_where::derive_where;
use indexmap::IndexMap;

use super::{AnyPlugin, LoopDefinition, PluginName, Scope, ToolDefinition};
use crate::error::{Error, Result};
use crate::record::ToolId;

/// A loop as a stage.
#[derive(Clone)]
#[derive_where(Debug)]
pub struct LoopStage {
    /// Configures an iteration.
    #[derive_where(skip)]
    pub configure: ConfigureFn,
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
pub type ConfigureFn = Arc<dyn Fn(Scope) -> Result<LoopDefinition> + Send + Sync>;

impl LoopStage {
    pub(crate) fn new(configure: ConfigureFn) -> Self {
        let (tools, plugins) = (IndexMap::new(), IndexMap::new());
        let (exit_on, webhooks) = (Vec::new(), Vec::new());
        Self { configure, tools, plugins, exit_on, caller_tools: false, caller_timeout: None, webhooks }
    }

    /// Configures an iteration.
    ///
    /// # Errors
    ///
    /// The error of its closure, or one that names a tool or a plugin that it makes although the loop has it already.
    pub fn configured(&self, scope: Scope) -> Result<LoopDefinition> {
        let mut definition = (self.configure)(scope)?;
        if !self.tools.is_empty() {
            let made = std::mem::replace(&mut definition.tools, self.tools.clone());
            for (id, tool) in made {
                if self.tools.contains_key(&id) {
                    return Err(Error::new(format!(
                        "the loop has the tool `{id}` already; its closure makes another one"
                    )));
                }
                definition.tools.insert(id, tool);
            }
        }
        if !self.plugins.is_empty() {
            let made = std::mem::replace(&mut definition.plugins, self.plugins.clone());
            for (name, plugin) in made {
                if self.plugins.contains_key(&name) {
                    return Err(Error::new(format!(
                        "the loop has the plugin `{name}` already; its closure adds another one"
                    )));
                }
                definition.plugins.insert(name, plugin);
            }
        }
        definition.exit_on.extend_from_slice(&self.exit_on);
        Ok(definition)
    }

    /// Marks an exit tool by its name, or several by a name that ends in `*`.
    ///
    /// # Errors
    ///
    /// The names of the tools that the loop can have, if none fits.
    pub fn mark_exit(&mut self, name: &str) -> std::result::Result<(), Vec<String>> {
        let mut found = false;
        for (_, tool) in self.tools.iter_mut().filter(|(id, _)| fits(name, id.as_str())) {
            Arc::make_mut(tool).decl.flags.exit = true;
            found = true;
        }
        let offered: Vec<_> = self.plugins.iter().flat_map(|(instance, plugin)| plugin.tool_names(instance)).collect();
        if offered.iter().any(|offered| fits(name, offered) || fits(offered, name)) {
            self.exit_on.push(name.to_owned());
            found = true;
        }
        if found { Ok(()) } else { Err(self.tools.keys().map(ToString::to_string).chain(offered).collect()) }
    }
}

/// Returns whether a name, or one that ends in `*` and stands for all that begin so, is that of a tool.
pub(super) fn fits(name: &str, tool: &str) -> bool {
    name.strip_suffix('*').map_or(name == tool, |prefix| tool.starts_with(prefix))
}
