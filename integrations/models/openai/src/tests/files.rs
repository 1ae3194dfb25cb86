//! Files in requests and answers, sources, and tools of the provider.

use futures::FutureExt as _;
use positronic_core::model::{Model, NoDeltas};
use positronic_core::record::{
    Assistant, Attachment, FileRef, Message, ModelRequest, ModelResponse, Part, ProviderTool, Settings,
    WebSearchOptions, code_execution, image_generation, web_search,
};
use positronic_model_http::Assemble as _;
use serde_json::{Value, json};

use super::server::{Answer, Server};
use super::{request, user};
use crate::{ChatAssembler, OpenAiChat, OpenAiConfig, OpenAiResponses, ResponsesAssembler};

fn config() -> OpenAiConfig {
    OpenAiConfig::builder().base_url("http://127.0.0.1:9/v1/").model("gpt-5-mini").build()
}

fn photo() -> Attachment {
    Attachment::new("bee.png", "image/png", *b"\x89PNG")
}

fn paper() -> Attachment {
    Attachment::new("bees.pdf", "application/pdf", *b"%PDF")
}

fn with_files(files: Vec<Attachment>) -> Message {
    Message::User { text: "What is it?".to_owned(), files }
}

/// Returns a dialogue in which a tool shows a picture.
fn shown() -> Vec<Message> {
    let call =
        Assistant::Call { call: "c1".to_owned(), name: "weather".to_owned(), arguments: "{}".to_owned(), data: None };
    let (call_id, name, text) = ("c1".to_owned(), "weather".to_owned(), photo().file().line());
    let result = Message::Tool { call: call_id, name, text, files: vec![photo()] };
    vec![user("Look."), Message::assistant(vec![call]), result]
}

fn body(model: &impl Model, messages: Vec<Message>, settings: Settings) -> Value {
    let request = ModelRequest { tools: std::sync::Arc::default(), ..request(messages, settings) };
    serde_json::from_str(&model.wire(&request)).unwrap()
}

#[test]
fn chat_request_has_the_files_before_the_text() {
    let model = OpenAiChat::new(config()).unwrap();
    let link = Attachment::from(FileRef::url("https://example.org/a.jpg", "image/jpeg"));
    let uploaded = Attachment::from(FileRef::uploaded("openai", "file-1", "application/pdf"));
    let sound = Attachment::new("hum.mp3", "audio/mpeg", *b"hum");
    let notes = Attachment::new("notes.md", "text/markdown", *b"# Bees");
    let files = vec![photo(), link, paper(), uploaded, sound, notes];

    let body = body(&model, vec![with_files(files)], Settings::default());

    insta::assert_snapshot!(format!("{:#}", body["messages"][1]["content"]), @r#"
    [
      {
        "image_url": {
          "url": "data:image/png;base64,iVBORw=="
        },
        "type": "image_url"
      },
      {
        "image_url": {
          "url": "https://example.org/a.jpg"
        },
        "type": "image_url"
      },
      {
        "file": {
          "file_data": "data:application/pdf;base64,JVBERg==",
          "filename": "bees.pdf"
        },
        "type": "file"
      },
      {
        "file": {
          "file_id": "file-1"
        },
        "type": "file"
      },
      {
        "input_audio": {
          "data": "aHVt",
          "format": "mp3"
        },
        "type": "input_audio"
      },
      {
        "text": "[file notes.md, text/markdown, 6 bytes]\n# Bees",
        "type": "text"
      },
      {
        "text": "What is it?\n\n<context name=\"day\">\nToday is Monday.\n</context>",
        "type": "text"
      }
    ]
    "#);
}

#[test]
fn files_of_results_follow_in_a_message_of_the_user() {
    let model = OpenAiChat::new(config()).unwrap();
    let mut dialogue = shown();

    let before = body(&model, dialogue.clone(), Settings::default());
    dialogue.push(Message::assistant(vec![Assistant::Text { text: "A bee.".to_owned() }]));
    let after = body(&model, dialogue, Settings::default());

    let content = |message: &Value| message["content"].clone();
    assert_eq!(content(&before["messages"][3]), json!("[file bee.png, image/png, 4 bytes]"));
    let picture = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}});
    let context = json!({"type": "text", "text": "<context name=\"day\">\nToday is Monday.\n</context>"});
    assert_eq!(content(&before["messages"][4]), json!([picture, context]));
    assert_eq!(content(&after["messages"][4]), json!([picture]));
}

