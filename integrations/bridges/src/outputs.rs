//! Side outputs that replace each other: clients know all of them under the id of the first.

use std::collections::HashMap;

use positronic_core::record::{SideOutput, ToolResult};

/// The first output of each chain, by the ids of the later ones.
#[derive(Debug, Default)]
pub(crate) struct Outputs(HashMap<String, String>);

impl Outputs {
    /// Returns the id under which a client knows an output: its own, or that of the first one that it replaces.
    pub(crate) fn message(&mut self, id: &str, output: &SideOutput) -> String {
        let SideOutput::Widget(widget) = output else { return id.to_owned() };
        let Some(replaced) = &widget.replaces else { return id.to_owned() };
        let run = id.split(':').next().unwrap_or_default();
        let replaced = format!("{run}:{replaced}");
        let first = self.0.get(&replaced).cloned().unwrap_or(replaced);
        self.0.insert(id.to_owned(), first.clone());
        first
    }
}

/// Returns the status of a result as a word.
pub(crate) const fn status(result: &ToolResult) -> &'static str {
    match result {
        ToolResult::Success { .. } => "success",
        ToolResult::Denied { .. } => "denied",
        ToolResult::Skipped { .. } => "skipped",
        ToolResult::Interrupted { .. } => "interrupted",
        _ => "error",
    }
}

#[cfg(test)]
mod tests {
    use positronic_core::record::{PublicId, WidgetOutput};

    use super::*;

    #[test]
    fn later_versions_of_a_widget_have_the_id_of_the_first() {
        let widget = |replaces: Option<&str>| {
            let replaces = replaces.map(|id| PublicId::from(id.to_owned()));
            SideOutput::Widget(WidgetOutput { kind: "bar".into(), data: 1.into(), fallback: String::new(), replaces })
        };
        let mut outputs = Outputs::default();

        assert_eq!(outputs.message("run:a", &widget(None)), "run:a");
        assert_eq!(outputs.message("run:b", &widget(Some("a"))), "run:a");
        assert_eq!(outputs.message("run:c", &widget(Some("b"))), "run:a");
    }
}
