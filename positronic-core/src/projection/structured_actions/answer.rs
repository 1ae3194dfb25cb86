//! Decoder of structured actions in a model's answer.

use serde_json::{Deserializer, Map, Value};

use crate::record::{Finish, ModelResponse, Part, ProposedCall, ToolDecl, ToolSet, check_numbers};

/// The decoded answer of a model.
#[derive(Debug, PartialEq)]
pub(crate) struct DecodedActions {
    /// The parts in order: the model's other reasoning, its reason, and its actions as calls.
    pub(crate) parts: Vec<Part>,
    /// The actions.
    pub(crate) calls: Vec<ProposedCall>,
}

/// Decodes an answer. `accept` checks an input against its action and may adapt it.
///
/// # Errors
///
/// A sentence for the model that lists all mistakes.
pub(crate) fn decode_actions(
    response: &ModelResponse,
    tools: &ToolSet,
    batches: bool,
    accept: impl Fn(&ToolDecl, &mut Value) -> Result<(), String>,
) -> Result<DecodedActions, String> {
    let object = find_object(response, batches)?;
    let (fields, needed): (&[&str], _) =
        if batches { (&["reasoning", "actions"], "actions") } else { (&["reasoning", "action", "input"], "action") };
    let mut wrong = Vec::new();
    for unknown in object.keys().filter(|name| !fields.contains(&name.as_str())) {
        wrong.push(format!("the object has no field `{unknown}`"));
    }
    let reasoning = match object.get("reasoning") {
        Some(Value::String(reasoning)) => reasoning.as_str(),
        Some(other) => {
            wrong.push(format!("`reasoning` must be a text, but is {other}"));
            ""
        }
        None => {
            wrong.push("the field `reasoning` is missing".to_owned());
            ""
        }
    };
    let mut calls = Vec::new();
    match object.get(needed) {
        None => wrong.push(format!("the field `{needed}` is missing")),
        Some(Value::Array(actions)) if batches => {
            if actions.is_empty() {
                wrong.push("`actions` must have at least one action".to_owned());
            }
            for (index, action) in actions.iter().enumerate() {
                match action {
                    Value::Object(action) => {
                        let place = format!("in `/actions/{index}`: ");
                        calls.extend(call(action, &place, true, tools, &accept, &mut wrong));
                    }
                    other => wrong.push(format!("`/actions/{index}` must be an object, but is {other}")),
                }
            }
        }
        Some(other) if batches => wrong.push(format!("`actions` must be a list, but is {other}")),
        Some(_) => calls.extend(call(&object, "", false, tools, &accept, &mut wrong)),
    }
    if !wrong.is_empty() {
        return Err(wrong.join("; "));
    }
    let count = u32::try_from(calls.len()).unwrap_or(u32::MAX);
    let mut said = Some(reasoning.to_owned());
    let mut parts = Vec::with_capacity(response.parts.len() + calls.len());
    for part in &response.parts {
        match part {
            // The structured actions replace their text.
            Part::Text { .. } => {
                parts.extend(said.take().map(|text| Part::Reasoning { text, data: None }));
            }
            Part::Call { .. } | Part::Refusal { .. } => {}
            Part::Reasoning { .. }
            | Part::Opaque { .. }
            | Part::Citations { .. }
            | Part::ProviderTool(_)
            | Part::File { .. } => parts.push(part.clone()),
        }
    }
    parts.extend((0..count).map(|index| Part::Call { index }));
    Ok(DecodedActions { parts, calls })
}

/// Finds the only JSON object in an answer. Models without structured output put it into a fence or between
/// sentences.
fn find_object(response: &ModelResponse, batches: bool) -> Result<Map<String, Value>, String> {
    let text = response.text();
    let cut =
        if response.metadata.finish == Finish::Length { "; it was cut off at the limit of its length" } else { "" };
    let (Some(begin), Some(end)) = (text.find('{'), text.rfind('}').map(|end| end + 1)) else {
        return Err(format!("the answer has no JSON object{cut}"));
    };
    let json = text.get(begin..end).or_else(|| text.get(begin..)).unwrap_or_default();
    let mut objects = Deserializer::from_str(json).into_iter::<Map<String, Value>>();
    let object = match objects.next() {
        Some(Ok(object)) => object,
        Some(Err(error)) => return Err(format!("the answer is not one JSON object: {error}{cut}")),
        None => return Err(format!("the answer has no JSON object{cut}")),
    };
    let rest = json.get(objects.byte_offset()..).unwrap_or_default();
    if rest.trim().is_empty() {
        check_numbers(json).map_err(|number| format!("the answer has {number}"))?;
        return Ok(object);
    }
    let next = rest.find('{').and_then(|begin| rest.get(begin..)).unwrap_or_default();
    let is_another =
        Deserializer::from_str(next).into_iter::<Map<String, Value>>().next().is_some_and(|next| next.is_ok());
    Err(match (is_another, batches) {
        (true, false) => "the answer has more than one JSON object; answer with one, which names only the next action",
        (true, true) => {
            "the answer has more than one JSON object; answer with one, which lists all actions in `actions`"
        }
        (false, _) => "text with braces follows the JSON object; answer with the object alone",
    }
    .to_owned()
        + cut)
}

