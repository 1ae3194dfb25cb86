//! Files in requests.

use std::sync::Arc;

use positronic_anthropic::{CacheLife, MessagesAssembler};
use positronic_core::model::{Model as _, NoDeltas};
use positronic_core::record::{
    Assistant, Attachment, FileRef, Message, ModelErrorKind, OutputFormat, Settings, web_search,
};
use positronic_model_http::Assemble as _;
use positronic_model_testing::{Provider, events};
use serde_json::{Value, json};

use crate::recorded::TEXT;
use crate::requests::{call, check, model, request, sent, user};

fn photo() -> Attachment {
    Attachment::new("bee.png", "image/png", *b"\x89PNG")
}

fn asking(text: &str, files: Vec<Attachment>) -> Message {
    Message::User { text: text.to_owned(), files }
}

fn result(files: Vec<Attachment>) -> Message {
    let (call, name, text) =
        ("toolu_1".to_owned(), "weather".to_owned(), "[file bee.png, image/png, 4 bytes]".to_owned());
    Message::Tool { call, name, text, files }
}

fn blocks(message: &Value) -> String {
    let blocks = message["content"].as_array().unwrap().iter().map(Value::to_string);
    blocks.collect::<Vec<_>>().join("\n")
}

#[test]
fn files_of_a_message_precede_its_text_and_those_of_a_result_follow_it() {
    let files = vec![
        photo(),
        Attachment::new("offer.pdf", "application/pdf", *b"%PDF"),
        Attachment::from(FileRef::url("https://example.org/hive.jpg", "image/jpeg")),
        Attachment::from(FileRef::url("https://example.org/terms.pdf", "application/pdf")),
        Attachment::from(FileRef::uploaded("anthropic", "file_1", "image/webp")),
        Attachment::from(FileRef::uploaded("anthropic", "file_2", "text/plain").named("log.txt")),
        Attachment::new("notes.md", "text/markdown", *b"# Bees"),
    ];
    let messages = [asking("What is this?", files), Message::assistant(vec![call("toolu_1")]), result(vec![photo()])];
    let body = sent(&model(|_| ()), &request(messages, Settings::default()));

    insta::assert_snapshot!(blocks(&body["messages"][0]), @r#"
    {"source":{"data":"iVBORw==","media_type":"image/png","type":"base64"},"type":"image"}
    {"source":{"data":"JVBERg==","media_type":"application/pdf","type":"base64"},"title":"offer.pdf","type":"document"}
    {"source":{"type":"url","url":"https://example.org/hive.jpg"},"type":"image"}
    {"source":{"type":"url","url":"https://example.org/terms.pdf"},"title":"terms.pdf","type":"document"}
    {"source":{"file_id":"file_1","type":"file"},"type":"image"}
    {"source":{"file_id":"file_2","type":"file"},"title":"log.txt","type":"document"}
    {"text":"[file notes.md, text/markdown, 6 bytes]\n# Bees","type":"text"}
    {"cache_control":{"type":"ephemeral"},"text":"What is this?","type":"text"}
    "#);
    insta::assert_snapshot!(blocks(&body["messages"][2]), @r#"
    {"cache_control":{"type":"ephemeral"},"content":[{"text":"[file bee.png, image/png, 4 bytes]","type":"text"},{"source":{"data":"iVBORw==","media_type":"image/png","type":"base64"},"type":"image"}],"tool_use_id":"toolu_1","type":"tool_result"}
    {"text":"<context name=\"day\">\nToday is Monday.\n</context>","type":"text"}
    "#);
}

#[test]
fn message_can_have_files_only() {
    let body = sent(&model(|_| ()), &request([asking("", vec![photo()])], Settings::default()));

    insta::assert_snapshot!(blocks(&body["messages"][0]), @r#"
    {"cache_control":{"type":"ephemeral"},"source":{"data":"iVBORw==","media_type":"image/png","type":"base64"},"type":"image"}
    {"text":"<context name=\"day\">\nToday is Monday.\n</context>","type":"text"}
    "#);
}

#[test]
fn documents_are_cited_unless_the_output_has_a_schema() {
    let files = || {
        let notes = Attachment::new("notes.md", "text/markdown", *b"# Bees");
        vec![photo(), Attachment::new("offer.pdf", "application/pdf", *b"%PDF"), notes]
    };
    let model = model(|config| config.cite_documents = true);
    let body = |settings| sent(&model, &request([asking("Summarize it.", files())], settings));

    insta::assert_snapshot!(blocks(&body(Settings::default())["messages"][0]), @r##"
    {"source":{"data":"iVBORw==","media_type":"image/png","type":"base64"},"type":"image"}
    {"citations":{"enabled":true},"source":{"data":"JVBERg==","media_type":"application/pdf","type":"base64"},"title":"offer.pdf","type":"document"}
    {"citations":{"enabled":true},"source":{"data":"# Bees","media_type":"text/plain","type":"text"},"title":"notes.md","type":"document"}
    {"cache_control":{"type":"ephemeral"},"text":"Summarize it.","type":"text"}
    {"text":"<context name=\"day\">\nToday is Monday.\n</context>","type":"text"}
    "##);
    let schema = json!({"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]});
    let output = OutputFormat::JsonSchema { name: "summary".to_owned(), schema: Arc::new(schema) };
    let uncited = body(Settings::builder().output(output).build());
    assert!(uncited["output_config"]["format"].is_object() && !uncited.to_string().contains("citations"), "{uncited}");
}

#[test]
fn citations_of_documents_name_them() {
    let citation = json!({
        "type": "page_location", "cited_text": "Bees buzz.", "document_index": 0, "document_title": "offer.pdf",
        "start_page_number": 1, "end_page_number": 2,
    });
    let body = json!({
        "content": [{ "type": "text", "text": "They buzz.", "citations": [citation] }], "stop_reason": "end_turn",
    });
    let mut assembler = MessagesAssembler::default();
    assembler.feed_complete(&body.to_string()).unwrap();

    let answer = assembler.finish().unwrap();
    insta::assert_snapshot!(serde_json::to_value(&answer.parts[1]).unwrap()["citations"], @r#"[{"quote":"Bees buzz.","title":"offer.pdf"}]"#);
}

#[test]
fn pictures_of_other_models_are_lines() {
    let parts = vec![Assistant::File { file: photo(), data: None }];
    let messages = [user("Draw a bee."), Message::assistant(parts), user("Thanks.")];
    let body = sent(&model(|_| ()), &request(messages, Settings::default()));

    insta::assert_snapshot!(blocks(&body["messages"][1]), @r#"{"text":"[file bee.png, image/png, 4 bytes]","type":"text"}"#);
}

#[test]
fn next_request_begins_with_the_same_files_and_tools() {
    let settings = || Settings::builder().provider_tools(vec![web_search()]).build();
    let model = model(|config| config.cache = CacheLife::Off);
    let mut messages = vec![asking("What is this?", vec![photo()])];
    let first = model.wire(&request(messages.clone(), settings()));
    messages.extend([Message::assistant(vec![call("toolu_1")]), result(vec![photo()])]);
    let second = model.wire(&request(messages, settings()));

    let end = first.find("What is this?").unwrap();
    assert!(first[..end].contains("iVBORw==") && first[..end].contains("web_search_20250305"), "{first}");
    assert_eq!(first[..end], second[..end]);
}

#[tokio::test]
async fn only_requests_with_file_ids_name_the_beta_feature() {
    let provider = Provider::start(check, vec![events(TEXT), events(TEXT)]).await;
    let model = model(|config| {
        config.base_url = format!("{}/v1", provider.url());
        config.beta = vec!["context-1m-2025-08-07".to_owned()];
    });
    for file in [photo(), Attachment::from(FileRef::uploaded("anthropic", "file_1", "image/png"))] {
        model.call(&request([asking("What is this?", vec![file])], Settings::default()), &NoDeltas).await.unwrap();
    }

    let requests = provider.requests().await;
    let beta = |index: usize| requests[index].headers.get_all("anthropic-beta").iter().collect::<Vec<_>>();
    assert_eq!(beta(0), ["context-1m-2025-08-07"]);
    assert_eq!(beta(1), ["context-1m-2025-08-07,files-api-2025-04-14"]);
}

#[tokio::test]
async fn files_that_the_model_cannot_read_are_refused_before_sending_or_left_out() {
    let provider = Provider::start(check, vec![events(TEXT)]).await;
    let model = model(|config| config.base_url = format!("{}/v1", provider.url()));
    let film = || Attachment::new("bees.mp4", "video/mp4", *b"film");
    let refused = async |file: Attachment| {
        let error =
            model.call(&request([asking("See.", vec![file])], Settings::default()), &NoDeltas).await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Unsupported);
        error.message
    };

    insta::assert_snapshot!(refused(film()).await, @"the model `anthropic/claude-sonnet-4-5` cannot read the file `bees.mp4` (video/mp4): it reads text, images and PDFs; choose another model, convert the file, or correct the table of capabilities");
    insta::assert_snapshot!(refused(Attachment::new("a.tiff", "image/tiff", *b"tiff")).await, @"the API of `anthropic` takes no files of the type image/tiff: `a.tiff`; convert it, or choose another provider");
    insta::assert_snapshot!(refused(FileRef::url("https://example.org/a.csv", "text/csv").into()).await, @"the API of `anthropic` takes files of the type text/csv only with their bytes: `a.csv`; attach them");
    insta::assert_snapshot!(refused(FileRef::uploaded("gemini", "files/a", "image/png").into()).await, @"the file `a` was uploaded to `gemini`, and `anthropic` does not have it; upload it there, or attach its bytes");
    assert!(provider.requests().await.is_empty());

    let messages = [user("See."), Message::assistant(vec![call("toolu_1")]), result(vec![film(), photo()])];
    model.call(&request(messages, Settings::default()), &NoDeltas).await.unwrap();
    let content = &provider.bodies()[0]["messages"][2]["content"][0]["content"];
    assert_eq!(content.as_array().unwrap().iter().map(|block| &block["type"]).collect::<Vec<_>>(), ["text", "image"]);
}
