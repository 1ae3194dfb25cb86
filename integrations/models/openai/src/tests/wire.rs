//! The bodies of requests.

use std::collections::VecDeque;
use std::future::ready;
use std::sync::{Arc, Mutex};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use positronic_core::model::{DeltaSink, Model};
use positronic_core::prelude::*;
use positronic_core::record::{
    ActionFormat, Assistant, Message, ModelError, ModelRequest, ModelResponse, OutputFormat, Part, ResponseMetadata,
    Settings, StructuredActions, ToolChoice,
};
use serde_json::{Value, json};

use super::{request, user};
use crate::{OpenAiChat, OpenAiConfig, OpenAiResponses, ReasoningBack};

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
        files: Vec::new(),
    };
    vec![user("Hi"), Message::assistant(parts), tool("c1", "sunny"), tool("c2", "bad arguments")]
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
    // The order of the fields is part of the test, and a parsed document may lose it.
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
    let phase = Assistant::Opaque { data: json!({"message": {"phase": "commentary"}}) };
    let messages = conversation(thought, vec![phase]);

    insta::assert_snapshot!(pretty(&model.wire(&request(messages, settings()))));
}

#[test]
fn request_repeats_the_bytes_of_the_previous_one() {
    let chat = OpenAiChat::new(config()).unwrap();
    let responses = OpenAiResponses::new(config()).unwrap();
    let mut first = request([user("one")], Settings::default());
    let before = (chat.wire(&first), responses.wire(&first));
    first.messages.push(user("two"));
    let after = (chat.wire(&first), responses.wire(&first));

    for (before, after) in [(before.0, after.0), (before.1, after.1)] {
        let same = std::iter::zip(before.bytes(), after.bytes()).take_while(|(one, other)| one == other).count();
        // The context follows the text of the last message.
        assert!(after[..same].ends_with("\"content\":\"one"), "{}", &after[..same]);
    }
}

#[test]
fn reasoning_is_sent_back_as_configured_and_never_to_another_api() {
    let messages = || conversation(json!({"field": "reasoning"}), vec![]);
    let silent = vec![Message::assistant(vec![Assistant::Reasoning {
        text: "hm".to_owned(),
        data: Some(json!({"field": "reasoning"})),
    }])];
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
fn invalid_key_or_url_is_rejected_at_once() {
    assert!(OpenAiChat::new(OpenAiConfig { api_key: "sk-1\n".to_owned(), ..config() }).is_err());
    assert!(OpenAiChat::new(OpenAiConfig { base_url: "localhost".to_owned(), ..config() }).is_err());
    assert!(
        !format!("{:?}", OpenAiChat::new(OpenAiConfig { api_key: "sk-1".to_owned(), ..config() })).contains("sk-1")
    );
}

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Place {
    city: String,
}

/// Gives its answers in turn, and keeps the requests.
struct Answers(Mutex<(VecDeque<ModelResponse>, Vec<ModelRequest>)>);

impl Model for Answers {
    fn name(&self) -> String {
        "openai/m".to_owned()
    }

    fn call<'a>(
        &'a self,
        request: &'a ModelRequest,
        _: &'a dyn DeltaSink,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        let (answers, requests) = &mut *self.0.lock().unwrap();
        requests.push(request.clone());
        ready(Ok(answers.pop_front().unwrap())).boxed()
    }

    fn wire(&self, _: &ModelRequest) -> String {
        String::new()
    }
}