#[test]
fn files_of_results_come_before_the_next_message_of_the_user() {
    let model = OpenAiChat::new(config()).unwrap();
    let mut dialogue = shown();
    dialogue.push(user("Meanwhile."));

    let before = body(&model, dialogue.clone(), Settings::default());
    dialogue.push(Message::assistant(vec![Assistant::Text { text: "A bee.".to_owned() }]));
    let after = body(&model, dialogue, Settings::default());

    for body in [&before, &after] {
        assert_eq!(body["messages"][4]["content"][0]["type"], "image_url", "{body:#}");
        assert!(body["messages"][5]["content"].as_str().unwrap().starts_with("Meanwhile."), "{body:#}");
    }
}

#[test]
fn responses_request_has_files_in_messages_and_outputs() {
    let model = OpenAiResponses::new(config()).unwrap();
    let link = Attachment::from(FileRef::url("https://example.org/a.pdf", "application/pdf"));
    let uploaded = Attachment::from(FileRef::uploaded("openai", "file-1", "image/png"));
    let mut dialogue = shown();
    dialogue.push(with_files(vec![photo(), paper(), link, uploaded]));

    let body = body(&model, dialogue, Settings::default());

    let picture = json!({"type": "input_image", "image_url": "data:image/png;base64,iVBORw==", "detail": "auto"});
    let line = json!({"type": "input_text", "text": "[file bee.png, image/png, 4 bytes]"});
    assert_eq!(body["input"][2]["output"], json!([picture, line]));
    insta::assert_snapshot!(format!("{:#}", body["input"][3]["content"]), @r#"
    [
      {
        "detail": "auto",
        "image_url": "data:image/png;base64,iVBORw==",
        "type": "input_image"
      },
      {
        "file_data": "data:application/pdf;base64,JVBERg==",
        "filename": "bees.pdf",
        "type": "input_file"
      },
      {
        "file_url": "https://example.org/a.pdf",
        "type": "input_file"
      },
      {
        "detail": "auto",
        "file_id": "file-1",
        "type": "input_image"
      },
      {
        "text": "What is it?\n\n<context name=\"day\">\nToday is Monday.\n</context>",
        "type": "input_text"
      }
    ]
    "#);
}

#[test]
fn unreadable_file_or_unknown_tool_is_refused_before_the_request() {
    let server = Server::start(vec![Answer::sse("")]);
    let config = OpenAiConfig { base_url: server.address.clone(), ..config() };
    let chat = OpenAiChat::new(config.clone()).unwrap();
    let responses = OpenAiResponses::new(config).unwrap();
    let film = || vec![with_files(vec![Attachment::new("bees.mp4", "video/mp4", *b"film")])];
    let tools = |tool| Settings::builder().provider_tools([tool]).build();
    let search = WebSearchOptions::builder().blocked_domains(["example.org".to_owned()]).build();
    let refused = |model: &dyn Model, messages, settings| {
        let request = request(messages, settings);
        let answer = model.call(&request, &NoDeltas).now_or_never().expect("nothing is sent");
        answer.unwrap_err().message
    };

    assert_eq!(
        refused(&chat, film(), Settings::default()),
        "the model `openai/gpt-5-mini` cannot read the file `bees.mp4` (video/mp4): it reads text, images and PDFs; choose \
         another model, convert the file, or correct the table of capabilities"
    );
    assert!(refused(&responses, film(), Settings::default()).contains("cannot read the file `bees.mp4`"));
    assert!(
        refused(&chat, vec![user("Hi")], tools(web_search())).starts_with("chat completions have no tool `web_search`")
    );
    assert!(refused(&responses, vec![user("Hi")], tools(search.into())).contains("no `blocked_domains`"));
    assert!(server.requests().is_empty());
}

#[test]
fn tools_of_the_provider_are_sent_beside_the_brains_own() {
    let tools = [web_search(), code_execution(), image_generation(), ProviderTool::raw(json!({"type": "x"}))];
    let settings = Settings::builder().provider_tools(tools).build();
    let request = request([user("Hi")], settings);

    let body: Value = serde_json::from_str(&OpenAiResponses::new(config()).unwrap().wire(&request)).unwrap();
    let kinds: Vec<_> = body["tools"].as_array().unwrap().iter().map(|tool| tool["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["function", "function", "web_search", "code_interpreter", "image_generation", "x"]);
    assert_eq!(
        body["include"],
        json!(["reasoning.encrypted_content", "web_search_call.action.sources", "code_interpreter_call.outputs"])
    );
    let body: Value = serde_json::from_str(&OpenAiChat::new(config()).unwrap().wire(&request)).unwrap();
    assert_eq!(body["tools"][2], json!({"type": "x"}));
}

fn answered(output: &Value) -> ModelResponse {
    let mut assembler = ResponsesAssembler::default();
    let answer = json!({"id": "resp_1", "object": "response", "status": "completed", "output": output});
    assembler.feed_complete(&answer.to_string()).unwrap();
    assembler.finish().unwrap()
}

#[test]
fn searches_and_sources_are_parts_that_go_back_unchanged() {
    let search = json!({"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {
        "type": "search", "query": "bees in winter", "sources": [{"type": "url", "url": "https://example.org/bees"}]
    }});
    let message = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [{
        "type": "output_text", "text": "They cluster.", "logprobs": [], "annotations": [
            {"type": "url_citation", "url": "https://example.org/bees", "title": "Bees", "start_index": 0, "end_index": 4},
            {"type": "url_citation", "url": "https://example.org/bees", "title": "Bees", "start_index": 5, "end_index": 9},
        ]
    }]});

    let answer = answered(&json!([search, message]));

    let [Part::ProviderTool(used), Part::Opaque { .. }, Part::Text { .. }, Part::Citations { citations, .. }] =
        &answer.parts[..]
    else {
        panic!("{:?}", answer.parts)
    };
    assert_eq!((&*used.tool, used.input.as_deref()), ("web_search", Some("bees in winter")));
    assert_eq!(used.sources[0].line(), "https://example.org/bees");
    assert_eq!(citations.iter().map(|source| source.line()).collect::<Vec<_>>(), ["Bees <https://example.org/bees>"]);
    let back = answer.parts.iter().filter_map(Part::sent_back).collect();
    let items = super::wire_items(Message::assistant(back));
    assert_eq!(items[0], search);
    assert_eq!(items[1]["content"][0]["text"], "They cluster.");
}

