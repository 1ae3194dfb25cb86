//! The adapters against a local server.

use positronic_model_http::Assemble as _;
use std::sync::Mutex;
use std::time::Duration;

use positronic_core::model::{DeltaSink, Model, NoDeltas, Piece};
use positronic_core::record::{ModelError, ModelErrorKind, ModelResponse, ResponseMetadata, Settings};
use proptest::prelude::*;
use serde_json::json;

use super::recorded::answers;
use super::server::{Answer, End, Server};
use super::{request, user};
use crate::{ChatAssembler, OpenAiChat, OpenAiConfig, OpenAiResponses, ResponsesAssembler, Timeouts};

pub(super) const HELLO: &str = "data: {\"id\":\"r1\",\"model\":\"m-2026\",\"choices\":[{\"delta\":{\"content\":\"Hello\"}}]}\n\n\
                     data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";

pub(super) fn config(server: &Server) -> OpenAiConfig {
    OpenAiConfig::builder().base_url(server.address.clone()).api_key("sk-test").model("m").build()
}

pub(super) fn ask(model: &dyn Model) -> Result<ModelResponse, ModelError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(model.call(&request([user("Hi")], Settings::default()), &NoDeltas))
}

pub(super) fn ask_chat(answer: Answer) -> Result<ModelResponse, ModelError> {
    let server = Server::start(vec![answer]);
    ask(&OpenAiChat::new(config(&server)).unwrap())
}

#[test]
fn sends_the_wire_body_and_reports_metadata() {
    let server = Server::start(vec![Answer::sse(format!("{HELLO}data: [DONE]\n\n"))]);
    let model = OpenAiChat::new(config(&server)).unwrap();

    let response = ask(&model).unwrap();

    assert_eq!(server.bodies(), [model.wire(&request([user("Hi")], Settings::default()))]);
    assert_eq!(model.name(), "openai/m");
    assert_eq!(response.text(), "Hello");
    let metadata = response.metadata;
    assert_eq!((metadata.provider.as_str(), metadata.model.as_str()), ("openai", "m"));
    assert_eq!(metadata.answered_by.as_deref(), Some("m-2026"));
    assert_eq!(metadata.response_id.as_deref(), Some("r1"));
    assert!(metadata.first_chunk.is_some());
}

#[test]
fn pieces_come_in_order() {
    #[derive(Default)]
    struct Collected(Mutex<Vec<String>>);
    impl DeltaSink for Collected {
        fn piece(&self, piece: Piece) {
            self.0.lock().unwrap().push(piece.text);
        }

        fn restart(&self) {}
    }
    let body: String =
        answers("chat/azure-model-router.1")[0].iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    let server = Server::start(vec![Answer::sse(body)]);
    let collected = Collected::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();

    let model = OpenAiChat::new(config(&server)).unwrap();
    let response = runtime.block_on(model.call(&request([user("Hi")], Settings::default()), &collected)).unwrap();

    assert_eq!(collected.0.into_inner().unwrap().concat(), response.text());
}

#[test]
fn missing_done_is_harmless_but_missing_finish_is_an_error() {
    let unfinished = HELLO.split_once("\n\n").unwrap().0;

    assert!(ask_chat(Answer::sse(HELLO)).is_ok());
    assert!(ask_chat(Answer::sse(HELLO).ending(End::Broken)).is_ok());
    for (body, end, kind) in [
        (format!("{unfinished}\n\n"), End::Complete, ModelErrorKind::Truncated),
        (format!("{unfinished}\n\ndata: [DONE]\n\n"), End::Complete, ModelErrorKind::Truncated),
        (format!("{unfinished}\n\n"), End::Broken, ModelErrorKind::Connection),
        (String::new(), End::Complete, ModelErrorKind::Truncated),
        ("data: {\"choices\": [\n\n".to_owned(), End::Complete, ModelErrorKind::Malformed),
    ] {
        let error = ask_chat(Answer::sse(body.clone()).ending(end)).unwrap_err();
        assert_eq!(error.kind, kind, "{body}: {error}");
        assert_eq!(error.request_id.as_deref(), Some("req_42"));
    }
}

#[test]
fn failure_has_kind_wait_and_request_id() {
    let body = json!({"error": {"message": "slow down", "code": "rate_limit_exceeded"}}).to_string();
    let answer = Answer::new(429, "application/json", body)
        .with("retry-after", "Wed, 21 Oct 2015 07:28:30 GMT")
        .with("date", "Wed, 21 Oct 2015 07:28:00 GMT");

    let error = ask_chat(answer).unwrap_err();

    assert_eq!(error.kind, ModelErrorKind::RateLimited);
    assert_eq!(error.retry_after, Some(Duration::from_secs(30)));
    assert_eq!((error.status, error.request_id.as_deref()), (Some(429), Some("req_42")));
    assert_eq!((error.message.as_str(), error.provider_code.as_deref()), ("slow down", Some("rate_limit_exceeded")));
}

