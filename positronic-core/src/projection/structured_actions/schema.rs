//! The JSON schema of structured actions, as text: a model fills the fields in the order of the schema, the reasoning
//! first.

use serde_json::Value;

use crate::record::{OrderedJson, ToolDecl};

/// Writes the schema of structured actions. `coupled` ties each input to its action.
pub(super) fn schema(tools: &[ToolDecl], batches: bool, coupled: bool) -> String {
    let mut definitions = Vec::new();
    let inputs: Vec<String> =
        tools.iter().enumerate().map(|(index, tool)| input(index, &tool.parameters, &mut definitions)).collect();
    let names: Vec<String> = tools.iter().map(|tool| text(tool.id.as_str())).collect();
    let each = std::iter::zip(&names, &inputs);
    let rest = if definitions.is_empty() { String::new() } else { format!(",\"$defs\":{{{}}}", definitions.join(",")) };
    let reasoning = "\"reasoning\":{\"type\":\"string\"}";
    if batches {
        let items: Vec<_> = each
            .map(|(name, input)| object(&[&constant(name), &field("input", input)], "", &["action", "input"]))
            .collect();
        let actions = format!("\"actions\":{{\"type\":\"array\",\"minItems\":1,\"items\":{}}}", any_of(&items));
        return object(&[reasoning, &actions], &rest, &["reasoning", "actions"]);
    }
    let required = ["reasoning", "action", "input"];
    if coupled {
        let actions: Vec<_> = each
            .map(|(name, input)| object(&[reasoning, &constant(name), &field("input", input)], "", &required))
            .collect();
        return match actions.as_slice() {
            [only] if rest.is_empty() => only.clone(),
            _ => format!("{{\"anyOf\":[{}]{rest}}}", actions.join(",")),
        };
    }
    let action = format!("\"action\":{{\"type\":\"string\",\"enum\":[{}]}}", names.join(","));
    let mut kinds: Vec<String> = Vec::new();
    for input in inputs {
        if !kinds.contains(&input) {
            kinds.push(input);
        }
    }
    object(&[reasoning, &action, &field("input", &any_of(&kinds))], &rest, &required)
}

fn constant(name: &str) -> String {
    format!("\"action\":{{\"type\":\"string\",\"enum\":[{name}]}}")
}

fn field(name: &str, schema: &str) -> String {
    format!("{}:{schema}", text(name))
}

fn any_of(schemas: &[String]) -> String {
    match schemas {
        [only] => only.clone(),
        several => format!("{{\"anyOf\":[{}]}}", several.join(",")),
    }
}

fn object(properties: &[&str], rest: &str, required: &[&str]) -> String {
    let properties = properties.join(",");
    let required: Vec<_> = required.iter().map(|name| text(name)).collect();
    let required = required.join(",");
    format!(
        "{{\"type\":\"object\",\"properties\":{{{properties}}},\"required\":[{required}],\"additionalProperties\":false{rest}}}"
    )
}

/// Writes the schema of an action's input. One with internal references moves to the definitions of the whole, so
/// that they stay valid.
fn input(index: usize, parameters: &Value, definitions: &mut Vec<String>) -> String {
    let mut moved = parameters.clone();
    let place = format!("#/$defs/input{index}");
    if !lead_to(&mut moved, &place) {
        let schema = OrderedJson::of_schema(parameters);
        // An action without an input has an empty object.
        return if schema.is_bare_object_schema() { object(&[], "", &[]) } else { schema.to_string() };
    }
    definitions.push(format!("\"input{index}\":{}", OrderedJson::of_schema(&moved)));
    format!("{{\"$ref\":{}}}", text(&place))
}

/// Redirects the references within a schema to its new place; returns whether there are any.
fn lead_to(schema: &mut Value, place: &str) -> bool {
    let mut found = false;
    match schema {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(target) if name == "$ref" => {
                        if let Some(rest) = target.strip_prefix('#') {
                            *target = format!("{place}{rest}");
                            found = true;
                        }
                    }
                    other => found |= lead_to(other, place),
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                found |= lead_to(item, place);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    found
}

pub(super) fn text(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::record::{CallFlags, ToolId};

    fn tool(id: &str, parameters: Value) -> ToolDecl {
        let (title, description, flags) = (None, String::new(), CallFlags::default());
        ToolDecl { id: ToolId::new(id).unwrap(), title, description, parameters: parameters.into(), flags }
    }

    fn tools() -> [ToolDecl; 2] {
        let node = json!({
            "type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}, "additionalProperties": false,
            "$defs": {"Node": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}}
        });
        [
            tool(
                "pay.send",
                json!({"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}),
            ),
            tool("walk", node),
        ]
    }

    fn fits(schema: &str, value: &Value) -> bool {
        jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap().is_valid(value)
    }

    #[test]
    fn structured_action_fits_in_every_form_and_references_still_lead_somewhere() {
        let pay = json!({"reasoning": "due", "action": "pay.send", "input": {"sum": 3}});
        let walk = json!({"reasoning": "far", "action": "walk", "input": {"next": {"id": 1}}});
        let lost = json!({"reasoning": "far", "action": "walk", "input": {"next": {"id": "x"}}});
        let mixed = json!({"reasoning": "due", "action": "pay.send", "input": {"next": {"id": 1}}});
        let dance = json!({"reasoning": "joy", "action": "dance", "input": {}});
        let mute = json!({"action": "pay.send", "input": {"sum": 3}});

        for (coupled, takes_mixed) in [(false, true), (true, false)] {
            let schema = schema(&tools(), false, coupled);
            assert!(fits(&schema, &pay) && fits(&schema, &walk), "{schema}");
            assert_eq!(fits(&schema, &mixed), takes_mixed, "which input belongs to which action: {schema}");
            for wrong in [&lost, &dance, &mute] {
                assert!(!fits(&schema, wrong), "{wrong} in {schema}");
            }
        }
    }

    #[test]
    fn a_batch_says_with_each_action_which_input_is_its_own() {
        let schema = schema(&tools(), true, false);
        let batch = |actions: Value| json!({"reasoning": "due", "actions": actions});

        assert!(fits(
            &schema,
            &batch(json!([{"action": "pay.send", "input": {"sum": 3}}, {"action": "walk", "input": {}}]))
        ));
        assert!(!fits(&schema, &batch(json!([]))), "no action");
        assert!(!fits(&schema, &batch(json!([{"action": "walk", "input": {"sum": 3}}]))), "another's input");
    }

    #[test]
    fn the_reason_comes_first() {
        for (batches, coupled) in [(false, false), (false, true), (true, false)] {
            let schema = schema(&tools(), batches, coupled);
            assert!(schema.find("\"reasoning\":{") < schema.find("\"action"), "{schema}");
        }
    }
}
