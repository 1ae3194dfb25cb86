//! Servers that hang, die, flood or never start, and runs that are cancelled or crash.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Event, RunId, ToolResult};
use positronic_core::runner::Settled;
use positronic_core::store::MemoryStore;
use positronic_core::testing::{CountedIds, Lockstep as _, Story, TestClock};
use positronic_mcp::{Mcp, McpError, McpOptions};
use serde_json::{Value, json};

use crate::desk::{desk, eventually, failure_of};
use crate::fake::{Act, Fake, text, tool};
use crate::support::{Play, done, error_of, results, success};

fn options() -> McpOptions {
    McpOptions::builder().ask(false).build()
}

/// A server with other reactions to its first calls; it answers the rest.
fn first(acts: impl Fn(usize) -> Option<Act> + Send + Sync + 'static) -> Fake {
    let count = AtomicUsize::new(0);
    Fake::new([tool("echo")], move |_, _| acts(count.fetch_add(1, Ordering::SeqCst)).unwrap_or_else(|| text("ok")))
}

fn echo(times: usize) -> Vec<Reply> {
    (0..times).map(|_| Reply::call("desk__echo", json!({}))).chain([done()]).collect()
}

#[tokio::test(start_paused = true)]
async fn unresponsive_server_gives_an_error_and_receives_a_cancellation() {
    let fake = first(|n| (n == 0).then_some(Act::Silence));
    let play = Play::new(echo(2));

    let story = play.run(desk(&[&fake.server(options())]), ()).await;

    let results = results(&story, "Work");
    assert_eq!(
        error_of(&results[0]),
        "the MCP server `desk` did not answer within 60s, and was cancelled; whether the call took effect is unknown"
    );
    assert_eq!(results[1], success("ok"));
    let told = fake.seen("notifications/cancelled");
    assert_eq!(told[0]["params"]["requestId"], fake.seen("tools/call")[0]["id"]);
    assert_eq!((told.len(), fake.connections()), (1, 1), "it answers pings, so it is not restarted");
}

#[tokio::test(start_paused = true)]
async fn unresponsive_server_is_restarted_by_the_next_call() {
    let fake = first(|_| None);
    let server = fake.server(options());
    server.connect().await.unwrap();
    fake.be_mute(true);
    let (mute, mcp) = (fake.clone(), Mcp::of([&server]));
    let desk = brain("Desk").state(Value::Null).r#loop("Work", move |cx| {
        let mute = mute.clone();
        cx.system("Work.").plugin(mcp.clone()).tool("mend", |t| {
            t.execute(move |_: NoArgs, _| {
                mute.be_mute(false);
                async {
                    // It rests for a second after two failures.
                    tokio::time::sleep(Duration::from_secs(2)).await;
                    Ok("mended")
                }
            })
        })
    });
    // The first connection stays silent; the repaired server answers only because the client opens a new one.
    let play = Play::new([
        Reply::call("desk__echo", json!({})),
        Reply::call("desk__echo", json!({})),
        Reply::call("mend", json!({})),
        Reply::call("desk__echo", json!({})),
        done(),
    ]);

    let story = play.run(desk, ()).await;

    let results = results(&story, "Work");
    assert!(error_of(&results[0]).contains("did not answer within 60s"));
    assert!(
        error_of(&results[1]).contains("did not start: the handshake did not finish within 30s"),
        "{:?}",
        results[1]
    );
    assert_eq!(results[3], success("ok"));
    assert!(fake.connections() >= 3, "{}", fake.connections());
}

#[tokio::test(start_paused = true)]
async fn server_death_during_a_call_is_an_error_and_the_next_call_restarts_it() {
    let fake = first(|n| (n == 0).then_some(Act::Die));
    let play = Play::new(echo(2));

    let story = play.run(desk(&[&fake.server(options())]), ()).await;

    let results = results(&story, "Work");
    assert_eq!(
        error_of(&results[0]),
        "the MCP server `desk` ended before it answered: the stream has ended; whether the call took effect is unknown"
    );
    assert_eq!(results[1], success("ok"));
    assert_eq!(fake.connections(), 2);
}

