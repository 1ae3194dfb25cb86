//! Requests as sent.

use std::sync::Arc;

use positronic_anthropic::{Anthropic, AnthropicConfig, CacheLife, MessagesAssembler, Thinking};
use positronic_core::model::Model as _;
use positronic_core::record::{
    Assistant, CallFlags, ContextItem, MadeBy, Message, ModelRequest, ModelResponse, OutputFormat, Part, Path,
    Settings, ToolChoice, ToolDecl, ToolId, ToolSet, Transcript,
};
pub(crate) use positronic_model_testing::rules::anthropic::check;
use positronic_model_testing::{events, play};
use serde_json::{Value, json};

use crate::recorded;

pub(crate) fn request(messages: impl IntoIterator<Item = Message>, settings: Settings) -> ModelRequest {
    let tool = |id: &str, description: &str| ToolDecl {
        id: ToolId::new(id).unwrap(),
        title: None,
        description: description.to_owned(),
        parameters: Arc::new(json!({"type": "object", "properties": {"city": {"type": "string"}}})),
        flags: CallFlags::default(),
    };
    ModelRequest {
        path: Path::parse("Chat/0").unwrap(),
        attempt: 0,
        system: "You help.".into(),
        context: [ContextItem { name: "day".to_owned(), text: "Today is Monday.".to_owned() }].into(),
        tools: Arc::new(ToolSet::new(vec![tool("weather", "Tells the weather"), tool("pay.send", "")])),
        messages: Transcript::new(messages),
        settings: Arc::new(settings),
    }
}

pub(crate) fn user(text: &str) -> Message {
    Message::user(text)
}

pub(crate) fn call(id: &str) -> Assistant {
    Assistant::Call {
        call: id.to_owned(),
        name: "weather".to_owned(),
        arguments: r#"{"city":"Oslo"}"#.to_owned(),
        data: None,
    }
}

fn result(id: &str, text: &str) -> Message {
    Message::Tool { call: id.to_owned(), name: "weather".to_owned(), text: text.to_owned(), files: Vec::new() }
}

pub(crate) fn model(config: impl FnOnce(&mut AnthropicConfig)) -> Anthropic {
    let mut own = AnthropicConfig::builder().model("claude-sonnet-4-5").build();
    config(&mut own);
    Anthropic::new(own).unwrap()
}

/// Returns the body of a request that follows the rules.
pub(crate) fn sent(model: &Anthropic, request: &ModelRequest) -> Value {
    let body = serde_json::from_str(&model.wire(request)).unwrap();
    check(&body).unwrap();
    body
}

/// Returns the answer of a recording as it is sent back.
fn answered(recording: &str) -> Message {
    returned(play::<MessagesAssembler>(&events(recording)).1.unwrap())
}

/// Returns an answer as it is sent back.
pub(crate) fn returned(response: ModelResponse) -> Message {
    let part = |part| match part {
        Part::Call { index } => {
            let call = response.calls[index as usize].clone();
            let (id, name) = (call.provider_id.unwrap(), call.name);
            Some(Assistant::Call { call: id, name, arguments: call.arguments, data: call.data })
        }
        part => part.sent_back(),
    };
    Message::assistant(response.parts.into_iter().filter_map(part).collect())
}

/// Returns the content blocks of an answer as the API sent them.
fn received(recording: &str) -> Vec<Value> {
    let mut blocks: Vec<Value> = Vec::new();
    for event in events(recording) {
        let event: Value = serde_json::from_str(&event).unwrap();
        if event["type"] == "content_block_start" {
            blocks.push(event["content_block"].clone());
        }
        let delta = &event["delta"];
        let Some(block) = event["index"].as_u64().and_then(|index| blocks.get_mut(index as usize)) else { continue };
        for field in ["text", "thinking", "signature"] {
            if let Some(more) = delta[field].as_str() {
                block[field] = format!("{}{more}", block[field].as_str().unwrap()).into();
            }
        }
        if delta["type"] == "citations_delta" {
            block["citations"].as_array_mut().unwrap().push(delta["citation"].clone());
        }
        if let Some(more) = delta["partial_json"].as_str() {
            block["json"] = format!("{}{more}", block["json"].as_str().unwrap_or_default()).into();
        }
        if let Some(Ok(input)) = block["json"].as_str().map(serde_json::from_str::<Value>) {
            block["input"] = input;
        }
    }
    for block in &mut blocks {
        block.as_object_mut().unwrap().remove("json");
        if block["citations"].as_array().is_some_and(Vec::is_empty) {
            block.as_object_mut().unwrap().remove("citations");
        }
    }
    // The API sends texts of spaces between those with citations, and does not accept them.
    blocks.retain(|block| block["text"].as_str().is_none_or(|text| !text.trim().is_empty()));
    blocks
}

