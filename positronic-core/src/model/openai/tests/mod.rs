//! What the adapters send, and what they make of what real servers sent.

mod ends;
mod headers;
mod http;
mod reach;
mod recorded;
mod server;
mod unanswerable;
mod usage;
mod wire;

use std::sync::Arc;

use serde_json::json;

use crate::record::{
    CallFlags, ContextItem, Message, ModelRequest, Path, Settings, ToolDecl, ToolId, ToolSet, Transcript,
};

/// Makes a request with two tools.
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

fn user(text: &str) -> Message {
    Message::User { text: text.to_owned() }
}
