//! Requests as sent.

use std::sync::Arc;

use positronic_core::model::Model as _;
use positronic_core::record::{
    Assistant, CallFlags, ContextItem, Message, ModelRequest, ModelResponse, OutputFormat, Part, Path, Settings,
    ToolChoice, ToolDecl, ToolId, ToolSet, Transcript,
};
use positronic_gemini::{Gemini, GeminiConfig, GenerateContentAssembler};
pub(crate) use positronic_model_testing::rules::gemini::check;
use positronic_model_testing::{events, play};
use serde_json::{Value, json};

use crate::recorded;

pub(crate) fn request(messages: impl IntoIterator<Item = Message>, settings: Settings) -> ModelRequest {
    let tool = |id: &str, parameters: Value| ToolDecl {
        id: ToolId::new(id).unwrap(),
        title: None,
        description: "Helps".to_owned(),
        parameters: Arc::new(parameters),
        flags: CallFlags::default(),
    };
    let weather = tool("weather", json!({"type": "object", "properties": {"city": {"type": "string"}}}));
    ModelRequest {
        path: Path::parse("Chat/0").unwrap(),
        attempt: 0,
        system: "You help.".into(),
        context: [ContextItem { name: "day".to_owned(), text: "Today is Monday.".to_owned() }].into(),
        tools: Arc::new(ToolSet::new(vec![weather, tool("time", json!({"type": "object"}))])),
        messages: Transcript::new(messages),
        settings: Arc::new(settings),
    }
}

pub(crate) fn user(text: &str) -> Message {
    Message::user(text)
}

fn result(call: &str, name: &str) -> Message {
    Message::Tool { call: call.to_owned(), name: name.to_owned(), text: "rain".to_owned(), files: Vec::new() }
}

pub(crate) fn model(config: impl FnOnce(&mut GeminiConfig)) -> Gemini {
    let mut own = GeminiConfig::builder().model("gemini-3-pro-preview").build();
    config(&mut own);
    Gemini::new(own).unwrap()
}

/// Returns the body of a request that follows the rules.
pub(crate) fn sent(model: &Gemini, request: &ModelRequest) -> Value {
    let body = serde_json::from_str(&model.wire(request)).unwrap();
    check(&body).unwrap();
    body
}

/// Returns the answer of a recording as it is sent back, with the ids of its calls.
fn answered(recording: &str) -> (Message, Vec<String>) {
    returned(&play::<GenerateContentAssembler>(&events(recording)).1.unwrap())
}

/// Returns an answer as it is sent back, with the ids of its calls.
pub(crate) fn returned(response: &ModelResponse) -> (Message, Vec<String>) {
    let id = |index: usize| response.calls[index].provider_id.clone().unwrap_or_else(|| format!("c{index}"));
    let part = |part| match part {
        Part::Call { index } => {
            let call = response.calls[index as usize].clone();
            let (call_id, name) = (id(index as usize), call.name);
            Some(Assistant::Call { call: call_id, name, arguments: call.arguments, data: call.data })
        }
        part => part.sent_back(),
    };
    let ids = (0..response.calls.len()).map(id).collect();
    (Message::assistant(response.parts.clone().into_iter().filter_map(part).collect()), ids)
}

