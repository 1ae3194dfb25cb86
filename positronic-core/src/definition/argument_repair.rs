//! Arguments of a call, as its tool takes them.
//!
//! Arguments that a model wrote almost right are repaired only where the call would fail without it, and what the model wrote has one possible
//! meaning.

use serde_json::Value;

use super::ToolDefinition;
use crate::error::caught_now;
use crate::record::{ArgumentMistake, unify_numbers};
use crate::tools::parse_arguments;

impl ToolDefinition {
    /// Validates a model's arguments against the schema, adapts them ([`Schema::accept`]), and decodes them. Where the type requires
    /// integers, numbers without a fraction become integers.
    ///
    /// # Errors
    ///
    /// A message why the arguments do not match the schema.
    pub fn accept(&self, arguments: &mut Value) -> Result<(), String> {
        self.schema.accept(arguments)?;
        let Err(problem) = self.decode(arguments) else { return Ok(()) };
        let mut unified = arguments.clone();
        unify_numbers(&mut unified);
        self.decode(&unified).map_err(|_| problem.to_string())?;
        *arguments = unified;
        Ok(())
    }

    /// Decodes arguments as the tool's code does, which may panic.
    fn decode(&self, arguments: &Value) -> crate::Result<()> {
        caught_now(|| (self.decodes)(arguments))
    }

    /// Accepts arguments as [`accept`](Self::accept) does, also those that are JSON in a string, and texts in the place of other values.
    ///
    /// # Errors
    ///
    /// The mismatch of the arguments as they are; they are unchanged then.
    pub(crate) fn accept_near(&self, arguments: &mut Value) -> Result<Vec<ArgumentMistake>, String> {
        let Err(problem) = self.accept(arguments) else { return Ok(Vec::new()) };
        let (mut repaired, mut mistakes) = (arguments.clone(), Vec::new());
        if let Value::String(text) = &repaired
            && let Ok((inner @ Value::Object(_), more)) = parse_arguments(text)
        {
            repaired = inner;
            mistakes.push(ArgumentMistake::InString);
            mistakes.extend(more);
        }
        if mistakes.is_empty() || self.accept(&mut repaired).is_err() {
            let Some(unquoted) = self.schema.unquoted(&repaired) else { return Err(problem) };
            repaired = unquoted;
            mistakes.push(ArgumentMistake::ValueInString);
            self.accept(&mut repaired).map_err(|_| problem)?;
        }
        repaired.sort_all_objects();
        *arguments = repaired;
        Ok(mistakes)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::definition::{ToolBody, UntypedReply};
    use crate::record::{CallFlags, Dialogue, ToolDecl, ToolId};
    use crate::tools::Schema;

    #[test]
    fn json_in_a_string_is_accepted_where_no_string_fits() {
        use ArgumentMistake::{InString, ValueInString};
        let schema = Schema::new(json!({
            "type": "object",
            "properties": {
                "n": {"type": "integer"}, "list": {"type": ["array", "null"]}, "text": {"type": "string"}, "any": {},
            },
            "required": ["n"],
            "additionalProperties": false,
        }));
        let tool = ToolDefinition {
            decl: ToolDecl {
                id: ToolId::new("count").unwrap(),
                title: None,
                description: String::new(),
                parameters: Value::Null.into(),
                flags: CallFlags::default(),
            },
            schema: Arc::new(schema),
            foreign: false,
            timeout: Duration::MAX,
            retries: 0,
            decodes: Arc::new(|_| Ok(())),
            owner: None,
            gate: None,
            exits: None,
            dialogue: Dialogue::default(),
            body: ToolBody::Function {
                execute: Arc::new(|_, _| Box::pin(async { Ok(UntypedReply::default()) })),
                waits: None,
            },
        };
        let accept = |mut value: Value| {
            let given = value.clone();
            let mistakes = tool.accept_near(&mut value);
            assert!(mistakes.is_ok() || value == given, "refused arguments stay as they are");
            mistakes.map(|mistakes| (value, mistakes))
        };

        assert_eq!(
            accept(json!({"n": 1, "text": "{}", "any": "[1]"})),
            Ok((json!({"n": 1, "text": "{}", "any": "[1]"}), vec![]))
        );
        assert_eq!(accept(json!("{\"text\": \"a\", \"n\": 1}")), Ok((json!({"n": 1, "text": "a"}), vec![InString])));
        assert_eq!(
            accept(json!({"n": "5", "list": "[1, \"2\"]"})),
            Ok((json!({"n": 5, "list": [1, "2"]}), vec![ValueInString]))
        );
        assert_eq!(accept(json!("{\"n\": \"5\"}")), Ok((json!({"n": 5}), vec![InString, ValueInString])));
        for wrong in [
            json!({"n": "five"}),
            json!({"n": "5.5"}),
            json!({"n": "5", "other": 1}),
            json!("[1]"),
            json!("text"),
            json!([1]),
        ] {
            assert!(accept(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
