//! Requests with files and tools of the provider, against the published schemas.

use std::sync::Arc;

use positronic_core::model::Model as _;
use positronic_core::record::{
    Assistant, Attachment, FileRef, Message, ModelRequest, Path, ProviderTool, Settings, Transcript, WebSearchOptions,
    code_execution, image_generation,
};
use positronic_openai::{OpenAiChat, OpenAiConfig, OpenAiResponses};

use super::rules::{Dialect, broken};

fn request(files: Vec<Attachment>, tools: Vec<ProviderTool>) -> ModelRequest {
    let call =
        Assistant::Call { call: "c1".to_owned(), name: "look".to_owned(), arguments: "{}".to_owned(), data: None };
    let shown = vec![Attachment::new("bee.png", "image/png", *b"\x89PNG")];
    let result =
        Message::Tool { call: "c1".to_owned(), name: "look".to_owned(), text: "a bee".to_owned(), files: shown };
    let question = Message::User { text: "What is it?".to_owned(), files };
    ModelRequest {
        path: Path::root().stage("Look").iteration(1),
        attempt: 0,
        system: "You know all insects.".into(),
        context: [].into(),
        tools: Arc::default(),
        messages: Transcript::new([question, Message::assistant(vec![call]), result]),
        settings: Arc::new(Settings::builder().provider_tools(tools).build()),
    }
}

#[test]
fn published_schemas_accept_files_and_tools_of_the_provider() {
    let config = || OpenAiConfig::builder().model("gpt-5-mini").build();
    let photo = Attachment::new("bee.jpg", "image/jpeg", *b"photo");
    let paper = Attachment::new("bees.pdf", "application/pdf", *b"%PDF");
    let link = Attachment::from(FileRef::url("https://example.org/bee.jpg", "image/jpeg"));
    let uploaded = Attachment::from(FileRef::uploaded("openai", "file-1", "application/pdf"));
    let sound = Attachment::new("hum.wav", "audio/wav", *b"hum");
    let files = vec![photo, paper, link, uploaded];
    let search = WebSearchOptions::builder().allowed_domains(["docs.rs".to_owned()]).build();
    let tools = vec![search.into(), code_execution(), image_generation()];

    let chat = OpenAiChat::new(config()).unwrap().wire(&request([files.clone(), vec![sound]].concat(), Vec::new()));
    let responses = OpenAiResponses::new(config()).unwrap().wire(&request(files, tools));

    for (dialect, body) in [(Dialect::Chat, chat), (Dialect::Responses, responses)] {
        let wrong = broken(dialect, &serde_json::from_str(&body).unwrap(), false);
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
