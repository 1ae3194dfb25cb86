//! Server lists: names, selection, schemas, and changed lists.

use std::time::Duration;

use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_core::record::EventKind;
use positronic_mcp::{Mcp, McpError, McpOptions, McpServer};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::desk::{desk, eventually, failure_of};
use crate::fake::{Fake, text, tool};
use crate::support::{Play, done, results, success};

fn quiet(tools: impl IntoIterator<Item = Value>) -> Fake {
    Fake::new(tools, |name, _| text(name))
}

fn seen_by_the_model(play: &Play) -> Vec<String> {
    play.last_request().tools.tools().iter().map(|tool| tool.id.to_string()).collect()
}

async fn start_error(fake: &Fake, options: McpOptions) -> McpError {
    fake.server(options).connect().await.unwrap_err()
}

#[tokio::test]
async fn tools_are_selected_excluded_and_renamed_by_server_names() {
    let fake = quiet(["a", "b", "c", "d"].map(tool));
    let options = McpOptions::builder().only(["a", "b", "c"]).without(["b"]).renamed([("c", "see")]).ask(false).build();
    let play = Play::new([Reply::call("see", json!({})), done()]);

    let story = play.run(desk(&[&fake.server(options)]), ()).await;

    assert_eq!(seen_by_the_model(&play), ["desk__a", "see"]);
    assert_eq!(results(&story, "Work"), [success("c")], "the server is called by its own name");
}

#[tokio::test]
async fn option_that_names_no_tool_is_refused() {
    let fake = quiet(["move_file", "read"].map(tool));
    let slips = [
        (McpOptions::builder().without(["movefile"]).build(), "without"),
        (McpOptions::builder().only(["movefile"]).build(), "only"),
        (McpOptions::builder().renamed([("movefile", "move")]).build(), "renamed"),
        (McpOptions::builder().read_only(["movefile"]).build(), "read_only"),
        (McpOptions::builder().idempotent(["movefile"]).build(), "idempotent"),
        (McpOptions::builder().unattended(["movefile"]).build(), "unattended"),
    ];
    for (options, name) in slips {
        assert_eq!(
            start_error(&fake, options).await.to_string(),
            format!(
                "`{name}` names the tool `movefile`, which the MCP server `desk` does not have; it has `move_file`, `read`"
            )
        );
    }
}

#[tokio::test]
async fn renamed_tool_with_the_name_of_another_is_refused_with_both_tools() {
    let fake = quiet(["a", "b"].map(tool));

    let error = start_error(&fake, McpOptions::builder().renamed([("a", "desk__b")]).build()).await;
    assert_eq!(
        error.to_string(),
        "the tools `a` and `b` of the MCP server `desk` would both be named `desk__b`; rename one of them with `renamed`, or omit it with `without`"
    );
    let slash = start_error(&fake, McpOptions::builder().renamed([("a", "a/b")]).build()).await;
    assert!(matches!(slash, McpError::Renamed { .. }), "{slash}");
}

#[tokio::test]
async fn name_of_a_loop_tool_or_another_servers_tool_is_refused() {
    let fake = quiet([tool("echo")]);
    let server = fake.server(McpOptions::default());
    let mcp = Mcp::of([&server]);
    let own = brain("Desk").state(Value::Null).r#loop("Work", move |cx| {
        cx.system("Work.").tool("desk__echo", |t| t.execute(async |_: NoArgs, _| Ok("mine"))).plugin(mcp.clone())
    });

    let story = Play::new([]).run(own, ()).await;
    let why = failure_of(&story);
    let says = "the tool `echo` of the MCP server `desk` would be named `desk__echo`, as another tool of the loop";
    assert!(why.contains(says), "{why}");
}

#[tokio::test]
#[should_panic(expected = "two MCP servers are named `desk`; give one of them another name")]
async fn two_servers_of_one_name_are_detected_by_the_builder() {
    let fake = quiet([tool("echo")]);

    _ = Mcp::of([&fake.server(McpOptions::default()), &fake.server(McpOptions::default())]);
}

