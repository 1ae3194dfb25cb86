//! Items that expect a response which our tools cannot give.

use positronic_core::record::{Finish, ModelResponse};
use positronic_model_http::Assemble as _;
use serde_json::{Value, json};

use crate::{ChatAssembler, ResponsesAssembler};

fn responses(output: &Value) -> ModelResponse {
    let answer = json!({"status": "completed", "output": output});
    let mut assembler = ResponsesAssembler::default();
    assembler.feed_complete(&answer.to_string()).unwrap();
    assembler.finish().unwrap()
}

#[test]
fn unanswerable_item_is_the_finish_reason() {
    for kind in [
        "mcp_approval_request",
        "custom_tool_call",
        "computer_call",
        "local_shell_call",
        "shell_call",
        "apply_patch_call",
    ] {
        let item = json!({"type": kind, "id": "i1", "call_id": "c1", "name": "deploy", "input": "x"});
        let call = json!({"type": "function_call", "call_id": "c2", "name": "look", "arguments": "{}"});

        assert_eq!(responses(&json!([item])).metadata.finish, Finish::Other(kind.to_owned()));
        assert_eq!(responses(&json!([call, item])).metadata.finish, Finish::Other(kind.to_owned()), "beside a call");
    }
    let search = |execution: &str| json!([{"type": "tool_search_call", "call_id": "c1", "execution": execution}]);
    assert_eq!(responses(&search("client")).metadata.finish, Finish::Other("tool_search_call".to_owned()));
    assert_eq!(responses(&search("server")).metadata.finish, Finish::Stop);
}

#[test]
fn items_answered_by_the_server_are_not_open() {
    let call = |id: &str| json!({"type": "shell_call", "call_id": id});
    let output = |id: &str| json!({"type": "shell_call_output", "call_id": id});

    assert_eq!(responses(&json!([call("a"), output("a")])).metadata.finish, Finish::Stop);
    assert_eq!(responses(&json!([call("a"), output("b")])).metadata.finish, Finish::Other("shell_call".to_owned()));
    for kind in ["web_search_call", "file_search_call", "code_interpreter_call", "mcp_call", "mcp_list_tools"] {
        assert_eq!(responses(&json!([{"type": kind, "id": "i"}])).metadata.finish, Finish::Stop, "{kind}");
    }
}

#[test]
fn custom_call_of_a_chat_answer_is_the_finish_reason_and_not_a_call() {
    let delta = |call: Value| json!({"choices": [{"delta": {"tool_calls": [call]}}]}).to_string();
    let chunks = [
        delta(json!({"index": 0, "id": "c1", "type": "custom", "custom": {"name": "sql", "input": "SEL"}})),
        delta(json!({"index": 0, "custom": {"input": "patch 1"}})),
        json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}).to_string(),
    ];
    let mut assembler = ChatAssembler::default();
    for chunk in &chunks {
        assert_eq!(assembler.feed(chunk).unwrap(), []);
    }

    let response = assembler.finish().unwrap();

    assert_eq!(response.metadata.finish, Finish::Other("custom_tool_call".to_owned()));
    assert_eq!(response.calls, []);
}