#[test]
fn request_is_written_in_the_words_of_the_api() {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let settings = Settings::builder()
        .temperature(0.5)
        .max_output_tokens(2000)
        .tool_choice(ToolChoice::Required)
        .output(OutputFormat::JsonSchema { name: "place".to_owned(), schema: Arc::new(schema) })
        .build();
    let own = model(|config| {
        config.thinking_level = Some("low".to_owned());
        config.include_thoughts = Some(true);
        config.safety = vec![("HARM_CATEGORY_HARASSMENT".to_owned(), "BLOCK_ONLY_HIGH".to_owned())];
    });
    let body = sent(&own, &request([user("Hi.")], settings));

    insta::assert_snapshot!(serde_json::to_string_pretty(&body).unwrap(), @r#"
    {
      "contents": [
        {
          "parts": [
            {
              "text": "Hi."
            },
            {
              "text": "<context name=\"day\">\nToday is Monday.\n</context>"
            }
          ],
          "role": "user"
        }
      ],
      "generationConfig": {
        "maxOutputTokens": 2000,
        "responseJsonSchema": {
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
        "responseMimeType": "application/json",
        "temperature": 0.5,
        "thinkingConfig": {
          "includeThoughts": true,
          "thinkingLevel": "low"
        }
      },
      "safetySettings": [
        {
          "category": "HARM_CATEGORY_HARASSMENT",
          "threshold": "BLOCK_ONLY_HIGH"
        }
      ],
      "systemInstruction": {
        "parts": [
          {
            "text": "You help."
          }
        ]
      },
      "toolConfig": {
        "functionCallingConfig": {
          "mode": "ANY"
        }
      },
      "tools": [
        {
          "functionDeclarations": [
            {
              "description": "Helps",
              "name": "weather",
              "parametersJsonSchema": {
                "properties": {
                  "city": {
                    "type": "string"
                  }
                },
                "type": "object"
              }
            },
            {
              "description": "Helps",
              "name": "time"
            }
          ]
        }
      ]
    }
    "#);
}

#[test]
fn answers_are_sent_back_with_their_signatures() {
    let (answer, ids) = answered(recorded::CALL);
    let messages = [user("How is the weather?"), answer, result(&ids[0], "weather")];
    let body = sent(&model(|_| ()), &request(messages, Settings::default()));

    let recorded: Value = serde_json::from_str(&events(recorded::CALL)[0]).unwrap();
    assert_eq!(body["contents"][1]["parts"], recorded["candidates"][0]["content"]["parts"]);
    insta::assert_snapshot!(body["contents"][2], @r#"{"parts":[{"functionResponse":{"name":"weather","response":{"output":"rain"}}},{"text":"<context name=\"day\">\nToday is Monday.\n</context>"}],"role":"user"}"#);
}

#[test]
fn parallel_calls_and_thoughts_are_sent_back() {
    let (answer, ids) = answered(recorded::STREAMED_CALLS);
    let names = ["read_theme", "read_screen", "read_screen", "read_screen"];
    let results = ids.iter().zip(names).map(|(id, name)| result(id, name));
    let messages = [user("Read."), answer].into_iter().chain(results);
    let body = sent(&model(|_| ()), &request(messages, Settings::default()));

    let calls = body["contents"][1]["parts"].as_array().unwrap();
    assert_eq!(calls.len(), 4);
    assert_eq!(calls[3]["functionCall"], json!({ "name": "read_screen", "args": { "id": "C" } }));
}

#[test]
fn ids_go_back_only_if_the_provider_gave_them() {
    let call = |id: &str, data: Option<Value>| Assistant::Call {
        call: id.to_owned(),
        name: "weather".to_owned(),
        arguments: "{}".to_owned(),
        data,
    };
    let own = json!({ "gemini": { "call": { "id": "fc_1" }, "part": { "thoughtSignature": "c2ln" } } });
    let messages = [
        user("Hi."),
        Message::assistant(vec![call("fc_1", Some(own))]),
        result("fc_1", "weather"),
        Message::assistant(vec![call("other", Some(json!({ "extra_content": 1 }))), call("another", None)]),
        result("other", "weather"),
        result("another", "weather"),
    ];
    let body = sent(&model(|_| ()), &request(messages, Settings::default()));

    insta::assert_snapshot!(body["contents"][1], @r#"{"parts":[{"functionCall":{"args":{},"id":"fc_1","name":"weather"},"thoughtSignature":"c2ln"}],"role":"model"}"#);
    insta::assert_snapshot!(body["contents"][3], @r#"{"parts":[{"functionCall":{"args":{},"name":"weather"},"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"args":{},"name":"weather"}}],"role":"model"}"#);
}

#[test]
fn data_of_other_providers_is_not_sent() {
    let parts = vec![
        Assistant::Reasoning { text: "Hm.".to_owned(), data: Some(json!({ "type": "thinking", "signature": "c2ln" })) },
        Assistant::Opaque { data: json!({ "type": "server_tool_use", "anthropic": [{ "type": "server_tool_use" }] }) },
        Assistant::Opaque { data: json!({ "type": "web_search_call", "id": "ws_1" }) },
        Assistant::Text { text: "Rain.".to_owned() },
        Assistant::Opaque { data: json!({ "citations": [{ "url": "https://bees.org" }] }) },
    ];
    let messages = [user("Hi."), Message::assistant(parts), user("Go on.")];
    let body = sent(&model(|_| ()), &request(messages, Settings::default()));

    assert_eq!(body["contents"][1]["parts"], json!([{ "text": "Rain." }]));
}

#[test]
fn cached_prompt_is_not_sent_again() {
    let mut settings = Settings::default();
    settings.extra.insert("cachedContent".to_owned(), json!("cachedContents/1"));
    let body = sent(&model(|_| ()), &request([user("Hi.")], settings));

    assert_eq!(body["cachedContent"], "cachedContents/1");
}
