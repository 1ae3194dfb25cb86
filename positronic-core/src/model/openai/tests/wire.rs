//! The bodies of requests.

use serde_json::{Value, json};

use super::{request, user};
use crate::model::Model as _;
use crate::model::openai::{OpenAiChat, OpenAiConfig, OpenAiResponses, ReasoningBack};
use crate::record::{Assistant, Message, OutputFormat, Settings, ToolChoice};

fn config() -> OpenAiConfig {
    OpenAiConfig::builder().base_url("http://127.0.0.1:9/v1/").model("m").build()
}

fn conversation(thought: Value, extra: Vec<Assistant>) -> Vec<Message> {
    let mut parts = vec![Assistant::Reasoning { text: "hm".to_owned(), data: Some(thought) }];
    parts.extend(extra);
    parts.extend([
        Assistant::Text { text: "I look.".to_owned() },
        Assistant::Call {
            call: "c1".to_owned(),
            name: "weather".to_owned(),
            arguments: "{\"city\":\"Bonn\"}".to_owned(),
            data: Some(json!({"extra_content": {"sig": "s"}})),
        },
        Assistant::Call {
            call: "c2".to_owned(),
            name: "weather".to_owned(),
            arguments: "{\"ci".to_owned(),
            data: None,
        },
    ]);
    let tool = |call: &str, text: &str| Message::Tool {
        call: call.to_owned(),
        name: "weather".to_owned(),
        text: text.to_owned(),
    };
    vec![user("Hi"), Message::Assistant { parts }, tool("c1", "sunny"), tool("c2", "bad arguments")]
}

fn settings() -> Settings {
    let schema = json!({"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": false});
    let mut settings = Settings::builder()
        .temperature(0.5)
        .max_output_tokens(100)
        .tool_choice(ToolChoice::Required)
        .parallel_tool_calls(false)
        .output(OutputFormat::JsonSchema { name: "answer".to_owned(), schema: schema.into() })
        .build();
    settings.extra.insert("seed".to_owned(), json!(7));
    settings.extra.insert("temperature".to_owned(), json!(1));
    settings
}

fn pretty(body: &str) -> String {
    let document: Value = serde_json::from_str(body).unwrap();
    // The order of the fields is part of the promise, and a parsed document may have lost it.
    let fields: indexmap::IndexMap<String, serde::de::IgnoredAny> = serde_json::from_str(body).unwrap();
    let fields: Vec<_> = fields.keys().collect();
    format!("{fields:?}\n{document:#}")
}

#[test]
fn a_chat_request() {
    let model = OpenAiChat::new(config()).unwrap();
    let messages = conversation(json!({"field": "reasoning_content"}), vec![]);

    insta::assert_snapshot!(pretty(&model.wire(&request(messages, settings()))));
}

#[test]
fn a_responses_request() {
    let model = OpenAiResponses::new(config()).unwrap();
    let thought = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"});
    let phase = Assistant::Opaque { data: json!({"phase": "commentary"}) };
    let messages = conversation(thought, vec![phase]);

    insta::assert_snapshot!(pretty(&model.wire(&request(messages, settings()))));
}

#[test]
fn a_round_repeats_the_bytes_of_the_one_before_up_to_its_end() {
    let chat = OpenAiChat::new(config()).unwrap();
    let responses = OpenAiResponses::new(config()).unwrap();
    let mut first = request([user("one")], Settings::default());
    let before = (chat.wire(&first), responses.wire(&first));
    first.messages.push(user("two"));
    let after = (chat.wire(&first), responses.wire(&first));

    for (before, after) in [(before.0, after.0), (before.1, after.1)] {
        let same = std::iter::zip(before.bytes(), after.bytes()).take_while(|(one, other)| one == other).count();
        assert!(after[..same].ends_with("\"one\"}"), "{}", &after[..same]);
    }
}

#[test]
fn thoughts_go_back_as_the_configuration_says_and_never_into_another_dialect() {
    let messages = || conversation(json!({"field": "reasoning"}), vec![]);
    let silent = vec![Message::Assistant {
        parts: vec![Assistant::Reasoning { text: "hm".to_owned(), data: Some(json!({"field": "reasoning"})) }],
    }];
    let wire = |back, messages| {
        let config = OpenAiConfig { reasoning_back: back, ..config() };
        OpenAiChat::new(config).unwrap().wire(&request(messages, Settings::default()))
    };
    let thought = "\"reasoning\":\"hm\"";

    assert!(wire(ReasoningBack::WithCalls, messages()).contains(thought));
    assert!(!wire(ReasoningBack::WithCalls, silent.clone()).contains(thought));
    assert!(wire(ReasoningBack::Always, silent).contains(thought));
    assert!(!wire(ReasoningBack::Never, messages()).contains(thought));
    let responses = OpenAiResponses::new(config()).unwrap();
    assert!(!responses.wire(&request(messages(), Settings::default())).contains("reasoning\":\"hm"));
}

#[test]
fn an_unusable_key_or_address_is_refused_at_once() {
    assert!(OpenAiChat::new(OpenAiConfig { api_key: "sk-1\n".to_owned(), ..config() }).is_err());
    assert!(OpenAiChat::new(OpenAiConfig { base_url: "localhost".to_owned(), ..config() }).is_err());
    assert!(
        !format!("{:?}", OpenAiChat::new(OpenAiConfig { api_key: "sk-1".to_owned(), ..config() })).contains("sk-1")
    );
}
