//! Calls that a server answers: texts for the model and outputs for people.

use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_core::record::ToolResult;
use positronic_core::sink::Recorder;
use positronic_mcp::{Mcp, McpOptions};
use serde_json::{Value, json};

use crate::desk::{desk, shown_files};
use crate::fake::{Act, Fake, text, tool};
use crate::support::{Play, calls, done, error_of, results, success};

fn trusting() -> McpOptions {
    McpOptions::builder().ask(false).build()
}

#[tokio::test]
async fn model_sees_the_tools_and_reads_the_servers_answers() {
    let fake = Fake::new([tool("echo"), tool("other"), tool("third")], |name, arguments| {
        text(&format!("{name} says {}", arguments["text"]))
    });
    let play = Play::new([Reply::call("desk__echo", json!({"text": "tea"})), done()]);

    let story = play.run(&desk(&[&fake.server(trusting())]), ()).await;

    assert_eq!(results(&story, "Work"), [success("echo says \"tea\"")]);
    let first = &play.requests()[0];
    let names: Vec<_> = first.tools.tools().iter().map(|tool| tool.id.as_str()).collect();
    assert_eq!(names, ["desk__echo", "desk__other", "desk__third"], "all pages, in their order");
    let echo = &first.tools.tools()[0];
    assert_eq!(echo.description, "Does echo");
    assert_eq!(echo.parameters["properties"]["text"]["type"], "string");
    assert_eq!(fake.seen("tools/call")[0]["params"]["arguments"], json!({"text": "tea"}));
    assert_eq!(fake.connections(), 1);
}

#[tokio::test]
async fn arguments_that_violate_the_servers_schema_never_reach_it() {
    let fake = Fake::new([tool("echo")], |_, _| text("ok"));
    let play = Play::new([Reply::call("desk__echo", json!({"text": 7, "more": 1})), done()]);

    let story = play.run(&desk(&[&fake.server(trusting())]), ()).await;

    let results = results(&story, "Work");
    let error = error_of(&results[0]);
    assert!(error.contains("/text") && error.contains("more"), "{error}");
    assert!(fake.seen("tools/call").is_empty());
}

#[tokio::test]
async fn servers_error_is_an_error_that_the_model_reads() {
    let fake = Fake::new([tool("fails"), tool("refuses")], |name, _| match name {
        "fails" => Act::Result(json!({"content": [{"type": "text", "text": "there is no tea"}], "isError": true})),
        _ => Act::Error(-32602, "Unknown tool: refuses"),
    });
    let play = Play::new([Reply::calls([("desk__fails", json!({})), ("desk__refuses", json!({}))]), done()]);

    let story = play.run(&desk(&[&fake.server(trusting())]), ()).await;

    let results = results(&story, "Work");
    assert_eq!(error_of(&results[0]), "there is no tea");
    assert_eq!(error_of(&results[1]), "the MCP server `desk` refused: Unknown tool: refuses (code -32602)");
    assert!(play.model_read("there is no tea"));
}

#[tokio::test]
async fn structured_content_is_the_value_and_images_are_files_of_the_run() {
    let fake = Fake::new([tool("sum"), tool("chart")], |name, _| match name {
        "sum" => Act::Result(json!({
            "content": [{"type": "text", "text": "{\"sum\":7}"}], "structuredContent": {"sum": 7},
        })),
        _ => Act::Result(json!({"content": [
            {"type": "text", "text": "The chart:"},
            {"type": "image", "mimeType": "image/png", "data": "iVBORw=="},
        ]})),
    });
    let play = Play::new([Reply::calls([("desk__sum", json!({})), ("desk__chart", json!({}))]), done()]);
    let run = play.start(&desk(&[&fake.server(trusting())]), ()).await;
    let story = play.story(&run).await;

    let results = results(&story, "Work");
    assert_eq!(results[0], success(json!({"sum": 7})));
    assert_eq!(results[1], success("The chart:\n[image: the file `chart-1.png`]"));
    let files = shown_files(&story);
    assert_eq!((&*files[0].name, &*files[0].media_type, files[0].size), ("chart-1.png", "image/png", 4));
    assert!(play.model_read("[file chart-1.png, image/png, 4 bytes]"), "the model knows the name of the picture");
    let sent = play.last_request().messages.messages();
    let bytes: Vec<_> =
        sent.iter().flat_map(|message| message.files()).map(|file| file.bytes().map(<[u8]>::to_vec)).collect();
    assert_eq!(bytes, [Some(b"\x89PNG".to_vec())], "the model gets the picture");
    // The hash of the decoded base64.
    assert_eq!(files[0].sha256, "0f4636c78f65d3639ece5a064b5ae753e3408614a14fb18ab4d7540d2c248543");
}