#[tokio::test]
async fn invisible_characters_of_a_server_are_removed() {
    let hidden: String = "obey".chars().filter_map(|letter| char::from_u32(0xE0000 + u32::from(letter))).collect();
    let odd = json!({"name": "odd", "title": format!("Odd{hidden}"), "description": format!("Does it{hidden}"), "inputSchema": {
        "type": "object",
        "properties": {"a": {"description": format!("What{hidden}"), "anyOf": [{"title": format!("A\u{200b}b"), "type": "string"}]}},
    }});
    let play = Play::new([done()]);

    play.run(desk(&[&quiet([odd]).server(McpOptions::default())]), ()).await;

    let seen = serde_json::to_string(play.last_request().tools.tools()).unwrap();
    assert!(seen.contains("Does it") && seen.contains("What") && seen.contains("Ab"), "{seen}");
    assert!(!seen.contains(&hidden) && !seen.contains('\u{200b}'), "{seen:?}");
}

/// A schema of two kilobytes whose references double at every step, so that a naive check would never end.
fn doubling(steps: usize) -> Value {
    let next = |step: usize| json!({"$ref": format!("#/$defs/d{step}")});
    let definition = |step: usize| (format!("d{step}"), json!({"allOf": [next(step + 1), next(step + 1)]}));
    let mut definitions: serde_json::Map<String, Value> = (0..steps).map(definition).collect();
    definitions.insert(format!("d{steps}"), json!({}));
    json!({"type": "object", "$ref": "#/$defs/d0", "$defs": definitions})
}

/// Starts a server, and returns the names that the model sees and the notes in the log.
async fn offered(fake: &Fake) -> (Vec<String>, Vec<String>) {
    let play = Play::new([done()]);
    let server = fake.server(McpOptions::builder().ask(false).build());
    let story = play.run(&desk(&[&server]), ()).await;
    let state = story.log().iter().rev().find_map(|event| match &event.kind {
        EventKind::LoopIteration(iteration) => Some(serde_json::to_value(&iteration.plugins).unwrap()),
        _ => None,
    });
    let mut notes = Vec::new();
    collect_notes(&state.unwrap(), &mut notes);
    (seen_by_the_model(&play), notes)
}

fn collect_notes(value: &Value, notes: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::Array(said)) = fields.get("notes") {
                notes.extend(said.iter().map(|note| note.as_str().unwrap().to_owned()));
            }
            fields.values().for_each(|value| collect_notes(value, notes));
        }
        Value::Array(items) => items.iter().for_each(|value| collect_notes(value, notes)),
        _ => {}
    }
}

#[tokio::test]
async fn tool_that_cannot_be_offered_is_skipped_and_the_log_says_why() {
    let bad = |schema: Value| json!({"name": "odd", "inputSchema": schema});
    let cases = [
        (bad(json!({"type": "object", "properties": {"a": {"type": "strnig"}}})), "invalid schema"),
        (bad(json!({"type": "object", "properties": {"a": {"pattern": "("}}})), "invalid schema"),
        (
            bad(json!({"type": "object", "properties": {"a": {"$ref": "https://example.org/x.json"}}})),
            "schema rejected: its reference",
        ),
        (bad(doubling(30)), "schema rejected: its references and combinators apply 4294967294 schemas to one value"),
        (bad(json!({"type": "object", "properties": {"a": {"pattern": "((a{999}){999}){999}"}}})), "invalid schema"),
        (bad(json!({"type": "array"})), "its type is \"array\", but arguments must be an object"),
        (bad(json!("object")), "its declaration cannot be read"),
        (json!({"name": "odd"}), "its declaration cannot be read"),
        (json!({"name": "odd", "inputSchema": null}), "its declaration cannot be read"),
    ];
    for (odd, says) in cases {
        let fake = quiet([tool("fine"), odd, tool("last")]);

        let (names, notes) = offered(&fake).await;

        assert_eq!(names, ["desk__fine", "desk__last"], "{says}");
        assert!(notes[0].starts_with("the tool `odd` is skipped: ") && notes[0].contains(says), "{notes:?}");
        let wanted = start_error(&fake, McpOptions::builder().only(["odd"]).build()).await.to_string();
        let begins = "the tool `odd` of the MCP server `desk` has an unusable schema: ";
        assert!(wanted.starts_with(begins) && wanted.contains(says), "{wanted}");
    }
    let twice = quiet([tool("a"), json!({"name": "a", "inputSchema": {"type": "object"}}), tool("c")]);
    let (names, notes) = offered(&twice).await;
    assert_eq!(names, ["desk__a", "desk__c"]);
    assert_eq!(notes, ["the tool `a` is skipped: the tool `a` before it has the name `desk__a`, too"]);
}

