//! The JSON schema of structured actions. Its objects require the reasoning first, and a model fills in fields in that order.

use serde_json::{Map, Value, json};

use crate::record::{OrderedJson, ToolDecl};

/// Returns the schema of structured actions. `coupled` ties each input to its action.
pub(super) fn schema(tools: &[ToolDecl], batches: bool, coupled: bool) -> Value {
    let mut definitions = Map::new();
    let inputs: Vec<_> =
        tools.iter().enumerate().map(|(index, tool)| input(index, &tool.parameters, &mut definitions)).collect();
    let reasoning = || ("reasoning", json!({"type": "string"}));
    let action = |tools: &[ToolDecl]| {
        let names: Vec<_> = tools.iter().map(|tool| tool.id.as_str()).collect();
        ("action", json!({"type": "string", "enum": names}))
    };
    let each = std::iter::zip(tools.chunks(1), &inputs).map(|(tool, input)| [action(tool), ("input", input.clone())]);
    let mut schema = if batches {
        let items = any_of(each.map(object).collect());
        object([reasoning(), ("actions", json!({"type": "array", "minItems": 1, "items": items}))])
    } else if coupled {
        any_of(each.map(|[action, input]| object([reasoning(), action, input])).collect())
    } else {
        let mut kinds: Vec<Value> = Vec::new();
        for input in &inputs {
            if !kinds.contains(input) {
                kinds.push(input.clone());
            }
        }
        object([reasoning(), action(tools), ("input", any_of(kinds))])
    };
    if let (false, Some(fields)) = (definitions.is_empty(), schema.as_object_mut()) {
        fields.insert("$defs".to_owned(), definitions.into());
    }
    schema
}

fn any_of(mut schemas: Vec<Value>) -> Value {
    if schemas.len() == 1 { schemas.remove(0) } else { json!({"anyOf": schemas}) }
}

fn object<const N: usize>(properties: [(&str, Value); N]) -> Value {
    let required = properties.each_ref().map(|(name, _)| *name).to_vec();
    let properties = properties.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect::<Map<_, _>>();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

/// Returns the schema of an action's input. One with internal references moves to the definitions of the whole, so
/// that they stay valid.
fn input(index: usize, parameters: &Value, definitions: &mut Map<String, Value>) -> Value {
    let mut moved = parameters.clone();
    let place = format!("#/$defs/input{index}");
    if lead_to(&mut moved, &place) {
        definitions.insert(format!("input{index}"), moved);
        return json!({"$ref": place});
    }
    // An action without an input has an empty object.
    if OrderedJson::of_schema(parameters).is_bare_object_schema() { object([]) } else { moved }
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

    fn fits(schema: &Value, value: &Value) -> bool {
        jsonschema::validator_for(schema).unwrap().is_valid(value)
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
            let schema = OrderedJson::of_schema(&schema(&tools(), batches, coupled)).to_string();
            assert!(schema.find("\"reasoning\":{") < schema.find("\"action"), "{schema}");
        }
    }
}
