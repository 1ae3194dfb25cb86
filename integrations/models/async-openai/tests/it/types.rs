//! Typed tools and options of async-openai.

use async_openai::config::OpenAIConfig;
use async_openai::types::chat::{
    CreateChatCompletionRequest, CreateChatCompletionRequestArgs, ServiceTier, WebSearchOptions,
};
use async_openai::types::responses::{CreateResponse, CreateResponseArgs, Tool, WebSearchToolArgs};
use positronic_async_openai::{Connection, chat_settings, response_settings, response_tool};
use positronic_core::model::Model;
use positronic_core::record::Settings;
use serde_json::{Value, json};

use crate::{options, request};

fn connection() -> Connection {
    Connection::new(OpenAIConfig::new().with_api_base("http://127.0.0.1:9/v1").with_api_key("k"))
}

fn body(model: &impl Model, settings: Settings) -> Value {
    serde_json::from_str(&model.wire(&request(settings))).unwrap()
}

#[test]
fn options_of_a_response_are_sent_and_the_conversation_is_the_engines() {
    let search = WebSearchToolArgs::default().build().unwrap();
    let options_of_async_openai: CreateResponse = CreateResponseArgs::default()
        .model("another")
        .input("ignored")
        .instructions("ignored")
        .temperature(0.7)
        .max_output_tokens(900_u32)
        .tools(vec![Tool::WebSearch(search)])
        .build()
        .unwrap();

    let sent = body(&connection().responses(options()).unwrap(), response_settings(&options_of_async_openai));

    assert_eq!((&sent["model"], &sent["instructions"]), (&json!("desk"), &json!("You help.")));
    assert_eq!((&sent["temperature"], &sent["max_output_tokens"]), (&json!(0.7), &json!(900)));
    let tools: Vec<_> = sent["tools"].as_array().unwrap().iter().map(|tool| &tool["type"]).collect();
    assert_eq!(tools, ["function", "web_search"]);
    assert!(!sent.to_string().contains("ignored"), "{sent}");
}

#[test]
fn options_of_a_chat_completion_are_sent() {
    let options_of_async_openai: CreateChatCompletionRequest = CreateChatCompletionRequestArgs::default()
        .service_tier(ServiceTier::Flex)
        .web_search_options(WebSearchOptions::default())
        .build()
        .unwrap();

    let sent = body(&connection().chat(options()).unwrap(), chat_settings(&options_of_async_openai));

    assert_eq!((&sent["service_tier"], &sent["model"]), (&json!("flex"), &json!("desk")));
    assert!(sent["web_search_options"].is_object() && sent["messages"].as_array().unwrap().len() == 2, "{sent}");
}

#[test]
fn tool_is_sent_in_the_providers_words() {
    let mut settings = Settings::default();
    settings.provider_tools.push(response_tool(&Tool::LocalShell));

    let sent = body(&connection().responses(options()).unwrap(), settings);

    assert_eq!(sent["tools"][1], json!({"type": "local_shell"}));
}
