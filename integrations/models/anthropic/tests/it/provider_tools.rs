//! Tools of the provider.

use positronic_anthropic::MessagesAssembler;
use positronic_core::model::{Model as _, NoDeltas};
use positronic_core::prelude::*;
use positronic_core::record::{
    ContextItem, Message, ModelErrorKind, ModelRequest, Part, ProviderTool, Settings, ToolChoice, ToolSet,
    WebSearchOptions, code_execution, image_generation, web_fetch, web_search,
};
use positronic_model_testing::{Provider, events, in_pieces, play, seen, shown};
use serde_json::{Value, json};

use crate::recorded::TEXT;
use crate::requests::{check, model, request, returned, sent, user};

fn offering(tools: impl Into<Vec<ProviderTool>>) -> Settings {
    Settings::builder().provider_tools(tools.into()).build()
}

#[test]
fn tools_of_the_provider_follow_those_of_the_brain() {
    let search = WebSearchOptions::builder().max_uses(3).allowed_domains(["docs.rs".to_owned()]).build();
    let raw = ProviderTool::raw(json!({ "type": "tool_search_tool_regex_20251119", "name": "tools" }));
    let tools = [search.into(), web_fetch(), code_execution(), raw];
    let body = sent(&model(|_| ()), &request([user("Hi.")], offering(tools)));

    let tools = body["tools"].as_array().unwrap();
    assert_eq!((&tools[0]["name"], tools[1]["cache_control"].is_null()), (&json!("weather"), true));
    insta::assert_snapshot!(tools[2..].iter().map(Value::to_string).collect::<Vec<_>>().join("\n"), @r#"
    {"allowed_domains":["docs.rs"],"max_uses":3,"name":"web_search","type":"web_search_20250305"}
    {"name":"web_fetch","type":"web_fetch_20250910"}
    {"name":"code_execution","type":"code_execution_20250825"}
    {"cache_control":{"type":"ephemeral"},"name":"tools","type":"tool_search_tool_regex_20251119"}
    "#);
}

#[test]
fn brain_may_have_no_tools_of_its_own() {
    let mut settings = offering([web_search()]);
    (settings.tool_choice, settings.parallel_tool_calls) = (ToolChoice::Required, Some(false));
    let asked = ModelRequest { tools: ToolSet::default().into(), ..request([user("Hi.")], settings) };
    let body = sent(&model(|_| ()), &asked);

    insta::assert_snapshot!(body["tools"], @r#"[{"cache_control":{"type":"ephemeral"},"name":"web_search","type":"web_search_20250305"}]"#);
    insta::assert_snapshot!(body["tool_choice"], @r#"{"disable_parallel_tool_use":true,"type":"any"}"#);
}

#[tokio::test]
async fn tools_name_their_beta_features() {
    let provider = Provider::start(check, vec![events(TEXT), events(TEXT)]).await;
    let model = model(|config| config.base_url = format!("{}/v1", provider.url()));
    for tools in [vec![web_search()], vec![web_fetch(), code_execution()]] {
        model.call(&request([user("Hi.")], offering(tools)), &NoDeltas).await.unwrap();
    }

    let requests = provider.requests().await;
    assert_eq!(requests[0].headers.get("anthropic-beta"), None);
    assert_eq!(requests[1].headers.get("anthropic-beta").unwrap(), "web-fetch-2025-09-10,code-execution-2025-08-25");
}

#[tokio::test]
async fn tools_that_the_api_does_not_have_are_refused_before_sending() {
    let provider = Provider::start(check, Vec::new()).await;
    let model = model(|config| config.base_url = format!("{}/v1", provider.url()));
    let refused = async |tool: ProviderTool| {
        let error = model.call(&request([user("Hi.")], offering([tool])), &NoDeltas).await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Unsupported);
        error.message
    };
    let domains = || vec!["docs.rs".to_owned()];
    let both = WebSearchOptions::builder().allowed_domains(domains()).blocked_domains(domains()).build();

    insta::assert_snapshot!(refused(image_generation()).await, @"the API of `anthropic` has no tool `image_generation`; leave it out, or choose a model of another provider");
    insta::assert_snapshot!(refused(both.into()).await, @"the API of `anthropic` takes either the allowed or the blocked domains of a web search; leave out one list");
    insta::assert_snapshot!(refused(ProviderTool::raw(json!({ "type": "bash_20250124", "name": "weather" }))).await, @"the brain and `anthropic` both have a tool `weather`; rename the brain's, or leave out the provider's");
    assert!(provider.requests().await.is_empty());
}

/// Returns the events of an answer with these blocks.
fn answer(blocks: &[Value], stop_reason: &str) -> Vec<String> {
    let blocks = (0..).zip(blocks).flat_map(|(index, block): (u32, _)| {
        let mut start = block.clone();
        let delta = match block["type"].as_str() {
            Some("server_tool_use" | "mcp_tool_use" | "tool_use") => {
                start["input"] = json!({});
                Some(json!({ "type": "input_json_delta", "partial_json": block["input"].to_string() }))
            }
            Some("text") => {
                start["text"] = "".into();
                Some(json!({ "type": "text_delta", "text": block["text"] }))
            }
            _ => None,
        };
        let start = json!({ "type": "content_block_start", "index": index, "content_block": start });
        let delta = delta.map(|delta| json!({ "type": "content_block_delta", "index": index, "delta": delta }));
        [Some(start), delta].into_iter().flatten()
    });
    let end =
        json!({ "type": "message_delta", "delta": { "stop_reason": stop_reason }, "usage": { "output_tokens": 9 } });
    blocks.chain([end]).map(|event| event.to_string()).collect()
}

fn used(id: &str, name: &str, input: &Value) -> Value {
    json!({ "type": "server_tool_use", "id": id, "name": name, "input": input })
}

fn returned_by(id: &str, kind: &str, content: &Value) -> Value {
    json!({ "type": format!("{kind}_tool_result"), "tool_use_id": id, "content": content })
}

fn all_tools() -> Vec<Value> {
    let page = json!({ "type": "web_fetch_result", "url": "https://docs.rs", "content": { "type": "document", "title": "Docs" } });
    let ran = json!({
        "type": "bash_code_execution_result", "stdout": "a.png\n", "stderr": "", "return_code": 0,
        "content": [{ "type": "bash_code_execution_output", "file_id": "file_9" }],
    });
    let failed = json!({ "type": "code_execution_result", "stdout": "", "stderr": "no module\n", "return_code": 1, "content": [] });
    let viewed = json!({ "type": "text_editor_code_execution_view_result", "content": "1+1", "file_type": "text" });
    let limit = json!({ "type": "web_search_tool_result_error", "error_code": "max_uses_exceeded" });
    vec![
        used("s1", "web_fetch", &json!({ "url": "https://docs.rs" })),
        returned_by("s1", "web_fetch", &page),
        used("s2", "bash_code_execution", &json!({ "command": "ls" })),
        returned_by("s2", "bash_code_execution", &ran),
        used("s3", "code_execution", &json!({ "code": "import x" })),
        returned_by("s3", "code_execution", &failed),
        json!({ "type": "text", "text": "Hm." }),
        used("s4", "text_editor_code_execution", &json!({ "command": "view", "path": "a.py" })),
        used("s5", "web_search", &json!({ "query": "bees" })),
        returned_by("s4", "text_editor_code_execution", &viewed),
        returned_by("s5", "web_search", &limit),
        json!({ "type": "mcp_tool_use", "id": "m1", "name": "echo", "server_name": "desk", "input": { "a": 1 } }),
        json!({ "type": "mcp_tool_result", "tool_use_id": "m1", "is_error": true, "content": [{ "type": "text", "text": "no" }] }),
        json!({ "type": "tool_use", "id": "t1", "name": "weather", "input": { "city": "Oslo" } }),
    ]
}

#[test]
fn entries_say_what_the_tools_did() {
    let response = play::<MessagesAssembler>(&answer(&all_tools(), "tool_use")).1.unwrap();

    let line = |part: &Part| match part {
        Part::ProviderTool(used) => {
            let mut used = used.clone();
            used.data = None;
            serde_json::to_string(&used).unwrap()
        }
        other => format!("{other:?}"),
    };
    insta::assert_snapshot!(response.parts.iter().map(line).collect::<Vec<_>>().join("\n"), @r#"
    {"tool":"web_fetch","input":"https://docs.rs","sources":[{"url":"https://docs.rs","title":"Docs"}]}
    {"tool":"code_execution","input":"ls","output":"a.png\n[file file_9]"}
    {"tool":"code_execution","input":"import x","output":"no module","error":"exit code 1: no module"}
    Text { text: "Hm." }
    {"tool":"code_execution","input":"view a.py"}
    {"tool":"web_search","input":"bees"}
    {"tool":"code_execution","output":"1+1"}
    {"tool":"web_search","error":"max_uses_exceeded"}
    {"tool":"desk.echo","input":"{\"a\":1}","error":"no"}
    Call { index: 0 }
    "#);
}

#[test]
fn entries_go_back_as_their_blocks_came() {
    let blocks = all_tools();
    let response = play::<MessagesAssembler>(&answer(&blocks, "tool_use")).1.unwrap();
    let result =
        Message::Tool { call: "t1".to_owned(), name: "weather".to_owned(), text: "rain".to_owned(), files: Vec::new() };
    let context: [ContextItem; 0] = [];
    let asked = ModelRequest {
        context: context.into(),
        ..request([user("Hi."), returned(response), result], Settings::default())
    };
    let body = sent(&model(|_| ()), &asked);

    assert_eq!(body["messages"][1]["content"], Value::Array(blocks));
}

#[test]
fn pieces_add_up_wherever_the_stream_is_cut() {
    let events = answer(&all_tools(), "tool_use");
    for size in 1..60 {
        let decoded = in_pieces(&events, &[size, 7, 300], "\n");
        assert_eq!(shown(play::<MessagesAssembler>(&decoded)), shown(play::<MessagesAssembler>(&events)));
    }
}

#[tokio::test]
async fn turn_that_pauses_within_a_tool_is_continued() {
    let call = used("s1", "web_search", &json!({ "query": "bees" }));
    let found =
        json!([{ "type": "web_search_result", "url": "https://bees.org", "title": "Bees", "encrypted_content": "x" }]);
    let result = returned_by("s1", "web_search", &found);
    let provider = Provider::start(
        check,
        vec![
            answer(std::slice::from_ref(&call), "pause_turn"),
            answer(&[result.clone(), json!({ "type": "text", "text": "Bees buzz." })], "end_turn"),
            events(TEXT),
        ],
    )
    .await;
    let model = model(|config| config.base_url = format!("{}/v1", provider.url()));
    let runner = Runner::new(model);
    let researcher =
        brain("Research").r#loop("Work", |cx| cx.system("You search.").input("Bees?").provider_tool(web_search()));
    let run = runner.start(&researcher, ()).await.unwrap();
    run.result().await.unwrap();

    let content = &provider.bodies()[1]["messages"][1]["content"];
    assert_eq!((content[0]["id"].as_str(), content.as_array().unwrap().len()), (Some("s1"), 1));
    insta::assert_snapshot!(seen(&run).await, @r#"
    # Work
    user: Bees?
    web_search(bees)
    web_search()
    source: Bees <https://bees.org>
    assistant: Bees buzz.
    = {"type":"answered"}
    "#);
}
