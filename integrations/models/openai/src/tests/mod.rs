//! Requests as sent by the adapters, and recorded answers of real servers.

mod echo;
mod ends;
mod files;
mod headers;
mod http;
mod marks;
mod reach;
mod recorded;
mod server;
mod unanswerable;
mod usage;
mod wire;

use std::sync::Arc;

use positronic_core::model::Model as _;
use positronic_core::record::{
    CallFlags, ContextItem, Message, ModelRequest, Path, Settings, ToolDecl, ToolId, ToolSet, Transcript,
};
use serde_json::{Value, json};

use crate::{OpenAiConfig, OpenAiResponses};

/// Creates a request with two tools.
fn request(messages: impl IntoIterator<Item = Message>, settings: Settings) -> ModelRequest {
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

/// Returns a message's items in a Responses request.
fn wire_items(message: Message) -> Vec<Value> {
    let config = OpenAiConfig::builder().base_url("http://127.0.0.1:9/v1").model("m").build();
    let request = ModelRequest { context: [].into(), ..request([message], Settings::default()) };
    let body = OpenAiResponses::new(config).unwrap().wire(&request);
    let body: Value = serde_json::from_str(&body).unwrap();
    body["input"].as_array().unwrap().clone()
}

fn user(text: &str) -> Message {
    Message::user(text)
}