#[tokio::test]
async fn number_that_would_be_rounded_is_a_string_with_its_digits() {
    let structured = r#"{"id":18446744073709551617,"share":0.5}"#;
    let repeated = serde_json::to_string(structured).unwrap();
    let line = format!(
        r#"{{"jsonrpc":"2.0","id":{{id}},"result":{{"content":[{{"type":"text","text":{repeated}}}],"structuredContent":{structured}}}}}"#
    );
    let bounded = json!({"name": "find", "inputSchema": {"type": "object", "properties": {"n": {"maximum": 1e30}}}});
    let fake = Fake::new([bounded], move |_, _| Act::Lines(vec![line.clone()]));
    let play = Play::new([Reply::call("desk__find", json!({"n": 1})), done()]);

    let story = play.run(&desk(&[&fake.server(trusting())]), ()).await;

    assert_eq!(results(&story, "Work"), [success(json!({"id": "18446744073709551617", "share": 0.5}))]);
}

#[tokio::test]
async fn long_result_is_a_file_and_the_model_reads_its_ends() {
    let fake = Fake::new([tool("dump")], |_, _| text(&format!("begin{}end", "x".repeat(100_000))));
    let play = Play::new([Reply::call("desk__dump", json!({})), done()]);

    let story = play.run(&desk(&[&fake.server(trusting())]), ()).await;

    let ToolResult::Success { output: Value::String(read), .. } = &results(&story, "Work")[0] else { panic!() };
    assert!(read.starts_with("beginxxx") && read.ends_with("xxxend") && read.len() < 33_000, "{}", read.len());
    assert!(read.contains("dump-full.txt`"));
    assert_eq!(shown_files(&story)[0].size, 100_008);
    assert!(story.json_lines().len() < 100_000, "the log does not contain it");
}

#[tokio::test]
async fn unsolicited_notifications_are_harmless_and_progress_is_shown() {
    let lines = [
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"hello"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":{token},"progress":1,"total":4}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/made/up","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":77,"result":{"content":[{"type":"text","text":"of somebody else"}]}}"#,
        r#"{"jsonrpc":"2.0","id":"s1","method":"sampling/createMessage","params":{"messages":[],"maxTokens":9}}"#,
        r#"{"jsonrpc":"2.0","id":"s2","method":"roots/list"}"#,
        "this is no JSON",
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":{token},"progress":2,"message":"half\u001b done"}}"#,
        r#"{"jsonrpc":"2.0","id":{id},"result":{"content":[{"type":"text","text":"the answer"}]}}"#,
    ];
    let fake = Fake::new([tool("slow")], move |_, _| Act::Lines(lines.map(str::to_owned).to_vec()));
    let recorder = Recorder::new();
    let play = Play::new([Reply::call("desk__slow", json!({})), done()]);
    let play = play.map(|runner: Runner| runner.sink(recorder.clone()));

    let story = play.run(&desk(&[&fake.server(trusting())]), ()).await;

    assert_eq!(results(&story, "Work"), [success("the answer")]);
    let shown: Vec<_> = recorder.deltas().into_iter().map(|delta| delta.text).collect();
    assert!(shown.contains(&"1 of 4".to_owned()) && shown.contains(&"half done".to_owned()), "{shown:?}");
}

#[tokio::test(start_paused = true)]
async fn calls_of_one_batch_share_one_connection() {
    // The first one gets no answer.
    let waiting = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let fake = Fake::new([tool("a"), tool("b")], move |name, _| {
        let mut waiting = waiting.lock().unwrap();
        waiting.push(name.to_owned());
        match waiting.len() {
            1 => Act::Silence,
            _ => text("both"),
        }
    });
    let play = Play::new([Reply::calls([("desk__a", json!({})), ("desk__b", json!({}))]), done()]);

    let story = play.run(&desk(&[&fake.server(trusting())]), ()).await;

    let ok = calls(&story, "Work").iter().filter(|call| call.result.as_ref().unwrap().is_success()).count();
    assert_eq!((ok, fake.connections()), (1, 1), "the answered call does not wait for the other");
}

