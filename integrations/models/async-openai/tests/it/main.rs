//! Tests of the crate's public API.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

mod azure;
mod configs;
mod stack;
mod token;
#[cfg(feature = "types")]
mod types;

use std::sync::Arc;

use positronic_core::model::{Model, NoDeltas};
use positronic_core::record::{
    CallFlags, Message, ModelError, ModelRequest, ModelResponse, Path, Settings, ToolDecl, ToolId, ToolSet, Transcript,
};
use positronic_openai::OpenAiConfig;

/// Returns the options of a model whose deployment is that of the mock of Azure.
fn options() -> OpenAiConfig {
    OpenAiConfig::builder().provider("azure").model(positronic_model_testing::azure::DEPLOYMENT).build()
}

fn request(settings: Settings) -> ModelRequest {
    let parameters = serde_json::json!({"type": "object", "properties": {"city": {"type": "string"}}});
    let tool = ToolDecl {
        id: ToolId::new("weather").unwrap(),
        title: None,
        description: "Tells the weather".to_owned(),
        parameters: Arc::new(parameters),
        flags: CallFlags::default(),
    };
    ModelRequest {
        path: Path::parse("Chat/0").unwrap(),
        attempt: 0,
        system: "You help.".into(),
        context: [].into(),
        tools: Arc::new(ToolSet::new(vec![tool])),
        messages: Transcript::new([Message::user("Hi")]),
        settings: Arc::new(settings),
    }
}

async fn ask(model: &impl Model) -> Result<ModelResponse, ModelError> {
    model.call(&request(Settings::default()), &NoDeltas).await
}