#[test]
fn repeated_key_is_redacted_in_errors() {
    let bodies = [
        json!({"error": {"message": "Incorrect API key provided: sk-test.", "code": "sk-test"}}).to_string(),
        "<html><title>Bearer sk-test</title></html>".to_owned(),
        "no such key: sk-test".to_owned(),
    ];
    for body in bodies {
        let error = ask_chat(Answer::new(401, "application/json", body).with("x-request-id", "sk-test")).unwrap_err();
        let written = serde_json::to_string(&error).unwrap();
        assert!(written.contains("[hidden]") && !written.contains("sk-test"), "{written}");
    }
    let chunk = "data: {\"error\": {\"message\": \"the key sk-test is used up\"}}\n\n";
    let error = ask_chat(Answer::sse(chunk)).unwrap_err();
    assert_eq!(error.message, "the key [hidden] is used up");
}

#[test]
fn invalid_base_url_is_rejected_at_once() {
    for address in ["ftp://host/v1", "host/v1", "localhost:8080/v1", ""] {
        let config = OpenAiConfig::builder().base_url(address.to_owned()).model("m".to_owned()).build();
        let error = OpenAiChat::new(config).unwrap_err();
        assert!(error.message.contains("invalid base URL `"), "{address}: {error}");
    }
}

#[test]
fn request_is_sent_once() {
    let server = Server::start(vec![Answer::new(503, "text/plain", "busy")]);

    let error = ask(&OpenAiChat::new(config(&server)).unwrap()).unwrap_err();

    assert_eq!((error.kind, server.bodies().len()), (ModelErrorKind::Server, 1));
}

#[test]
fn web_page_is_an_error() {
    let page = "<!doctype html><html><head><title>Sorry</title></head></html>";

    let limited = ask_chat(Answer::new(429, "text/html", page)).unwrap_err();
    let wrong_address = ask_chat(Answer::new(200, "text/html", page)).unwrap_err();

    assert_eq!(limited.kind, ModelErrorKind::RateLimited);
    assert_eq!(limited.message, "the server answered 429 with a web page: Sorry");
    assert_eq!(wrong_address.kind, ModelErrorKind::NotFound);
}