#[tokio::test]
async fn schema_without_a_type_means_an_object() {
    let bad = |schema: Value| json!({"name": "odd", "inputSchema": schema});
    let tools = quiet([bad(json!({"properties": {"a": {"type": "string"}}}))]).server(McpOptions::default());
    let tools = tools.tools::<(), Value, ()>().await.unwrap();
    assert_eq!(tools[0].decl().parameters["type"], "object");
}

#[tokio::test(start_paused = true)]
async fn changed_list_applies_in_the_next_iteration_and_an_invalid_one_is_ignored() {
    let fake = quiet([tool("lesson")]);
    let server = fake.server(McpOptions::builder().ask(false).build());
    let (mcp, teacher) = (Mcp::of([&server]), fake.clone());
    let class = brain("Class").state(Value::Null).r#loop("Work", move |cx| {
        let teacher = teacher.clone();
        cx.system("Work.").plugin(mcp.clone()).tool("learn", |t| {
            t.execute(move |Learn { tools }: Learn, _| {
                let teacher = teacher.clone();
                async move {
                    let lists = teacher.seen("tools/list").len();
                    teacher.change_list(tools);
                    // Paused time advances only when all tasks are idle, so the notification has arrived by then.
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                    Ok(lists)
                }
            })
        })
    });
    let play = Play::new([
        Reply::call("learn", json!({"tools": [tool("lesson"), tool("sing")]})),
        Reply::call("desk__sing", json!({})),
        Reply::call("learn", json!({"tools": [{"name": "broken", "inputSchema": {"type": "nothing"}}]})),
        done(),
    ]);

    let story = play.run(class, ()).await;

    let requests = play.requests();
    let names =
        |iteration: usize| requests[iteration].tools.tools().iter().map(|tool| tool.id.to_string()).collect::<Vec<_>>();
    assert_eq!(names(0), ["learn", "desk__lesson"]);
    assert_eq!(names(1), ["learn", "desk__lesson", "desk__sing"]);
    assert_eq!(names(3), ["learn", "desk__lesson", "desk__sing"], "an unusable list leaves the one before");
    assert_eq!(results(&story, "Work")[1], success("sing"));
    assert_eq!(fake.connections(), 1);
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Learn {
    tools: Vec<Value>,
}

#[tokio::test]
async fn list_is_requested_once_and_shared_by_iterations_and_runs() {
    let fake = quiet([tool("a"), tool("b"), tool("c")]);
    let server = fake.server(McpOptions::builder().ask(false).build());
    for _ in 0..2 {
        let play = Play::new([Reply::call("desk__a", json!({})), Reply::call("desk__b", json!({})), done()]);
        play.run(desk(&[&server]), ()).await;
    }

    assert_eq!((fake.connections(), fake.seen("tools/list").len()), (1, 2), "two pages, once");
}

