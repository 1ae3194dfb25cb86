//! Marks in texts over HTTP.

use positronic_core::record::{Finish, Part};
use serde_json::json;

use super::http::{ask, config};
use super::server::{Answer, Server};
use crate::{OpenAiChat, OpenAiConfig, OpenAiResponses};

#[test]
fn option_of_an_endpoint_reads_calls_and_thinking_from_texts() {
    let said = "<think>rain?</think><tool_call>{\"name\": \"weather\", \"arguments\": {}}</tool_call>";
    let chunk = json!({"choices": [{"delta": {"content": said}, "finish_reason": "stop"}]});
    let asked = |reads: bool| {
        let server = Server::start(vec![Answer::sse(format!("data: {chunk}\n\ndata: [DONE]\n\n"))]);
        ask(&OpenAiChat::new(OpenAiConfig { text_marks: reads, ..config(&server) }).unwrap()).unwrap()
    };

    let read = asked(true);
    let thought = Part::Reasoning { text: "rain?".to_owned(), data: None };
    assert_eq!(read.parts, [thought, Part::Call { index: 0 }]);
    assert_eq!((read.calls[0].name.as_str(), read.calls[0].arguments.as_str()), ("weather", "{}"));
    assert_eq!(read.metadata.finish, Finish::Calls);
    let plain = asked(false);
    assert_eq!((plain.text().as_str(), plain.calls.len()), (said, 0), "it is an option");
}

#[test]
fn calls_of_qwen3_coder_are_read_over_both_apis() {
    let said = "I look.\n<tool_call>\n<function=weather>\n<parameter=city>\n5\n</parameter>\n</function>\n</tool_call>";
    let chat = json!({"choices": [{"message": {"content": said}, "finish_reason": "stop"}]});
    let message = json!({"type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
                         "content": [{"type": "output_text", "text": said}]});
    let responses = json!({"id": "resp_1", "status": "completed", "output": [message]});
    let server =
        |answer: &serde_json::Value| Server::start(vec![Answer::new(200, "application/json", answer.to_string())]);
    let config = |server: &Server| OpenAiConfig { text_marks: true, stream: false, ..config(server) };
    let (chat, responses) = (server(&chat), server(&responses));

    for read in [
        ask(&OpenAiChat::new(config(&chat)).unwrap()).unwrap(),
        ask(&OpenAiResponses::new(config(&responses)).unwrap()).unwrap(),
    ] {
        assert_eq!(read.parts, [Part::Text { text: "I look.".to_owned() }, Part::Call { index: 0 }]);
        assert_eq!((read.calls[0].name.as_str(), read.calls[0].arguments.as_str()), ("weather", r#"{"city":"5"}"#));
        assert_eq!(read.metadata.finish, Finish::Calls);
    }
}