#[test]
fn answer_that_is_not_streamed_is_read() {
    let body = json!({"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]}).to_string();
    let server = Server::start(vec![Answer::new(200, "application/json", body)]);
    for stream in [true, false] {
        let model = OpenAiChat::new(OpenAiConfig { stream, ..config(&server) }).unwrap();
        assert_eq!(ask(&model).unwrap().text(), "Hello");
    }
    assert!(server.bodies()[1].contains("\"stream\":false"));
    let error = ask_chat(Answer::new(200, "application/json", "{\"error\":{\"message\":\"no\"}}")).unwrap_err();
    assert_eq!(error.message, "no");
}

#[test]
fn silent_server_times_out() {
    let timeouts = Timeouts::builder().first_chunk(Duration::from_millis(80)).idle(Duration::from_millis(80)).build();
    let start = HELLO.split_once("\n\n").unwrap().0;
    for (body, sentence) in [
        (String::new(), "timed out after 80ms waiting for the first chunk"),
        (format!("{start}\n\n"), "waiting for the next chunk"),
    ] {
        let server = Server::start(vec![Answer::sse(body).ending(End::Silent)]);
        let error = ask(&OpenAiChat::new(OpenAiConfig { timeouts, ..config(&server) }).unwrap()).unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Timeout);
        assert!(error.message.contains(sentence), "{error}");
    }
    let server = Server::start(vec![Answer::sse(HELLO).ending(End::Silent)]);
    let finished = ask(&OpenAiChat::new(OpenAiConfig { timeouts, ..config(&server) }).unwrap());
    assert_eq!(finished.unwrap().text(), "Hello");
    let total = Timeouts::builder().total(Duration::from_millis(80)).build();
    let server = Server::start(vec![Answer::sse("").ending(End::Silent)]);
    let error = ask(&OpenAiChat::new(OpenAiConfig { timeouts: total, ..config(&server) }).unwrap()).unwrap_err();
    assert!(error.message.contains("the full answer"), "{error}");
}

#[test]
fn broken_stream_does_not_affect_the_next_request() {
    let start = HELLO.split_once("\n\n").unwrap().0;
    let broken = Answer::sse(format!("{start}\n\n")).ending(End::Broken);
    let server = Server::start(vec![Answer::sse(HELLO), broken, Answer::sse(HELLO)]);
    let model = OpenAiChat::new(config(&server)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();

    let outcomes: Vec<_> = (0..3)
        .map(|_| runtime.block_on(model.call(&request([user("Hi")], Settings::default()), &NoDeltas)).is_ok())
        .collect();

    assert_eq!(outcomes, [true, false, true]);
}

/// Cuts a stream at positions in thousandths of its length.
fn cut(body: &[u8], places: &[usize]) -> Vec<Vec<u8>> {
    let mut ends: Vec<_> = places.iter().map(|place| body.len() * place / 1000).collect();
    ends.extend([0, body.len()]);
    ends.sort_unstable();
    ends.windows(2).map(|pair| body[pair[0]..pair[1]].to_vec()).collect()
}

fn without_measurements(response: ModelResponse) -> ModelResponse {
    let metadata = ResponseMetadata { first_chunk: None, server: None, ..response.metadata };
    ModelResponse { metadata, ..response }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn stream_can_be_cut_anywhere(
        places in prop::collection::vec(0_usize..1000, 0..60),
        line_end in prop::sample::select(vec!["\n", "\r\n", "\r"]),
        comments: bool,
        byte_order_mark: bool,
        blank_data: bool,
        ends_with_blank_line: bool,
    ) {
        let comment = if comments { format!(": keep-alive{line_end}{line_end}") } else { String::new() };
        let blank = if blank_data { format!("data:{line_end}{line_end}") } else { String::new() };
        let stream = |chunks: &[String]| -> Vec<u8> {
            let events = chunks.iter().map(|chunk| format!("{comment}{blank}data: {chunk}{line_end}{line_end}"));
            let mut stream = String::from(if byte_order_mark { "\u{feff}" } else { "" });
            stream.extend(events);
            let end = if ends_with_blank_line { "" } else { line_end };
            stream.truncate(stream.len() - end.len());
            stream.into_bytes()
        };
        let served = |chunks: &[String]| {
            let answer = Answer { chunks: cut(&stream(chunks), &places), ..Answer::sse("") };
            Server::start(vec![answer])
        };
        for name in ["chat/deepseek-tool-call", "chat/mistral-incremental-tool-call"] {
            let chunks = &answers(name)[0];
            let mut assembler = ChatAssembler::default();
            for chunk in chunks {
                assembler.feed(chunk).unwrap();
            }
            let expected = assembler.finish().unwrap();
            let model = OpenAiChat::new(OpenAiConfig {
                provider: String::new(),
                model: String::new(),
                ..config(&served(chunks))
            });
            prop_assert_eq!(without_measurements(ask(&model.unwrap()).unwrap()), expected);
        }
        let events = &answers("responses/github-copilot-id-rotation.1")[0];
        let mut assembler = ResponsesAssembler::default();
        for event in events {
            assembler.feed(event).unwrap();
        }
        let expected = assembler.finish().unwrap();
        let model = OpenAiResponses::new(OpenAiConfig {
            provider: String::new(),
            model: String::new(),
            ..config(&served(events))
        });
        prop_assert_eq!(without_measurements(ask(&model.unwrap()).unwrap()), expected);
    }
}

/// Streams a text in pieces of seven characters.
fn streamed(text: &str) -> Answer {
    let letters: Vec<char> = text.chars().collect();
    let mut body = String::new();
    for piece in letters.chunks(7) {
        let piece: String = piece.iter().collect();
        let chunk = json!({"id": "r1", "model": "m", "choices": [{"delta": {"content": piece}}]});
        body.extend(["data: ", &chunk.to_string(), "\n\n"]);
    }
    body.push_str("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
    Answer::sse(body)
}

#[tokio::test]
async fn every_request_of_a_structured_loop_is_rebuilt_byte_for_byte() {
    use positronic_core::prelude::{NoArgs, brain};
    let server = Server::start(vec![
        streamed("Let me think about it."),
        streamed("{\"reasoning\":\"I \\u00fcber-look.\",\"action\":\"look\",\"input\":{}}"),
        streamed("{\"reasoning\":\"Seen.\",\"action\":\"finish\",\"input\":{}}"),
    ]);
    let model = std::sync::Arc::new(OpenAiChat::new(config(&server)).unwrap());
    let agent = brain("Agent").r#loop("Act", |cx| {
        cx.system("Act.")
            .structured_actions()
            .tool("look", |t| t.execute(async |_: NoArgs, _| Ok("a tree")))
            .tool("finish", |t| t.exit().execute(async |_: NoArgs, _| Ok("done")))
    });
    let recorder = positronic_core::sink::Recorder::default();
    let runner = positronic_core::runner::Runner::new(std::sync::Arc::clone(&model)).sink(recorder.clone());

    let run = runner.start(&agent, ()).await.unwrap();
    run.result().await.unwrap();

    let log = run.events(positronic_core::record::Seq(0)).await.unwrap();
    let asked = log.iter().filter(|event| event.kind.name() == "LOOP_MODEL_CALL");
    let events = || log.iter().map(|event| &**event);
    let rebuilt: Vec<_> =
        asked.map(|event| model.wire(&positronic_core::projection::request_at(events(), event.seq).unwrap())).collect();
    assert_eq!(server.bodies(), rebuilt);
    assert!(rebuilt[1].contains("the answer has no JSON object"), "{}", rebuilt[1]);
    assert!(run.flushed(Duration::from_secs(5)).await);
    let shown: String = recorder.deltas().iter().map(|delta| delta.text.as_str()).collect();
    assert_eq!(shown, "I über-look.Seen.");
}
