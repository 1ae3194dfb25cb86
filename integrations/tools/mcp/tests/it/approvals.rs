//! Approvals of server calls, and the recorded flags of a tool.

use positronic_core::model::scripted::Reply;
use positronic_core::record::ToolResult;
use positronic_mcp::McpOptions;
use serde_json::{Value, json};

use crate::desk::{desk, reasons};
use crate::fake::{Fake, text, tool};
use crate::support::{Play, done, path, results, success, waits};

fn annotated(name: &str, annotations: Value) -> Value {
    let mut tool = tool(name);
    tool["annotations"] = annotations;
    tool
}

fn office() -> Fake {
    let tools = [
        annotated("look", json!({"readOnlyHint": true, "title": "Look it up"})),
        annotated("add", json!({"destructiveHint": false, "idempotentHint": true})),
        tool("burn"),
    ];
    Fake::new(tools, |name, _| text(name))
}

fn every_tool() -> Reply {
    Reply::calls([("desk__look", json!({})), ("desk__add", json!({})), ("desk__burn", json!({}))])
}

#[tokio::test]
async fn every_call_needs_an_approval_unless_the_author_trusts_the_server() {
    let fake = office();
    let play = Play::new([every_tool(), done()]);
    let run = play.start(desk(&[&fake.server(McpOptions::default())]), ()).await;

    assert_eq!(waits(&run).await, ["Work/0.0", "Work/0.1", "Work/0.2"]);
    assert_eq!(
        reasons(&run),
        [
            "`look` of the MCP server `desk` may change something; the server declares it as read-only, which is not confirmed",
            "`add` of the MCP server `desk` may change or destroy something",
            "`burn` of the MCP server `desk` may change or destroy something",
        ]
    );
    assert!(fake.seen("tools/call").is_empty());
    run.approve(&path("Work/0.0"), "ann").await.unwrap();
    run.reject(&path("Work/0.1"), "not today", "ann").await.unwrap();
    run.approve(&path("Work/0.2"), "ann").await.unwrap();
    let story = play.story(&run).await;

    let results = results(&story, "Work");
    assert_eq!((&results[0], &results[2]), (&success("look"), &success("burn")));
    assert!(matches!(&results[1], ToolResult::Denied { .. }), "{:?}", results[1]);
    assert_eq!(fake.seen("tools/call").len(), 2);
}

#[tokio::test]
async fn read_only_tools_of_a_trusted_server_run_at_once_and_flags_are_recorded() {
    let fake = office();
    let options = McpOptions::builder().trust_annotations(true).build();
    let play = Play::new([every_tool(), done()]);
    let run = play.start(desk(&[&fake.server(options)]), ()).await;

    assert_eq!(waits(&run).await, ["Work/0.1", "Work/0.2"]);
    assert_eq!(
        reasons(&run),
        [
            "`add` of the MCP server `desk` changes something",
            "`burn` of the MCP server `desk` may change or destroy something"
        ]
    );
    assert_eq!(fake.seen("tools/call").len(), 1);
    let tools = play.last_request().tools;
    let flags: Vec<_> = tools.tools().iter().map(|tool| tool.flags).collect();
    let words: Vec<_> = flags.iter().map(|of| (of.read_only, of.idempotent, of.destructive)).collect();
    assert_eq!(words, [(true, false, false), (false, true, false), (false, false, true)]);
    assert_eq!(tools.tools()[0].title.as_deref(), Some("Look it up"));
}

#[tokio::test]
async fn author_names_the_tools_that_run_unattended() {
    let fake = office();
    let options = McpOptions::builder().read_only(["look"]).unattended(["burn"]).build();
    let play = Play::new([every_tool(), done()]);
    let run = play.start(desk(&[&fake.server(options)]), ()).await;

    // `burn` follows a call that a person must decide; only read-only calls pass it.
    assert_eq!(waits(&run).await, ["Work/0.1"]);
    assert_eq!(fake.seen("tools/call").len(), 1);
    run.reject(&path("Work/0.1"), "no", "ann").await.unwrap();
    let story = play.story(&run).await;
    assert_eq!(results(&story, "Work")[2], success("burn"));
}

#[tokio::test]
async fn approval_question_escapes_terminal_control_characters() {
    let fake = Fake::new([tool("read\u{1b}[2K\u{202e}etirw")], |_, _| text("ok"));
    let server = fake.server(McpOptions::default());
    let name = server.tools::<(), Value, ()>().await.unwrap()[0].decl().id.to_string();
    let play = Play::new([Reply::call(&name, json!({}))]);
    let run = play.start(desk(&[&server]), ()).await;

    assert_eq!(waits(&run).await, ["Work/0.0"]);
    assert_eq!(reasons(&run), ["`read[2Ketirw` of the MCP server `desk` may change or destroy something"]);
}