#[tokio::test(start_paused = true)]
async fn repeatable_call_is_repeated_after_a_server_death() {
    let fake = first(|n| (n == 0).then_some(Act::Die));
    let options = McpOptions::builder().read_only(["echo"]).build();
    let play = Play::new(echo(1));

    let story = play.run(desk(&[&fake.server(options)]), ()).await;

    assert_eq!(results(&story, "Work"), [success("ok")]);
    assert_eq!((fake.connections(), fake.seen("tools/call").len()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn repeatedly_dying_server_rests_and_is_tried_again() {
    let fake = first(|n| (n < 2).then_some(Act::Die));
    let mcp = Mcp::of([&fake.server(options())]);
    let desk = brain("Desk").state(Value::Null).r#loop("Work", move |cx| {
        cx.system("Work.").plugin(mcp.clone()).tool("rest", |t| {
            t.execute(async |_: NoArgs, _| {
                tokio::time::sleep(Duration::from_secs(2)).await;
                Ok("rested")
            })
        })
    });
    let mut replies = echo(3);
    replies.insert(3, Reply::call("rest", json!({})));
    replies.insert(4, Reply::call("desk__echo", json!({})));
    let play = Play::new(replies);

    let story = play.run(desk, ()).await;

    let results = results(&story, "Work");
    assert!(error_of(&results[1]).contains("ended before it answered"));
    let rests = error_of(&results[2]);
    assert!(
        rests.starts_with("the MCP server `desk` failed 2 times and is not restarted before 1s have passed"),
        "{rests}"
    );
    assert_eq!(results[4], success("ok"));
    assert_eq!(fake.connections(), 3, "none while it rested");
}

#[tokio::test(start_paused = true)]
async fn server_that_cannot_restart_fails_the_call_and_not_the_run() {
    let fake = first(|n| (n == 0).then_some(Act::Die));
    let gone = fake.clone();
    let play = Play::new(echo(2));
    let server = fake.server(options());
    server.connect().await.unwrap();
    gone.refuse(99);

    let story = play.run(desk(&[&server]), ()).await;

    let results = results(&story, "Work");
    assert_eq!(error_of(&results[1]), "the MCP server `desk` did not start: the desk is closed");
    assert!(matches!(story.settled(), Settled::Completed(_)));
}

#[tokio::test(start_paused = true)]
async fn server_that_never_started_fails_the_loop_unless_optional() {
    let fake = first(|_| None);
    fake.refuse(99);

    let story = Play::new([]).run(desk(&[&fake.server(options())]), ()).await;
    let why = failure_of(&story);
    assert!(why.contains("the MCP server `desk` did not start: the desk is closed"), "{why}");

    let optional = McpOptions { optional: true, ..options() };
    let play = Play::new([Reply::text("Then without.")]);
    let story = play.run(desk(&[&fake.server(optional)]), ()).await;
    assert!(matches!(story.settled(), Settled::Completed(_)));
    assert!(play.model_read("The tools of `desk` are not available now."));

    // The loop waits for a server that starts late.
    fake.refuse(2);
    let story = Play::new(echo(1)).run(desk(&[&fake.server(options())]), ()).await;
    assert_eq!(results(&story, "Work"), [success("ok")]);
}

#[tokio::test(start_paused = true)]
async fn silent_server_does_not_block_a_loop() {
    let fake = first(|_| None);
    fake.be_mute(true);

    let error = fake.server(options()).connect().await.unwrap_err();

    assert_eq!(error.to_string(), "the MCP server `desk` did not start: the handshake did not finish within 30s");
    assert!(matches!(error, McpError::Start { .. }));
}

#[tokio::test(start_paused = true)]
async fn oversized_message_ends_the_connection_and_not_the_process() {
    let huge = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{{id}},\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"{}\"}}]}}}}",
        "x".repeat(100_000)
    );
    let fake = first(move |n| (n == 0).then(|| Act::Lines(vec![huge.clone()])));
    let play = Play::new(echo(2));
    let options = McpOptions { message: 50_000, ..options() };

    let story = play.run(desk(&[&fake.server(options)]), ()).await;

    let results = results(&story, "Work");
    let error = error_of(&results[0]);
    assert!(error.contains("it sent a message of more than 50000 bytes, so the connection was closed"), "{error}");
    assert_eq!(results[1], success("ok"));
}