fn call(
    action: &Map<String, Value>,
    place: &str,
    inner: bool,
    tools: &ToolSet,
    accept: &impl Fn(&ToolDecl, &mut Value) -> Result<(), String>,
    wrong: &mut Vec<String>,
) -> Option<ProposedCall> {
    if inner {
        for unknown in action.keys().filter(|name| !matches!(name.as_str(), "action" | "input")) {
            wrong.push(format!("{place}an action has no field `{unknown}`"));
        }
    }
    let name = match action.get("action") {
        Some(Value::String(name)) => name,
        Some(other) => {
            wrong.push(format!("{place}`action` must be the name of an action, but is {other}"));
            return None;
        }
        None => {
            wrong.push(format!("{place}the field `action` is missing"));
            return None;
        }
    };
    let Some(tool) = tools.find(name) else {
        let known: Vec<_> = tools.tools().iter().map(|tool| format!("`{}`", tool.id)).collect();
        wrong.push(format!("{place}there is no action `{name}`; the actions are {}", known.join(", ")));
        return None;
    };
    let mut input = action.get("input").cloned().unwrap_or_else(|| Value::Object(Map::new()));
    if let Err(reason) = accept(tool, &mut input) {
        wrong.push(format!("{place}the input of `{name}` does not match its schema: {reason}"));
        return None;
    }
    input.sort_all_objects();
    Some(ProposedCall {
        provider_id: None,
        name: tool.id.as_str().to_owned(),
        arguments: input.to_string(),
        data: None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::record::{CallFlags, ResponseMetadata, ToolId};

    fn tools() -> ToolSet {
        let tool = |id: &str| ToolDecl {
            id: ToolId::new(id).unwrap(),
            title: None,
            description: String::new(),
            parameters: json!({"type": "object"}).into(),
            flags: CallFlags::default(),
        };
        ToolSet::new(vec![tool("pay.send"), tool("finish")])
    }

    fn said(text: &str) -> ModelResponse {
        ModelResponse { parts: vec![Part::Text { text: text.to_owned() }], ..ModelResponse::default() }
    }

    fn read(text: &str, batches: bool) -> Result<DecodedActions, String> {
        let sums = |tool: &ToolDecl, input: &mut Value| match (tool.id.as_str(), input.get("sum")) {
            ("pay.send", None) => Err("\"sum\" is a required property".to_owned()),
            _ => Ok(()),
        };
        decode_actions(&said(text), &tools(), batches, sums)
    }

    #[test]
    fn structured_action_becomes_its_reason_and_a_call() {
        let DecodedActions { parts, calls } =
            read(r#"{"reasoning":"due","action":"pay.send","input":{"sum":3}}"#, false).unwrap();

        assert_eq!(parts, [Part::Reasoning { text: "due".to_owned(), data: None }, Part::Call { index: 0 }]);
        assert_eq!((calls[0].name.as_str(), calls[0].arguments.as_str()), ("pay.send", "{\"sum\":3}"));
    }

    #[test]
    fn fences_and_sentences_around_it_are_left_out_and_the_name_for_providers_is_known() {
        for text in [
            "```json\n{\"reasoning\":\"due\",\"action\":\"pay_send\",\"input\":{\"sum\":3}}\n```",
            "Sure! {\"reasoning\":\"due\",\"action\":\"pay.send\",\"input\":{\"sum\":3}} That is it.",
        ] {
            assert_eq!(read(text, false).unwrap().calls[0].name, "pay.send", "{text}");
        }
    }

    #[test]
    fn everything_that_is_wrong_is_said_in_one_sentence() {
        let cases = [
            ("I would pay.", "the answer has no JSON object"),
            ("{\"reasoning\": \"due\", }", "the answer is not one JSON object: trailing comma at line 1 column 22"),
            ("{\"action\":\"finish\",\"input\":{}}", "the field `reasoning` is missing"),
            ("{\"reasoning\":\"so\"}", "the field `action` is missing"),
            (
                "{\"reasoning\":1,\"action\":\"finish\",\"why\":2}",
                "the object has no field `why`; `reasoning` must be a text, but is 1",
            ),
            (
                "{\"reasoning\":\"so\",\"action\":\"dance\",\"input\":{}}",
                "there is no action `dance`; the actions are `pay.send`, `finish`",
            ),
            (
                "{\"reasoning\":\"so\",\"action\":\"pay.send\"}",
                "the input of `pay.send` does not match its schema: \"sum\" is a required property",
            ),
            (
                "{\"reasoning\":\"so\",\"action\":[\"finish\"]}",
                "`action` must be the name of an action, but is [\"finish\"]",
            ),
        ];
        for (text, sentence) in cases {
            assert_eq!(read(text, false).unwrap_err(), sentence, "{text}");
        }
    }

    #[test]
    fn an_answer_of_several_objects_is_told_to_be_one() {
        let two = r#"{"reasoning":"so","action":"finish"}"#.repeat(2);
        let more = "the answer has more than one JSON object; answer with one, which ";
        for text in [two.as_str(), &two.replace("}{", "}\n\nand then\n{"), &format!("[{}]", two.replace("}{", "}, {"))]
        {
            assert_eq!(read(text, false).unwrap_err(), format!("{more}names only the next action"), "{text}");
            assert_eq!(read(text, true).unwrap_err(), format!("{more}lists all actions in `actions`"), "{text}");
        }
        assert_eq!(
            read("{\"reasoning\":\"so\",\"action\":\"finish\"} as in `fn main() {}`}", false).unwrap_err(),
            format!("{more}names only the next action"),
        );
        assert_eq!(
            read("{\"reasoning\":\"so\",\"action\":\"finish\"} :-}", false).unwrap_err(),
            "text with braces follows the JSON object; answer with the object alone"
        );
    }

    #[test]
    fn each_action_of_a_batch_is_checked() {
        let text = r#"{"reasoning":"so","actions":[{"action":"finish","input":{}},{"action":"dance","input":{}},7,
            {"action":"pay.send","input":{}},{"action":"finish","with":1}]}"#;

        assert_eq!(
            read(text, true).unwrap_err(),
            "in `/actions/1`: there is no action `dance`; the actions are `pay.send`, `finish`; `/actions/2` must be an \
             object, but is 7; in `/actions/3`: the input of `pay.send` does not match its schema: \"sum\" is a required property; in \
             `/actions/4`: an action has no field `with`"
        );
        assert_eq!(
            read(r#"{"reasoning":"so","actions":[]}"#, true).unwrap_err(),
            "`actions` must have at least one action"
        );
        assert_eq!(
            read(r#"{"reasoning":"so","actions":{}}"#, true).unwrap_err(),
            "`actions` must be a list, but is {}"
        );
        assert_eq!(read(r#"{"reasoning":"so","action":"finish"}"#, true).unwrap_err().matches("field").count(), 2);
    }

    #[test]
    fn an_answer_that_was_cut_off_says_so_and_thoughts_stay() {
        let metadata = ResponseMetadata { finish: Finish::Length, ..ResponseMetadata::default() };
        let cut = ModelResponse { metadata, ..said("{\"reasoning\":\"well") };
        let error = decode_actions(&cut, &tools(), false, |_, _| Ok(())).unwrap_err();
        assert_eq!(error, "the answer has no JSON object; it was cut off at the limit of its length");

        let thought = Part::Reasoning { text: "hm".to_owned(), data: Some(json!({"signature": "x"})) };
        let mut whole = said("{\"reasoning\":\"so\",\"action\":\"finish\",\"input\":{}}");
        whole.parts.insert(0, thought.clone());
        assert_eq!(decode_actions(&whole, &tools(), false, |_, _| Ok(())).unwrap().parts[0], thought);
    }

    proptest! {
        #[test]
        fn any_answer_is_an_action_or_an_error(text in "[ \\PC{}\"\\[\\]:,]{0,60}", batches: bool) {
            match read(&text, batches) {
                Ok(object) => prop_assert!(!object.calls.is_empty()),
                Err(sentence) => prop_assert!(!sentence.is_empty()),
            }
        }
    }
}
