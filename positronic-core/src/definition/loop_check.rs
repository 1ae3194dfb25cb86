//! What an iteration of a loop has to fulfil: tools that can end it, and that a provider can tell apart.

use std::sync::Arc;

use super::LoopDefinition;
use super::loop_stage::{fits, same_for_provider};
use crate::error::{Error, Result};
use crate::record::ToolId;

impl LoopDefinition {
    /// Marks the tools in `exit_on` as exit tools. A name that ends in `*` matches by prefix. Tools that plugins offer later are
    /// marked in the iterations that offer them.
    ///
    /// # Errors
    ///
    /// An [`Error`] for the first name that no tool has, now or later. The tools of the other names are marked nevertheless.
    pub fn mark_exits(&mut self) -> Result<()> {
        if self.exit_on.is_empty() {
            return Ok(());
        }
        let mut unknown = None;
        let offered: Vec<_> = self.plugins.iter().flat_map(|(instance, plugin)| plugin.tool_names(instance)).collect();
        // A name that ends in `*` says too little here: the plugin says in each iteration what may still come.
        let offered = offered.iter().filter(|name| !name.ends_with('*'));
        let later: Vec<_> =
            self.later.iter().chain(offered).filter(|name| !self.tools.contains_key(name.as_str())).collect();
        for name in &self.exit_on {
            let mut found = name.ends_with('*') || later.iter().any(|later| fits(later, name));
            for (_, tool) in self.tools.iter_mut().filter(|(id, _)| fits(name, id.as_str())) {
                Arc::make_mut(tool).decl.flags.exit = true;
                found = true;
            }
            if !found {
                unknown.get_or_insert(name);
            }
        }
        let Some(name) = unknown else { return Ok(()) };
        let known: Vec<_> =
            self.tools.keys().map(ToolId::as_str).chain(later.into_iter().map(String::as_str)).collect();
        let known = known.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", ");
        let known =
            if known.is_empty() { "the loop has no tool".to_owned() } else { format!("the loop's tools are {known}") };
        Err(Error::new(format!("`exit_on` names `{name}`, but {known}")))
    }

    /// Returns whether only an exit tool ends the loop. A loop that has had an exit tool, or names one that may come, still does not end
    /// by a text, unless there is no tool to call.
    pub(crate) fn ends_by_exit_only(&self, had_exit: impl FnOnce() -> bool) -> bool {
        let has_exit = self.tools.values().any(|tool| tool.decl.flags.is_plain_exit());
        let later = || !self.text_exits && (had_exit() || !self.exit_on.is_empty());
        self.require_exit || has_exit || (!self.tools.is_empty() && later())
    }

    /// Refuses an iteration that only an exit tool can end and that has no tools.
    pub(crate) fn check_exit(&self) -> Result<()> {
        if self.require_exit && self.tools.is_empty() {
            return Err(Error::new(
                "`require_exit` lets only an exit tool end it, and this iteration offers no tool; add one for this state, or drop \
                 `require_exit`",
            ));
        }
        Ok(())
    }

    /// Refuses tools that a provider could not tell apart, and structured actions of which none ends the loop.
    pub(crate) fn check_tools(&self) -> Result<()> {
        let tools = || self.tools.values().map(|tool| &tool.decl);
        same_for_provider(&self.tools).map_err(Error::new)?;
        let may_end = || tools().any(|tool| tool.flags.exit && !tool.flags.hand_back);
        if self.settings.structured_actions.is_some() && !may_end() {
            return Err(Error::new(
                "it asks for structured actions, and none of its actions ends the loop; mark one with `.exit()` or name \
                 one in `exit_on`",
            ));
        }
        Ok(())
    }
}