#[test]
fn made_picture_is_a_file_and_goes_back_with_its_bytes() {
    let item = json!({
        "type": "image_generation_call", "id": "ig_1", "status": "completed", "output_format": "webp", "result": "iVBORw=="
    });

    let answer = answered(&json!([item]));

    let [Part::File { file, .. }] = &answer.parts[..] else { panic!("{:?}", answer.parts) };
    assert_eq!(
        (&*file.file().name, &*file.file().media_type, file.bytes()),
        ("image-1.webp", "image/webp", Some(&b"\x89PNG"[..]))
    );
    assert!(!serde_json::to_string(&answer).unwrap().contains("iVBORw"), "the bytes are not in the log");
    let back: Vec<_> = answer.parts.iter().filter_map(Part::sent_back).collect();
    assert_eq!(super::wire_items(Message::assistant(back)), [item]);
    let foreign = Assistant::File { file: file.clone(), data: None };
    let items = super::wire_items(Message::assistant(vec![foreign]));
    assert_eq!(items[0]["content"], "[file image-1.webp, image/webp, 4 bytes]");
}

#[test]
fn chat_answer_has_pictures_and_sources() {
    let mut assembler = ChatAssembler::default();
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}});
    let annotation = json!({"type": "url_citation", "url_citation": {"url": "https://example.org", "title": "Bees"}});
    for delta in [
        json!({"content": "Here."}),
        json!({"images": [image], "annotations": [annotation]}),
        json!({"images": [image], "annotations": [annotation]}),
    ] {
        assembler.feed(&json!({"choices": [{"index": 0, "delta": delta}]}).to_string()).unwrap();
    }
    let end =
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "citations": ["https://docs.rs"]});
    assembler.feed(&end.to_string()).unwrap();

    let answer = assembler.finish().unwrap();

    let [Part::Text { .. }, Part::File { file, .. }, Part::Citations { citations, .. }] = &answer.parts[..] else {
        panic!("{:?}", answer.parts)
    };
    assert_eq!((&*file.file().name, file.bytes()), ("image-1.png", Some(&b"\x89PNG"[..])));
    assert_eq!(
        citations.iter().map(|source| source.line()).collect::<Vec<_>>(),
        ["Bees <https://example.org>", "https://docs.rs"]
    );
}