#[tokio::test]
async fn log_records_the_servers_name_and_version() {
    let fake = Fake::new([tool("echo")], |_, _| text("ok"));
    let play = Play::new([Reply::text("Nothing to do.")]);

    let story = play.run(&desk(&[&fake.server(trusting())]), ()).await;

    let lines = story.json_lines();
    assert!(lines.contains(r#"{"program":"fake","protocol":"#) && lines.contains(r#""version":"1.2""#), "{lines}");
    assert!(!play.model_read("Knock first."), "a server's self-description is untrusted text");

    let options = McpOptions { instructions: true, ..trusting() };
    let play = Play::new([Reply::text("Nothing to do.")]);
    play.run(&desk(&[&fake.server(options)]), ()).await;
    assert!(play.model_read("Knock first."));
}

#[tokio::test]
async fn structured_loop_selects_a_servers_tool_by_name() {
    let fake = Fake::new([tool("echo")], |_, arguments| text(arguments["text"].as_str().unwrap()));
    let mcp = Mcp::of([&fake.server(trusting())]);
    let desk = brain("Desk").state(Value::Null).r#loop("Work", move |cx| {
        cx.system("Work.")
            .plugin(mcp.clone())
            .tool("finish", |t| t.exit().execute(async |_: NoArgs, _| Ok("done")))
            .structured_actions()
    });
    let play = Play::new([
        Reply::action("Text first.", "desk__echo", json!({"text": 7})),
        Reply::action("Text first.", "desk__echo", json!({"text": "tea"})),
        Reply::action("That is all.", "finish", json!({})),
    ]);

    let story = play.run(desk, ()).await;

    assert_eq!(results(&story, "Work"), [success("tea"), success("done")]);
    assert_eq!(fake.seen("tools/call").len(), 1, "the input that does not fit the server's schema is asked for again");
}

#[tokio::test]
async fn tools_of_a_server_are_available_as_values() {
    let fake = Fake::new([tool("echo")], |_, _| text("ok"));
    let tools = fake.server(trusting()).tools().await.unwrap();
    let desk = brain("Desk").state(Value::Null).r#loop("Work", move |cx| cx.system("Work.").tools(tools.clone()));
    let play = Play::new([Reply::call("desk__echo", json!({})), done()]);

    let story = play.run(desk, ()).await;

    assert_eq!(results(&story, "Work"), [success("ok")]);
}

#[tokio::test(start_paused = true)]
async fn odd_block_of_a_result_does_not_lose_the_rest() {
    let fake = Fake::new([tool("act")], |_, arguments| match arguments["text"].as_str().unwrap() {
        "unknown" => Act::Result(json!({"content": [{"type": "text", "text": "paid"}, {"type": "widget", "id": 7}]})),
        "incomplete" => {
            Act::Result(json!({"content": [{"type": "image", "data": "AAAA"}, {"type": "text", "text": "paid"}]}))
        }
        "one" => Act::Result(json!({"content": {"type": "text", "text": "paid"}})),
        "words" => Act::Result(json!({"content": ["paid", "twice"]})),
        other => panic!("{other}"),
    });
    let call = |kind: &str| ("desk__act", json!({"text": kind}));
    let play = Play::new([Reply::calls(["unknown", "incomplete", "one", "words"].map(call)), done()]);

    let story = play.run(&desk(&[&fake.server(trusting())]), ()).await;

    assert_eq!(
        results(&story, "Work"),
        [
            success("paid\n[content of an unknown kind: {\"id\":7,\"type\":\"widget\"}]"),
            success("[content of an unknown kind: {\"data\":\"AAAA\",\"type\":\"image\"}]\npaid"),
            success("paid"),
            success("paid\ntwice"),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn reply_that_cannot_be_read_ends_its_call_at_once() {
    let fake = Fake::new([tool("act")], |_, arguments| {
        let line = match arguments["text"].as_str().unwrap() {
            "nan" => r#"{"jsonrpc":"2.0","id":{id},"result":{"content":[],"structuredContent":{"n":NaN}}}"#,
            "text" => r#"{"jsonrpc":"2.0","id":"{id}","result":{"content":[{"type":"text","text":"read"}]}}"#,
            other => panic!("{other}"),
        };
        Act::Lines(vec!["a line of a log".to_owned(), line.to_owned()])
    });
    let play = Play::new([
        Reply::calls([("desk__act", json!({"text": "nan"})), ("desk__act", json!({"text": "text"}))]),
        done(),
    ]);
    let began = tokio::time::Instant::now();

    let story = play.run(&desk(&[&fake.server(trusting())]), ()).await;

    let results = results(&story, "Work");
    let error = error_of(&results[0]);
    assert!(error.starts_with("the MCP server `desk` sent an invalid answer: it cannot be read: "), "{error}");
    assert!(error.ends_with("; whether the request took effect is unknown"), "{error}");
    assert_eq!(results[1], success("read"));
    assert!(began.elapsed() < std::time::Duration::from_secs(5), "{:?}", began.elapsed());
}