#[test]
fn request_has_marks_at_the_ends_of_its_stable_prefixes() {
    let messages = [
        user("How is the weather?"),
        Message::assistant(vec![call("toolu_1"), call("toolu_2")]),
        result("toolu_1", "rain"),
        result("toolu_2", "sun"),
    ];
    let body = sent(&model(|_| ()), &request(messages, Settings::default()));

    insta::assert_snapshot!(serde_json::to_string_pretty(&body).unwrap(), @r#"
    {
      "max_tokens": 16384,
      "messages": [
        {
          "content": [
            {
              "cache_control": {
                "type": "ephemeral"
              },
              "text": "How is the weather?",
              "type": "text"
            }
          ],
          "role": "user"
        },
        {
          "content": [
            {
              "id": "toolu_1",
              "input": {
                "city": "Oslo"
              },
              "name": "weather",
              "type": "tool_use"
            },
            {
              "id": "toolu_2",
              "input": {
                "city": "Oslo"
              },
              "name": "weather",
              "type": "tool_use"
            }
          ],
          "role": "assistant"
        },
        {
          "content": [
            {
              "content": "rain",
              "tool_use_id": "toolu_1",
              "type": "tool_result"
            },
            {
              "cache_control": {
                "type": "ephemeral"
              },
              "content": "sun",
              "tool_use_id": "toolu_2",
              "type": "tool_result"
            },
            {
              "text": "<context name=\"day\">\nToday is Monday.\n</context>",
              "type": "text"
            }
          ],
          "role": "user"
        }
      ],
      "model": "claude-sonnet-4-5",
      "stream": true,
      "system": [
        {
          "cache_control": {
            "type": "ephemeral"
          },
          "text": "You help.",
          "type": "text"
        }
      ],
      "tools": [
        {
          "description": "Tells the weather",
          "eager_input_streaming": true,
          "input_schema": {
            "properties": {
              "city": {
                "type": "string"
              }
            },
            "type": "object"
          },
          "name": "weather"
        },
        {
          "cache_control": {
            "type": "ephemeral"
          },
          "eager_input_streaming": true,
          "input_schema": {
            "properties": {
              "city": {
                "type": "string"
              }
            },
            "type": "object"
          },
          "name": "pay_send"
        }
      ]
    }
    "#);
}

#[test]
fn next_request_begins_with_the_same_prompt() {
    let mut messages = vec![user("How is the weather?")];
    let model = model(|config| config.cache = CacheLife::Off);
    let first = model.wire(&request(messages.clone(), Settings::default()));
    messages.extend([Message::assistant(vec![call("toolu_1")]), result("toolu_1", "rain")]);
    let second = model.wire(&request(messages, Settings::default()));

    let end = first.find(r#""How is the weather?""#).unwrap();
    assert_eq!(first[..end], second[..end]);
}

#[test]
fn blocks_are_sent_back_as_they_came() {
    for recording in [recorded::CLEAR_THINKING, recorded::TEXT, recorded::WEB_SEARCH] {
        let bare = ModelRequest {
            context: [].into(),
            ..request([user("Hi."), answered(recording), user("Go on.")], Settings::default())
        };
        let body = sent(&model(|config| config.cache = CacheLife::Off), &bare);

        let sent = body["messages"][1]["content"].as_array().unwrap();
        let received = received(recording);
        assert_eq!(sent.len(), received.len());
        for (index, (sent, received)) in sent.iter().zip(&received).enumerate() {
            assert!(sent == received, "block {index} of {} changed", received["type"]);
        }
    }
}

#[test]
fn data_of_other_providers_is_not_sent() {
    let parts = vec![
        Assistant::Reasoning { text: "Hm.".to_owned(), data: Some(json!({ "type": "reasoning", "id": "rs_1" })) },
        Assistant::Reasoning { text: "Hm.".to_owned(), data: None },
        Assistant::Opaque { data: json!({ "type": "web_search_call", "id": "ws_1" }) },
        Assistant::Opaque { data: json!({ "type": "executableCode", "gemini": { "executableCode": {} } }) },
        Assistant::Text { text: " ".to_owned() },
        Assistant::Call {
            call: "call|1".to_owned(),
            name: "weather".to_owned(),
            arguments: "[1".to_owned(),
            data: None,
        },
    ];
    let messages = [user("Hi."), Message::assistant(parts), result("call|1", "")];
    let body = sent(&model(|_| ()), &request(messages, Settings::default()));

    insta::assert_snapshot!(body["messages"][1]["content"], @r#"[{"id":"call_call_7c1","input":{"malformed_arguments":"[1"},"name":"weather","type":"tool_use"}]"#);
    assert_eq!(body["messages"][2]["content"][0]["tool_use_id"], body["messages"][1]["content"][0]["id"]);
}

#[test]
fn turn_that_another_model_began_continues_without_thinking() {
    let own = model(|config| config.thinking = Thinking::Enabled { budget_tokens: 1024 });
    let sent_after = |model: &str| {
        let data = Some(json!({ "type": "thinking", "signature": "s" }));
        let parts = vec![Assistant::Reasoning { text: "Hm.".to_owned(), data }, call("toolu_1")];
        let answer = Message::Assistant { parts, by: MadeBy::new("anthropic", model, None) };
        sent(&own, &request([user("Hi."), answer, result("toolu_1", "rain")], Settings::default()))
    };

    let kept = sent_after("claude-sonnet-4-5");
    assert_eq!(
        (&kept["thinking"]["type"], &kept["messages"][1]["content"][0]["type"]),
        (&json!("enabled"), &json!("thinking"))
    );
    let left_out = sent_after("claude-opus-4-5");
    assert_eq!(
        (&left_out["thinking"]["type"], &left_out["messages"][1]["content"][0]["type"]),
        (&json!("disabled"), &json!("tool_use"))
    );
}

#[test]
fn settings_are_sent_in_the_words_of_the_api() {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let settings = Settings::builder()
        .temperature(0.5)
        .max_output_tokens(2000)
        .tool_choice(ToolChoice::Required)
        .parallel_tool_calls(false)
        .output(OutputFormat::JsonSchema { name: "place".to_owned(), schema: Arc::new(schema) })
        .build();
    let thinking = Thinking::Enabled { budget_tokens: 1024 };
    let own = model(|config| {
        config.thinking = thinking;
        config.effort = Some("low".to_owned());
        config.strict_tools = true;
        config.cache = CacheLife::OneHour;
    });
    let mut body = sent(&own, &request([user("Hi.")], settings));
    body["tools"].as_array_mut().unwrap().truncate(1);

    insta::assert_snapshot!(serde_json::to_string_pretty(&body).unwrap(), @r#"
        {
          "max_tokens": 2000,
          "messages": [
            {
              "content": [
                {
                  "cache_control": {
                    "ttl": "1h",
                    "type": "ephemeral"
                  },
                  "text": "Hi.",
                  "type": "text"
                },
                {
                  "text": "<context name=\"day\">\nToday is Monday.\n</context>",
                  "type": "text"
                }
              ],
              "role": "user"
            }
          ],
          "model": "claude-sonnet-4-5",
          "output_config": {
            "effort": "low",
            "format": {
              "schema": {
                "additionalProperties": false,
                "properties": {
                  "city": {
                    "type": "string"
                  }
                },
                "required": [
                  "city"
                ],
                "type": "object"
              },
              "type": "json_schema"
            }
          },
          "stream": true,
          "system": [
            {
              "cache_control": {
                "ttl": "1h",
                "type": "ephemeral"
              },
              "text": "You help.",
              "type": "text"
            }
          ],
          "temperature": 0.5,
          "thinking": {
            "type": "disabled"
          },
          "tool_choice": {
            "disable_parallel_tool_use": true,
            "type": "any"
          },
          "tools": [
            {
              "description": "Tells the weather",
              "input_schema": {
                "additionalProperties": false,
                "properties": {
                  "city": {
                    "type": [
                      "string",
                      "null"
                    ]
                  }
                },
                "required": [
                  "city"
                ],
                "type": "object"
              },
              "name": "weather",
              "strict": true
            }
          ]
        }
        "#);
}

#[test]
fn schema_that_the_api_cannot_enforce_is_part_of_the_prompt() {
    let schema = json!({"type": "object", "additionalProperties": {"type": "integer"}});
    let output = OutputFormat::JsonSchema { name: "ages".to_owned(), schema: Arc::new(schema) };
    let body = sent(&model(|_| ()), &request([user("Hi.")], Settings::builder().output(output).build()));

    assert_eq!(body["output_config"], Value::Null);
    let last = body["messages"][0]["content"].as_array().unwrap().last().unwrap();
    assert!(last["text"].as_str().unwrap().starts_with("Answer only with JSON that matches this schema:\n{"), "{last}");
}
