//! The chat completions API, which most servers support.

use positronic_core::record::{FileKind, FileLocation, ModelError, ModelRequest, Recipient};
use serde_json::Value;

use super::adapter::{Api, OpenAi};
use super::chat_assembler::ChatAssembler;
use super::config::OpenAiConfig;
use super::{chat_files, chat_wire};

/// A model behind a chat completions API.
pub type OpenAiChat = OpenAi<Chat>;

/// The chat completions API.
#[derive(Debug)]
pub enum Chat {}

impl Api for Chat {
    const PATH: &'static [&'static str] = &["chat", "completions"];

    type Assembler = ChatAssembler;

    fn check(request: &ModelRequest) -> Result<(), ModelError> {
        chat_wire::check(request)
    }

    fn takes(kind: FileKind, media_type: &str, location: FileLocation<'_>) -> bool {
        chat_files::takes(kind, media_type, location)
    }

    fn body(config: &OpenAiConfig, recipient: Recipient<'_>, request: &ModelRequest) -> String {
        chat_wire::body(config, recipient, request)
    }

    fn assembler(request: &ModelRequest) -> ChatAssembler {
        let choices = request.settings.extra.get("n").and_then(Value::as_u64);
        if choices.is_some_and(|n| n > 1) { ChatAssembler::of_first_choice() } else { ChatAssembler::default() }
    }
}