/// Returns the request of a loop with structured actions after an action and an answer without one.
fn deciding(decisions: &StructuredActions) -> ModelRequest {
    let answer = |parts| {
        let metadata = ResponseMetadata { provider: "openai".into(), model: "m".into(), ..ResponseMetadata::default() };
        ModelResponse { parts, calls: Vec::new(), metadata }
    };
    let text = |text: &str| Part::Text { text: text.to_owned() };
    let act = |reasoning: &str, action: &str| {
        let (action, input) = (json!(action), json!({"city": "Bonn"}));
        text(&match decisions.batches {
            true => json!({"reasoning": reasoning, "actions": [{"action": action, "input": input}]}).to_string(),
            false => json!({"reasoning": reasoning, "action": action, "input": input}).to_string(),
        })
    };
    let thought = Part::Reasoning {
        text: "encrypted".to_owned(),
        data: Some(json!({"type": "reasoning", "id": "r", "encrypted_content": "gAAA", "summary": []})),
    };
    let answers = [vec![thought, act("I look.", "weather.now")], vec![text("Sunny!")], vec![act("Done.", "finish")]];
    let model = Arc::new(Answers(Mutex::new((answers.map(answer).into(), Vec::new()))));
    let (batches, form) = (decisions.batches, decisions.form.unwrap_or_default());
    let weather = brain("Weather").r#loop("Chat", move |cx| {
        let cx = cx.system("You help.").context("day", "Today is Monday.").input("Hi").action_format(form);
        let cx = if batches { cx.structured_actions_in_batches() } else { cx };
        cx.tool("weather.now", |t| t.description("Says the weather.").execute(async |_: Place, _| Ok("sunny")))
            .tool("finish", |t| t.description("Ends the work.").exit().execute(async |_: Place, _| Ok("done")))
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        Runner::new(Arc::clone(&model)).start(&weather, ()).await.unwrap().result().await.unwrap();
    });
    let requests = model.0.lock().unwrap().1.clone();
    requests.into_iter().nth(2).unwrap()
}

#[test]
fn structured_action_format_keeps_the_order_of_fields() {
    let chat = OpenAiChat::new(config()).unwrap();
    let responses = OpenAiResponses::new(config()).unwrap();

    let body = chat.wire(&deciding(&StructuredActions::default()));
    insta::assert_snapshot!("structured action by chat", pretty(&body));
    let format = "\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"action\",\"schema\":{\"type\":\"object\",\
                  \"properties\":{\"reasoning\":{\"type\":\"string\"},\"action\":{\"type\":\"string\",\"enum\":[\"weather.now\",\"finish\"]},\
                  \"input\":";
    assert!(body.contains(format), "{body}");
    let body = responses.wire(&deciding(&StructuredActions::builder().batches(true).build()));
    insta::assert_snapshot!("structured action by responses", pretty(&body));
    assert!(body.contains("\"text\":{\"format\":{\"type\":\"json_schema\",\"name\":\"action\",\"schema\":{\"type\":\"object\",\"properties\":{\"reasoning\""), "{body}");
    let plain = chat.wire(&deciding(&StructuredActions::builder().form(ActionFormat::Plain).build()));
    assert!(!plain.contains("response_format") && plain.contains("Answer with one JSON object"), "{plain}");
}

#[test]
fn schemas_are_strict_if_the_endpoint_enforces_them() {
    let tools = |config: OpenAiConfig| {
        let body = OpenAiChat::new(config.clone()).unwrap().wire(&request([user("Hi")], settings()));
        let chat: Value = serde_json::from_str(&body).unwrap();
        let body = OpenAiResponses::new(config).unwrap().wire(&request([user("Hi")], settings()));
        let responses: Value = serde_json::from_str(&body).unwrap();
        (chat, responses)
    };
    let strict = json!({
        "type": "object", "properties": {"city": {"type": ["string", "null"]}}, "required": ["city"],
        "additionalProperties": false,
    });

    let (chat, responses) = tools(OpenAiConfig::builder().model("m").build());
    assert_eq!(chat["tools"][0]["function"]["parameters"], strict);
    assert_eq!(chat["tools"][0]["function"]["strict"], true);
    assert_eq!((&responses["tools"][0]["parameters"], &responses["tools"][0]["strict"]), (&strict, &json!(true)));
    // The answer's only property takes any value, which strict mode cannot express.
    assert_eq!(chat["response_format"]["json_schema"]["strict"], false);

    let (chat, responses) = tools(config());
    assert_eq!(chat["tools"][0]["function"].get("strict"), None, "other servers may not know the field");
    assert_eq!(chat["tools"][0]["function"]["parameters"]["properties"]["city"]["type"], "string");
    assert_eq!(responses["tools"][0]["strict"], false, "this API defaults to strict schemas");
}