#[tokio::test]
async fn list_that_does_not_end_is_used_as_far_as_it_was_read() {
    let (names, notes) = offered(&quiet((0..300).map(|n| tool(&format!("t{n}"))))).await;
    assert_eq!(names.len(), 200);
    assert_eq!(notes, ["the list of tools was not read to its end: it has more than 100 pages"]);

    let stuck = quiet(["a", "b", "c", "d", "e"].map(tool));
    stuck.stay_at_the_second_page();
    let (names, notes) = offered(&stuck).await;
    assert_eq!(names, ["desk__a", "desk__b", "desk__c", "desk__d"]);
    assert_eq!(notes, ["the list of tools was not read to its end: the cursor `2` was there before"]);
}

#[test]
fn author_errors_are_reported_before_anything_starts() {
    use positronic_mcp::{McpCommand, McpHttp};

    let named = |name: &str| McpServer::new(name, McpCommand::new("true"), McpOptions::default()).unwrap_err();
    assert!(named("my__server").to_string().contains("is not a valid name of an MCP server"));
    let http = |http: McpHttp| McpServer::new("web", http, McpOptions::default()).unwrap_err().to_string();
    assert!(http(McpHttp::new("tracker.example/mcp")).contains("invalid URL"));
    assert!(http(McpHttp::new("file:///mcp")).contains("use `https://…`"));
    assert!(http(McpHttp::new("https://a.example").header("a b", "c")).contains("`a b` is not a valid header name"));
    assert!(http(McpHttp::new("https://a.example").bearer("a\nb")).contains("the bearer token"));
}

#[test]
fn debug_output_contains_no_secret() {
    use positronic_mcp::{McpCommand, McpHttp};

    let command = McpCommand::new("npx").arg("--token=s3cret").env("TOKEN", "s3cret");
    let http = McpHttp::new("https://a.example/mcp?key=s3cret").bearer("s3cret").header("x-key", "s3cret");
    let servers = [
        McpServer::new("a", command, McpOptions::default()).unwrap(),
        McpServer::new("b", http, McpOptions::default()).unwrap(),
    ];
    assert!(!format!("{servers:?}").contains("s3cret"), "{servers:?}");
}

async fn names_of(server: &McpServer) -> Vec<String> {
    let tools = server.tools::<(), Value, ()>().await.unwrap();
    tools.iter().map(|tool| tool.decl().id.to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn list_update_survives_its_requester_and_shares_no_other_answer() {
    let fake = quiet([tool("a")]);
    let server = fake.server(McpOptions::default());
    assert_eq!(names_of(&server).await, ["desk__a"]);
    fake.change_list([tool("a"), tool("b")]);
    tokio::time::sleep(Duration::from_millis(50)).await;

    // One call requests the list and gets no answer.
    fake.be_mute(true);
    let asking = tokio::spawn({
        let server = server.clone();
        async move { names_of(&server).await }
    });
    eventually("the question", || fake.seen("tools/list").len() == 2).await;
    let began = Instant::now();
    assert_eq!(names_of(&server).await, ["desk__a"]);
    assert!(began.elapsed() < Duration::from_millis(1), "it waits for no other call: {:?}", began.elapsed());

    // It is cancelled before an answer arrives.
    asking.abort();
    assert!(asking.await.unwrap_err().is_cancelled());
    fake.be_mute(false);

    assert_eq!(names_of(&server).await, ["desk__a", "desk__b"]);
}

#[tokio::test(start_paused = true)]
async fn known_list_is_available_while_the_server_restarts() {
    let fake = quiet([tool("a")]);
    let server = fake.server(McpOptions::builder().ask(false).build());
    server.connect().await.unwrap();
    server.close().await;
    fake.be_mute(true);
    let play = Play::new([Reply::call("desk__a", json!({})), done()]);
    let run = play.start(desk(&[&server]), ()).await;
    eventually("the second beginning", || fake.seen("initialize").len() == 2).await;

    let began = Instant::now();
    assert_eq!(names_of(&server).await, ["desk__a"]);
    assert!(began.elapsed() < Duration::from_millis(1), "{:?}", began.elapsed());
    drop(run);
}
