//! Marks in texts over HTTP.

use serde_json::json;

use super::http::{ask, config};
use super::server::{Answer, Server};
use crate::model::openai::{OpenAiChat, OpenAiConfig};
use crate::record::{Finish, Part};

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
