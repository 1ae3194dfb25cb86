//! Runs that continue in another process whose servers are down for a while or have changed.

use std::sync::Arc;
use std::time::Duration;

use positronic_core::dsl::Runnable;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Event, EventKind, RunId, Seq, ToolResult};
use positronic_core::runner::{RunHandle, Settled};
use positronic_core::store::MemoryStore;
use positronic_core::testing::{CountedIds, Lockstep as _, Story, TestClock};
use positronic_mcp::McpOptions;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::desk::{desk, eventually, failure_of, reasons};
use crate::fake::{Act, Fake, text, tool};
use crate::support::{done, error_of, path, results, success, waits};

/// Number of connection attempts in nearly two minutes.
const A_WHILE: usize = 12;

type Log = Vec<Arc<Event>>;

fn office() -> Fake {
    Fake::new([tool("echo")], |_, _| text("ok"))
}

fn unasked() -> McpOptions {
    McpOptions::builder().ask(false).build()
}

fn runner(replies: impl IntoIterator<Item = Reply>) -> Runner {
    let runner = Runner::new(ScriptedModel::new(replies))
        .store(MemoryStore::new())
        .clock(TestClock::default())
        .ids(CountedIds::default())
        .lockstep(true);
    runner.linger(Duration::MAX)
}

/// Plays a run until a condition is true, and returns its log.
async fn log_of(
    brain: &impl Runnable<Options = (), Result = Value>,
    replies: Vec<Reply>,
    is_so: impl Fn(&RunHandle<Value>) -> bool,
) -> Log {
    let runner = runner(replies);
    let run = runner.start(brain, ()).await.unwrap();
    eventually("what is waited for", || is_so(&run)).await;
    run.events(Seq(0)).await.unwrap()
}

/// Continues a log in another process.
async fn continue_run(log: &[Arc<Event>], brain: Brain<(), Value>, replies: Vec<Reply>) -> RunHandle<Value> {
    let runner = runner(replies).brain(brain);
    let run = RunId::new("run-1");
    runner.client().import(&run, log).await.unwrap();
    runner.resume(&run).await.unwrap()
}

fn iterations(log: &Log) -> Vec<usize> {
    let begins = |event: &Arc<Event>| matches!(event.kind, EventKind::LoopIteration(_));
    log.iter().enumerate().filter(|(_, event)| begins(event)).map(|(at, _)| at).collect()
}

/// The log of a run that has called a tool and whose process died before the next iteration.
async fn between_iterations(fake: &Fake) -> Log {
    let replies = vec![Reply::call("desk__echo", json!({})), Reply::text("Never read.")];
    let brain = desk(&[&fake.server(unasked())]);
    let log = {
        let runner = runner(replies);
        let run = runner.start(&brain, ()).await.unwrap();
        assert!(matches!(run.settled().await, Settled::Completed(_)));
        run.events(Seq(0)).await.unwrap()
    };
    let second = iterations(&log)[1];
    log[..second].to_vec()
}

#[tokio::test(start_paused = true)]
async fn next_iteration_waits_for_a_server_that_the_run_has_used() {
    let fake = office();
    let log = between_iterations(&fake).await;
    fake.refuse(A_WHILE);

    let run =
        continue_run(&log, desk(&[&fake.server(unasked())]), vec![Reply::call("desk__echo", json!({})), done()]).await;

    assert!(matches!(run.settled().await, Settled::Completed(_)));
    assert_eq!(results(&Story::of(&run).await, "Work"), [success("ok"), success("ok")]);
    assert_eq!(fake.connections(), 2);
}

