//! Streams that end, or continue, differently from OpenAI's.

use positronic_core::record::{Finish, ModelError, ModelErrorKind, ModelResponse};
use positronic_model_http::Assemble as _;
use serde_json::{Value, json};

use super::http::{HELLO, ask_chat};
use super::server::{Answer, End};
use crate::{ChatAssembler, ResponsesAssembler};

const TEXT: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hello\"}}]}\n\n";
const STOP: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const USAGE: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}\n\n";
const FAILURE: &str = "data: {\"error\":{\"message\":\"overloaded\",\"code\":502}}\n\n";
const DONE: &str = "data: [DONE]\n\n";

fn stream(parts: &[&str]) -> Result<ModelResponse, ModelError> {
    ask_chat(Answer::sse(parts.concat()))
}

#[test]
fn usage_and_done_finish_an_answer_without_a_finish_reason() {
    let response = stream(&[TEXT, USAGE, DONE]).unwrap();

    assert_eq!((response.text().as_str(), response.metadata.finish), ("Hello", Finish::Stop));
    assert_eq!(response.metadata.usage.input, 7);
    let call = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"c\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}}]}\n\n";
    assert_eq!(stream(&[call, USAGE, DONE]).unwrap().metadata.finish, Finish::Calls);
    for cut_off in [&[TEXT, DONE][..], &[TEXT, USAGE], &[USAGE, DONE], &[DONE]] {
        assert_eq!(stream(cut_off).unwrap_err().kind, ModelErrorKind::Truncated, "{cut_off:?}");
    }
}

#[test]
fn error_after_the_finish_reason_does_not_revoke_the_answer() {
    for behind in [FAILURE, "data: {\"choices\": [\n\n", "data: upstream closed\n\n"] {
        assert_eq!(stream(&[TEXT, STOP, behind, DONE]).unwrap().text(), "Hello", "{behind}");
    }
    let usage = stream(&[TEXT, STOP, FAILURE, USAGE, DONE]).unwrap().metadata.usage;
    assert_eq!(usage.input, 7, "what follows the error still counts");
    assert_eq!(stream(&[TEXT, FAILURE, STOP, DONE]).unwrap_err().kind, ModelErrorKind::Server);

    let completed = json!({"type": "response.completed", "response": {"status": "completed", "output": []}});
    let failed = json!({"type": "error", "code": "server_error", "message": "late"});
    let mut assembler = ResponsesAssembler::default();
    assembler.feed(&completed.to_string()).unwrap();
    assert_eq!(assembler.feed(&failed.to_string()).unwrap(), []);
    assert_eq!(assembler.finish().unwrap().metadata.finish, Finish::Stop);
    assert!(ResponsesAssembler::default().feed(&failed.to_string()).is_err());
}

#[test]
fn finish_reason_error_is_a_failure_explained_by_the_next_chunk() {
    let failed = "data: {\"choices\":[{\"delta\":{\"content\":\"\"},\"finish_reason\":\"error\"}]}\n\n";

    let explained = stream(&[TEXT, failed, FAILURE, DONE]).unwrap_err();
    let unexplained = stream(&[TEXT, failed, DONE]).unwrap_err();

    assert_eq!((explained.kind, explained.message.as_str()), (ModelErrorKind::Server, "overloaded"));
    assert_eq!(unexplained.kind, ModelErrorKind::Server);
    assert!(unexplained.message.contains("finish reason `error`"), "{unexplained}");
}

#[test]
fn stream_that_ends_inside_its_last_event_is_truncated() {
    let half = "data: {\"choices\":[{\"delta\":{\"cont";

    assert_eq!(stream(&[TEXT, half]).unwrap_err().kind, ModelErrorKind::Truncated);
    assert_eq!(stream(&[TEXT, STOP, half]).unwrap().text(), "Hello");
    assert_eq!(stream(&[TEXT, STOP.trim_end()]).unwrap().text(), "Hello");
    assert_eq!(stream(&[TEXT, USAGE, DONE.trim_end()]).unwrap().text(), "Hello");
}

#[test]
fn connection_left_open_after_done_does_not_delay_the_answer() {
    let silent = Answer::sse(format!("{HELLO}{DONE}")).ending(End::Silent);

    assert_eq!(ask_chat(silent).unwrap().text(), "Hello");
}

#[test]
fn assembler_reports_later_errors_only_after_a_server_failure() {
    let chunk = |reason: &str| json!({"choices": [{"delta": {"content": "x"}, "finish_reason": reason}]}).to_string();
    let error: Value = json!({"error": {"message": "down", "code": 503}});
    for (reason, fails) in [("stop", false), ("length", false), ("content_filter", false), ("error", true)] {
        let mut assembler = ChatAssembler::default();
        assembler.feed(&chunk(reason)).unwrap();
        assert_eq!(assembler.feed(&error.to_string()).is_err(), fails, "{reason}");
    }
}

#[test]
fn an_answer_of_more_calls_or_items_than_any_model_makes_is_refused() {
    let call = |index: usize| json!({"index": index, "function": {"name": "f", "arguments": "{}"}});
    let chunk = |count: usize| {
        json!({"choices": [{"delta": {"tool_calls": (0..count).map(call).collect::<Vec<_>>()}}]}).to_string()
    };
    assert_eq!(ChatAssembler::default().feed(&chunk(4096)).unwrap().last().unwrap().part, 4095);
    assert_eq!(ChatAssembler::default().feed(&chunk(4097)).unwrap_err().kind, ModelErrorKind::Malformed);

    let item = json!({"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c"});
    let whole = |count: usize| json!({"status": "completed", "output": vec![item.clone(); count]}).to_string();
    assert_eq!(ResponsesAssembler::default().feed_complete(&whole(4096)).unwrap().len(), 4096);
    assert_eq!(ResponsesAssembler::default().feed_complete(&whole(4097)).unwrap_err().kind, ModelErrorKind::Malformed);
    let mut assembler = ResponsesAssembler::default();
    let mut added = (0..5000).map(|index| {
        let event = json!({"type": "response.output_item.added", "output_index": index, "item": item});
        assembler.feed(&event.to_string())
    });
    assert_eq!(added.position(|fed| fed.is_err()), Some(4096));
}