#[test]
fn strict_schemas_default_depends_on_the_url() {
    let strict = |config: &OpenAiConfig| {
        let body = OpenAiChat::new(config.clone()).unwrap().wire(&request([user("Hi")], Settings::default()));
        body.contains("\"strict\":true")
    };
    let at = |url: &str| OpenAiConfig { base_url: url.to_owned(), ..config() };

    assert!(strict(&at("https://api.openai.com/v1/")));
    assert!(strict(&at("https://me.openai.azure.com:443/openai/v1")));
    assert!(strict(&at("https://me.cognitiveservices.azure.com/openai/v1")));
    assert!(!strict(&at("https://api.openai.com.example/v1")));
    assert!(!strict(&at("https://api.openai.com@example.com/v1")));
    assert!(strict(&OpenAiConfig { strict_schemas: Some(true), ..at("http://127.0.0.1:9/v1") }));
    assert!(!strict(&OpenAiConfig { strict_schemas: Some(false), ..at("https://api.openai.com/v1") }));
}

#[test]
fn context_follows_the_history() {
    let last = |config: OpenAiConfig, messages: Vec<Message>| {
        let body = OpenAiChat::new(config.clone()).unwrap().wire(&request(messages.clone(), Settings::default()));
        let chat: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(chat["messages"][0]["content"], "You help.");
        let body = OpenAiResponses::new(config).unwrap().wire(&request(messages, Settings::default()));
        let responses: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(responses["instructions"], "You help.");
        let last = |list: &Value| list.as_array().unwrap().last().unwrap().clone();
        (last(&chat["messages"]), last(&responses["input"]))
    };
    let context = "<context name=\"day\">\nToday is Monday.\n</context>";
    let own = json!({"role": "user", "content": context});
    let both = json!({"role": "user", "content": format!("Hi\n\n{context}")});
    let results = conversation(json!({}), vec![]);
    let mistral = OpenAiConfig { base_url: "https://api.mistral.ai/v1".to_owned(), ..config() };
    let within = format!("bad arguments\n\n{context}");

    assert_eq!(last(config(), vec![user("Hi")]), (both.clone(), both));
    assert_eq!(last(config(), results.clone()), (own.clone(), own.clone()));
    assert_eq!(last(config(), vec![]), (own.clone(), own));
    assert_eq!(
        last(mistral, results),
        (
            json!({"role": "tool", "tool_call_id": "c2", "content": within}),
            json!({"type": "function_call_output", "call_id": "c2", "output": within})
        )
    );
}

#[test]
fn changing_context_keeps_the_bytes_of_the_history() {
    let chat = OpenAiChat::new(config()).unwrap();
    let responses = OpenAiResponses::new(config()).unwrap();
    let at = |messages: Vec<Message>, day: &str| {
        let context = [positronic_core::record::ContextItem { name: "day".to_owned(), text: day.to_owned() }];
        let request = ModelRequest { context: context.into(), ..request(messages, Settings::default()) };
        [chat.wire(&request), responses.wire(&request)]
    };
    let results = conversation(json!({}), vec![]);
    let bodies = std::iter::zip(at(vec![user("Hi")], "Monday"), at(results.clone(), "Tuesday"));

    for (before, after) in bodies {
        let same = std::iter::zip(before.bytes(), after.bytes()).take_while(|(one, other)| one == other).count();
        assert!(after[..same].ends_with("\"content\":\"Hi"), "{}", &after[..same]);
    }
}