#[tokio::test(start_paused = true)]
async fn author_sets_the_patience_and_it_ends() {
    let fake = office();
    let log = between_iterations(&fake).await;
    fake.refuse(usize::MAX);
    for (options, least, most) in [
        (unasked(), 300, 330),
        (McpOptions { reconnect_timeout: Duration::from_secs(20), ..unasked() }, 20, 40),
        (McpOptions { reconnect_timeout: Duration::ZERO, ..unasked() }, 1, 3),
    ] {
        let began = Instant::now();
        let run = continue_run(&log, desk(&[&fake.server(options)]), vec![]).await;
        assert!(matches!(run.settled().await, Settled::Failed(_)));
        let took = began.elapsed().as_secs();
        assert!((least..=most).contains(&took), "{took} s");
        let why = failure_of(&Story::of(&run).await);
        assert!(why.contains("the MCP server `desk` did not start: the desk is closed"), "{why}");
    }
}

#[tokio::test(start_paused = true)]
async fn run_waiting_for_a_server_is_cancelled_at_once() {
    let fake = office();
    let log = between_iterations(&fake).await;
    fake.refuse(1000);
    let run = continue_run(&log, desk(&[&fake.server(unasked())]), vec![]).await;
    eventually("some tries", || fake.refuses() < 997).await;

    let asked = Instant::now();
    run.cancel("enough").await.unwrap();

    assert!(matches!(run.settled().await, Settled::Cancelled));
    assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
}

#[tokio::test(start_paused = true)]
async fn open_call_waits_for_its_server_and_blocks_nothing_meanwhile() {
    let calls = std::sync::atomic::AtomicUsize::new(0);
    let fake = Fake::new([tool("echo")], move |_, _| match calls.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
        0 => Act::Silence,
        _ => text("ok"),
    });
    let options = McpOptions::builder().read_only(["echo"]).build();
    let brain = || desk(&[&fake.server(options.clone())]);
    let replies = vec![Reply::call("desk__echo", json!({"text": "hi"}))];
    let log = log_of(&brain(), replies, |_| !fake.seen("tools/call").is_empty()).await;
    fake.refuse(A_WHILE);

    let began = Instant::now();
    let run = continue_run(&log, brain(), vec![done()]).await;

    // A worker that claims the run continues its other calls at once.
    assert!(began.elapsed() < Duration::from_millis(100), "{:?}", began.elapsed());
    assert!(matches!(run.settled().await, Settled::Completed(_)));
    assert_eq!(results(&Story::of(&run).await, "Work"), [success("ok")]);
    let calls = fake.seen("tools/call");
    assert_eq!((calls.len(), &calls[1]["params"]["arguments"]), (2, &json!({"text": "hi"})));
    assert!(began.elapsed() > Duration::from_secs(60), "{:?}", began.elapsed());
}

/// The tool `echo`, with a changed schema.
fn changed() -> Value {
    json!({"name": "echo", "inputSchema": {
        "type": "object", "properties": {"words": {"type": "array"}}, "required": ["words"], "additionalProperties": false,
    }})
}

#[tokio::test(start_paused = true)]
async fn approved_call_runs_unchanged_although_the_server_changed_its_schema() {
    // The plugin, and the tools as values.
    for as_values in [false, true] {
        let fake = office();
        let brain = async || {
            let server = fake.server(McpOptions::default());
            if !as_values {
                return desk(&[&server]);
            }
            let tools = server.tools().await.unwrap();
            brain("Desk").state(Value::Null).r#loop("Work", move |cx| cx.system("Work.").tools(tools.clone())).build()
        };
        let replies = vec![Reply::call("desk__echo", json!({"text": "hi"}))];
        let log = log_of(&brain().await, replies, |run| !run.pending().is_empty()).await;
        fake.change_list([changed()]);

        let runner = runner([done()]).brain(brain().await);
        runner.client().import(&RunId::new("run-1"), &log).await.unwrap();
        let run = runner.resume(&RunId::new("run-1")).await.unwrap();
        assert_eq!(waits(&run).await, ["Work/0.0"]);
        run.approve(&path("Work/0.0"), "ann").await.unwrap();

        assert!(matches!(run.settled().await, Settled::Completed(_)), "as values: {as_values}");
        assert_eq!(results(&Story::of(&run).await, "Work"), [success("ok")]);
        assert_eq!(fake.seen("tools/call")[0]["params"]["arguments"], json!({"text": "hi"}));
    }
}

