//! OpenAI's Responses API, used statelessly: every request contains the full history, and reasoning is sent encrypted.

use positronic_core::record::{FileKind, FileLocation, ModelError, ModelRequest, Recipient};

use super::adapter::{Api, OpenAi};
use super::config::OpenAiConfig;
use super::responses_assembler::ResponsesAssembler;
use super::{responses_files, responses_wire};

/// A model behind a Responses API.
pub type OpenAiResponses = OpenAi<Responses>;

/// The Responses API.
#[derive(Debug)]
pub enum Responses {}

impl Api for Responses {
    const PATH: &'static [&'static str] = &["responses"];

    type Assembler = ResponsesAssembler;

    fn check(request: &ModelRequest) -> Result<(), ModelError> {
        responses_wire::check(request)
    }

    fn takes(kind: FileKind, media_type: &str, location: FileLocation<'_>) -> bool {
        responses_files::takes(kind, media_type, location)
    }

    fn body(config: &OpenAiConfig, recipient: Recipient<'_>, request: &ModelRequest) -> String {
        responses_wire::body(config, recipient, request)
    }

    fn assembler(_: &ModelRequest) -> ResponsesAssembler {
        ResponsesAssembler::default()
    }
}
