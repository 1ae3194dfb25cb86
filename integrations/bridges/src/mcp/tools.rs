//! Brains as tools: their names, and the schemas of their arguments and results.

use std::collections::HashSet;
use std::sync::Arc;

use positronic_core::definition::BrainDefinition;
use positronic_server::{Problem, ProblemType};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

/// The tool that reads a run which a call did not wait for.
pub(super) const RUN_STATUS: &str = "run_status";
/// The longest name of a tool that models accept.
const MAX_NAME: usize = 64;
/// The argument with a message for the brain's first loop.
const MESSAGE: &str = "message";
/// The argument with options that are not an object.
const OPTIONS: &str = "options";

/// A brain as a tool.
#[derive(Debug, Clone)]
pub(super) struct BrainTool {
    pub(super) name: String,
    pub(super) definition: Arc<BrainDefinition>,
    /// Whether the options are the argument [`OPTIONS`], and not the arguments themselves.
    wraps: bool,
    takes_message: bool,
}

/// The arguments of a call.
#[derive(Debug, Default, PartialEq)]
pub(super) struct CallArguments {
    pub(super) options: Option<Value>,
    pub(super) message: Option<String>,
}

impl BrainTool {
    /// Returns the tools of brains. Titles that give the same name get a number.
    pub(super) fn all(brains: Vec<Arc<BrainDefinition>>) -> Vec<Self> {
        let mut taken = HashSet::from([RUN_STATUS.to_owned()]);
        let tool = |definition: Arc<BrainDefinition>| {
            let name = unique(&tool_name(&definition.title), &mut taken);
            let schema = definition.options.json();
            let wraps = schema.get("type").and_then(Value::as_str) != Some("object");
            let has_own = schema.pointer("/properties/message").is_some() && !wraps;
            let has_loop = definition.stages.iter().any(|stage| stage.body.as_loop().is_some());
            Self { name, wraps, takes_message: has_loop && !has_own, definition }
        };
        brains.into_iter().map(tool).collect()
    }

    /// Returns the tool as a client gets it.
    pub(super) fn listed(&self) -> Tool {
        let description = match self.definition.description.trim() {
            "" => format!("Runs the workflow {}", self.definition.title),
            description => description.to_owned(),
        };
        let mut tool = Tool::new(self.name.clone(), description, self.input_schema());
        if self.definition.title != self.name {
            tool = tool.with_title(self.definition.title.clone());
        }
        if let Some(schema) = self.output_schema() {
            tool = tool.with_raw_output_schema(Arc::new(schema));
        }
        tool
    }

    /// Returns the schema of the result. The protocol has those of objects only.
    pub(super) fn output_schema(&self) -> Option<JsonObject> {
        let schema = self.definition.result_schema.as_ref()?.json();
        let is_object = schema.get("type").and_then(Value::as_str) == Some("object");
        schema.as_object().filter(|_| is_object).cloned()
    }

    fn known_arguments(&self) -> String {
        let schema = self.input_schema();
        let known = schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys);
        let known: Vec<_> = known.map(|name| format!("`{name}`")).collect();
        if known.is_empty() { "the tool has none".to_owned() } else { format!("the tool has {}", known.join(", ")) }
    }

    fn input_schema(&self) -> JsonObject {
        let options = self.definition.options.json();
        let mut schema = match options.as_object() {
            Some(object) if !self.wraps => object.clone(),
            _ => wrapped(options),
        };
        if self.takes_message {
            let described = json!({ "type": "string", "minLength": 1, "description": "A message to begin with" });
            if let Value::Object(properties) = schema.entry("properties").or_insert_with(|| Map::new().into()) {
                properties.insert(MESSAGE.to_owned(), described);
            }
        }
        schema
    }

    /// Reads the arguments of a call.
    ///
    /// # Errors
    ///
    /// `OptionsInvalid` if the message is not a text, or is empty, or an argument is unknown. Options are checked where the run starts.
    pub(super) fn given(&self, arguments: Option<JsonObject>) -> Result<CallArguments, Problem> {
        let mut arguments = arguments.unwrap_or_default();
        let message = if self.takes_message { arguments.remove(MESSAGE) } else { None };
        let message = match message {
            None => None,
            Some(Value::String(text)) if !text.trim().is_empty() => Some(text),
            Some(_) => return Err(invalid("`message`: expected a text that is not empty")),
        };
        let options = match self.wraps {
            true => arguments.remove(OPTIONS),
            false => Some(Value::Object(std::mem::take(&mut arguments))).filter(|options| *options != json!({})),
        };
        match arguments.keys().next() {
            Some(unknown) => Err(invalid(format!("`{unknown}`: unknown argument; {}", self.known_arguments()))),
            None => Ok(CallArguments { options, message }),
        }
    }

    /// Starts the places of a problem at the arguments of the tool.
    pub(super) fn placed(&self, problem: Problem) -> Problem {
        if self.wraps {
            return problem;
        }
        problem.places_within("/options")
    }
}