#[tokio::test]
async fn malformed_answers_are_explained_errors() {
    let answers =
        [r#"{"jsonrpc":"2.0","id":{id},"result":{"tea":1}}"#, r#"{"jsonrpc":"2.0","id":{id},"result":{"tools":[]}}"#];
    let fake = first(move |n| answers.get(n).map(|line| Act::Lines(vec![(*line).to_owned()])));
    let play = Play::new(echo(3));

    let story = play.run(desk(&[&fake.server(options())]), ()).await;

    let results = results(&story, "Work");
    for result in &results[..2] {
        assert_eq!(
            error_of(result),
            "the MCP server `desk` sent an invalid answer: it is not a tool result; whether the call took effect is unknown"
        );
    }
    assert_eq!(results[2], success("ok"));
}

#[tokio::test]
async fn cancelling_a_run_cancels_its_call_at_the_server() {
    let fake = first(|_| Some(Act::Silence));
    let play = Play::new([Reply::call("desk__echo", json!({}))]);
    let run = play.start(desk(&[&fake.server(options())]), ()).await;
    eventually("the call", || !fake.seen("tools/call").is_empty()).await;

    run.cancel("enough").await.unwrap();

    eventually("the news of it", || !fake.seen("notifications/cancelled").is_empty()).await;
    let told = &fake.seen("notifications/cancelled")[0];
    assert_eq!(told["params"]["requestId"], fake.seen("tools/call")[0]["id"]);
    assert!(matches!(run.settled().await, Settled::Cancelled));
}

/// Starts one call, lets the process die during it, and continues in another process.
async fn after_a_crash(options: &McpOptions) -> (Vec<ToolResult>, usize) {
    let runner = |store: MemoryStore, model: ScriptedModel| {
        Runner::new(model)
            .store(store)
            .clock(TestClock::default())
            .ids(CountedIds::default())
            .lockstep(true)
            .linger(Duration::MAX)
    };
    let fake = first(|n| (n == 0).then_some(Act::Silence));
    let before = runner(MemoryStore::new(), ScriptedModel::new([Reply::call("desk__echo", json!({}))]));
    let run = before.start(&desk(&[&fake.server(options.clone())]), ()).await.unwrap();
    eventually("the call", || !fake.seen("tools/call").is_empty()).await;
    let log: Vec<Arc<Event>> = run.events(positronic_core::record::Seq(0)).await.unwrap();
    drop((run, before));

    let id = RunId::new("run-1");
    let brain = desk(&[&fake.server(options.clone())]);
    let after = runner(MemoryStore::new(), ScriptedModel::new([Reply::text("Done.")])).brain(brain);
    after.client().import(&id, &log).await.unwrap();
    let run = after.resume(&id).await.unwrap();
    assert!(matches!(run.settled().await, Settled::Completed(_)));
    let story = Story::of(&run).await;
    (results(&story, "Work"), fake.seen("tools/call").len())
}

#[tokio::test]
async fn only_repeatable_calls_are_repeated_after_a_crash() {
    let repeated = McpOptions::builder().ask(false).idempotent(["echo"]).build();
    assert_eq!(after_a_crash(&repeated).await, (vec![success("ok")], 2));

    let (results, calls) = after_a_crash(&options()).await;
    assert!(matches!(&results[0], ToolResult::Interrupted { .. }), "{results:?}");
    assert_eq!(calls, 1);
}

#[tokio::test(start_paused = true)]
async fn unresponsive_server_is_abandoned_although_another_call_waits_for_it() {
    let fake = first(|_| None);
    let server = fake.server(options());
    server.connect().await.unwrap();
    fake.be_mute(true);
    let (one, other) = (Play::new(echo(2)), Play::new(echo(1)));
    let later = async {
        tokio::time::sleep(Duration::from_secs(30)).await;
        other.run(desk(&[&server]), ()).await
    };
    let mended = async {
        // The first call has timed out, and the other one still waits.
        tokio::time::sleep(Duration::from_secs(62)).await;
        fake.be_mute(false);
    };

    let (story, waited, ()) = tokio::join!(one.run(desk(&[&server]), ()), later, mended);

    let results_of = |story: &Story| results(story, "Work");
    assert!(error_of(&results_of(&story)[0]).contains("did not answer within 60s"));
    assert_eq!(results_of(&story)[1], success("ok"), "on a new connection");
    // An open call keeps its original connection.
    assert!(error_of(&results_of(&waited)[0]).contains("did not answer within 60s"), "{:?}", results_of(&waited));
    assert_eq!(fake.connections(), 2);
}