#[tokio::test(start_paused = true)]
async fn call_of_a_tool_that_the_server_no_longer_lists_is_an_explained_error() {
    let fake = office();
    let brain = || desk(&[&fake.server(McpOptions::default())]);
    let replies = vec![Reply::call("desk__echo", json!({}))];
    let log = log_of(&brain(), replies, |run| !run.pending().is_empty()).await;
    fake.change_list([tool("other")]);

    let runner = runner([done()]).brain(brain());
    runner.client().import(&RunId::new("run-1"), &log).await.unwrap();
    let run = runner.resume(&RunId::new("run-1")).await.unwrap();
    run.approve(&path("Work/0.0"), "ann").await.unwrap();

    assert!(matches!(run.settled().await, Settled::Completed(_)));
    assert_eq!(
        error_of(&results(&Story::of(&run).await, "Work")[0]),
        "the MCP server `desk` no longer lists the tool `desk__echo` of the call"
    );
    assert!(fake.seen("tools/call").is_empty());
}

#[tokio::test(start_paused = true)]
async fn approval_is_asked_the_same_after_a_crash_anywhere() {
    let annotated = |name: &str, annotations: Value| {
        let mut tool = tool(name);
        tool["annotations"] = annotations;
        tool
    };
    let tools = [
        annotated("add", json!({"destructiveHint": false})),
        tool("b u r n"),
        tool("mail"),
        tool("s e e"),
        annotated("look", json!({"readOnlyHint": true})),
    ];
    let fake = Fake::new(tools, |name, _| text(name));
    let options = McpOptions::builder().trust_annotations(true).unattended(["s e e"]).renamed([("mail", "post")]);
    let options = options.build();
    let server = fake.server(options.clone());
    let names: Vec<_> =
        server.tools::<(), Value, ()>().await.unwrap().iter().map(|t| t.decl().id.to_string()).collect();
    let all = || Reply::calls(names.iter().map(|name| (name.as_str(), json!({}))));
    let brain = || desk(&[&fake.server(options.clone())]);
    let log = log_of(&brain(), vec![all()], |run| run.pending().len() == 3).await;
    let begun = iterations(&log)[0];
    let answered = log.iter().position(|event| matches!(event.kind, EventKind::LoopModelResult { .. })).unwrap();

    for end in begun + 1..=log.len() {
        // One append stores an answer and its calls.
        if (answered + 1..answered + 6).contains(&end) {
            continue;
        }
        fake.refuse(3);
        let again = (end <= answered).then(all);
        let runner = runner(again.into_iter().chain([done()])).brain(brain());
        runner.client().import(&RunId::new("run-1"), &log[..end]).await.unwrap();
        let run = runner.resume(&RunId::new("run-1")).await.unwrap();
        assert_eq!(waits(&run).await, ["Work/0.0", "Work/0.1", "Work/0.2"], "after {end} events");
        let says = reasons(&run);
        assert_eq!(says[0], "`add` of the MCP server `desk` changes something");
        assert!(says[1].ends_with("of the MCP server `desk` may change or destroy something"), "{says:?}");
        assert_eq!(says[2], "`mail` of the MCP server `desk` may change or destroy something");
        for call in ["Work/0.0", "Work/0.1", "Work/0.2"] {
            run.approve(&path(call), "ann").await.unwrap();
        }
        assert!(matches!(run.settled().await, Settled::Completed(_)));
        let results = results(&Story::of(&run).await, "Work");
        let of = |at: usize, name: &str| assert_eq!(results[at], success(name), "after {end} events");
        of(0, "add");
        of(1, "b u r n");
        of(2, "mail");
        of(3, "s e e");
        // It was in flight in some of the logs and is repeatable in all of them.
        assert!(matches!(results[4], ToolResult::Success { .. }), "after {end} events: {results:?}");
    }
}