fn invalid(detail: impl std::fmt::Display) -> Problem {
    Problem::new(ProblemType::OptionsInvalid).detail(detail)
}

/// Returns the schema of an object with the options as its only field.
fn wrapped(options: &Value) -> JsonObject {
    let mut options = options.clone();
    // References of a schema begin at its root.
    let definitions = options.as_object_mut().and_then(|schema| schema.remove("$defs"));
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), json!({ OPTIONS: options }));
    schema.insert("required".to_owned(), json!([OPTIONS]));
    schema.extend(definitions.map(|definitions| ("$defs".to_owned(), definitions)));
    schema
}

/// Returns the tool [`RUN_STATUS`] as a client gets it.
pub(super) fn run_status() -> Tool {
    let schema = json!({
        "type": "object",
        "properties": { "run": { "type": "string", "description": "The id of the run" } },
        "required": ["run"],
    });
    let schema = schema.as_object().cloned().unwrap_or_default();
    let description =
        "Reads the status of a run that an earlier call has started, and its result once it has completed";
    Tool::new(RUN_STATUS, description, schema).with_annotations(ToolAnnotations::new().read_only(true))
}

/// Returns a title as the name of a tool.
fn tool_name(title: &str) -> String {
    let allowed = |char: char| if char.is_ascii_alphanumeric() || matches!(char, '_' | '-') { char } else { '_' };
    let name: String = title.chars().map(allowed).take(MAX_NAME).collect();
    match name.trim_matches('_') {
        "" => "brain".to_owned(),
        name => name.to_owned(),
    }
}

fn unique(name: &str, taken: &mut HashSet<String>) -> String {
    let mut unique = name.to_owned();
    let mut number = 1;
    while !taken.insert(unique.clone()) {
        number += 1;
        unique = format!("{name}_{number}");
    }
    unique
}

#[cfg(test)]
mod tests {
    use positronic_core::dsl::IntoBrain;
    use positronic_core::prelude::*;
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    struct Order {
        number: u32,
    }

    fn tool(brain: &impl IntoBrain) -> BrainTool {
        BrainTool::all(vec![brain.definition()]).remove(0)
    }

    #[test]
    fn titles_become_unique_names_of_tools() {
        let titles = ["Kitchen", "Night watch", "Night-watch", "Night_watch", "Küche 2", "run_status"];
        let brains = titles.map(|title| brain(title).step("A", async |_| Ok(1)).build().definition());
        let tools = BrainTool::all(brains.into());
        let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["Kitchen", "Night_watch", "Night-watch", "Night_watch_2", "K_che_2", "run_status_2"]);
    }

    #[test]
    fn options_are_the_arguments_and_other_values_than_objects_are_wrapped() {
        let order = tool(&brain("Order").options::<Order>().step("A", async |_| Ok(1)));
        let count = tool(&brain("Count").options::<Vec<Order>>().step("A", async |_| Ok(1)));

        assert_eq!(order.input_schema()["properties"]["number"]["type"], "integer");
        let arguments = |value: Value| value.as_object().cloned();
        assert_eq!(order.given(arguments(json!({ "number": 7 }))).unwrap().options, Some(json!({ "number": 7 })));
        assert_eq!(order.given(None).unwrap(), CallArguments::default(), "the brain's defaults apply");
        let schema = Value::Object(count.input_schema());
        assert_eq!(schema["properties"]["options"]["items"]["$ref"], "#/$defs/Order");
        assert_eq!(schema["$defs"]["Order"]["properties"]["number"]["type"], "integer");
        assert_eq!(count.given(arguments(json!({ "options": [] }))).unwrap().options, Some(json!([])));
    }

    #[test]
    fn arguments_that_do_not_fit_are_refused_with_their_names() {
        let chat = tool(&brain("Chat").r#loop("Talk", |cx| cx.system("Talk.")));
        let count = tool(&brain("Count").options::<Vec<Order>>().step("A", async |_| Ok(1)));
        let refused = |tool: &BrainTool, given: Value| tool.given(given.as_object().cloned()).unwrap_err().message();

        for message in [json!(7), json!(""), json!(" "), json!(null)] {
            let text = refused(&chat, json!({ "message": message }));
            assert_eq!(text, "`message`: expected a text that is not empty");
        }
        let text = refused(&count, json!({ "options": [], "message": "hello" }));
        assert_eq!(text, "`message`: unknown argument; the tool has `options`");
    }

    #[test]
    fn brain_with_a_loop_takes_a_message_and_its_result_may_have_a_schema() {
        let chat = brain("Chat").r#loop("Talk", |cx| cx.system("Talk.")).result(|()| Order { number: 7 });
        let (plain, described) = (tool(&chat), tool(&chat.with_result_schema()));

        let given = plain.given(json!({ "message": "hello" }).as_object().cloned()).unwrap();
        assert_eq!(given, CallArguments { options: None, message: Some("hello".to_owned()) });
        assert_eq!(plain.output_schema(), None);
        assert_eq!(described.output_schema().unwrap()["required"], json!(["number"]));
    }
}
