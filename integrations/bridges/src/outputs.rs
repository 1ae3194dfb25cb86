//! Side outputs as clients see them. Those that replace each other have the id of the first.

use std::collections::HashMap;

use positronic_core::record::{SideOutput, ToolResult};
use serde_json::{Value, json};

/// The first output of each chain, by the ids of the later ones.
#[derive(Debug, Default)]
pub(crate) struct Outputs(HashMap<String, String>);

impl Outputs {
    /// Returns the id under which a client knows an output: its own, or that of the first one that it replaces.
    pub(crate) fn message(&mut self, id: &str, output: &SideOutput) -> String {
        let SideOutput::Widget(widget) = output else { return id.to_owned() };
        let Some(replaced) = &widget.replaces else { return id.to_owned() };
        let replaced = format!("{}:{replaced}", run_of(id));
        let first = self.0.get(&replaced).cloned().unwrap_or(replaced);
        self.0.insert(id.to_owned(), first.clone());
        first
    }
}

/// Returns the kind and the content of an output for a page. `id` is its own, with its run.
pub(crate) fn content(id: &str, output: SideOutput) -> (String, Value) {
    match output {
        SideOutput::File(file) => {
            let (file, run) = (file.file, run_of(id));
            let content = json!({
                "name": file.name, "mediaType": file.media_type, "size": file.size, "sha256": file.sha256, "run": run,
            });
            ("file".to_owned(), content)
        }
        SideOutput::Widget(widget) => (widget.kind, json!({ "data": widget.data, "fallback": widget.fallback })),
        SideOutput::Custom(custom) => (custom.kind, json!({ "data": custom.data, "fallback": custom.fallback })),
        // One of a later version of the core.
        _ => ("output".to_owned(), json!({})),
    }
}

/// Returns the run of an output, whose id may have colons, too.
fn run_of(id: &str) -> &str {
    id.rsplit_once(':').map_or(id, |(run, _)| run)
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
        assert_eq!(outputs.message("a:run:2", &widget(Some("1"))), "a:run:1");
    }
}
