//! Tools of a run's caller: the model sees them beside those of the loop, and a call of one waits for the caller's result.

use std::sync::Arc;
use std::time::Duration;

use positronic_core::machine::{Refusal, pending};
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::projection::request_at;
use positronic_core::record::{
    CallerTool, Event, EventKind, Message, ModelRequest, Path, RunId, Seq, Start, ToolResult, UserMessage,
};
use positronic_core::runner::{Fork, RunHandle, Settled, SignalError, StartError};
use positronic_core::store::MemoryStore;
use positronic_core::testing::{CountedIds, Lockstep as _, TestClock};
use serde_json::{Value, json};

fn weather() -> CallerTool {
    let schema = json!({ "properties": { "city": { "type": "string" } }, "required": ["city"] });
    CallerTool::new("get_weather", "Reads the weather", schema).unwrap()
}

fn helper() -> Brain<(), Value> {
    let helper = brain("Helper").state(Value::Null).r#loop("Chat", |cx| {
        cx.system("Help.")
            .tool("clock", |t| t.idempotent().description("Reads the clock").execute(async |_: NoArgs, _| Ok("noon")))
            .on_exit(|answer, end| *answer = json!(end.clone()))
    });
    helper.caller_tools().build()
}

/// Asks for the weather of two cities and the time, and then answers with what it has read.
fn reply(request: &ModelRequest) -> Reply {
    match request.messages.messages().pop() {
        Some(Message::User { text, .. }) if text == "bad" => Reply::call("get_weather", json!({ "town": "Graz" })),
        Some(Message::User { .. }) => Reply::calls([
            ("get_weather", json!({ "city": "Graz" })),
            ("clock", json!({})),
            ("get_weather", json!({ "city": "Bern" })),
        ]),
        _ => Reply::text("Done."),
    }
}

fn runner(store: MemoryStore) -> Runner {
    let runner = Runner::new(ScriptedModel::from_fn(reply)).store(store);
    runner.clock(TestClock::default()).ids(CountedIds::default()).lockstep(true).linger(std::time::Duration::MAX)
}

fn said(text: &str) -> Start {
    Start { message: Some(UserMessage::new(text).caller_tools([weather()])), ..Start::default() }
}

async fn started(runner: &Runner, text: &str) -> RunHandle<Value> {
    runner.start_with(helper(), (), said(text)).await.unwrap()
}

/// Returns the calls that wait for the caller.
fn asked<R>(run: &RunHandle<R>) -> Vec<Path> {
    pending(&run.state()).into_iter().filter(|item| item.kind.is_for_caller()).map(|item| item.call).collect()
}

/// Returns the requests of a log, each rebuilt from the events before it.
fn requests(log: &[Arc<Event>]) -> Vec<ModelRequest> {
    let asked = log.iter().filter(|event| matches!(event.kind, EventKind::LoopModelCall { .. }));
    asked.map(|event| request_at(log.iter().map(|event| &**event), event.seq).unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn call_without_a_result_expires_and_the_loop_continues() {
    let runner = runner(MemoryStore::new());
    let brain = brain("Helper").r#loop("Chat", |cx| {
        cx.system("Help.").tool("clock", |t| t.description("Reads the clock").execute(async |_: NoArgs, _| Ok("noon")))
    });
    let run = runner.start_with(brain.caller_tools_within(Duration::from_secs(60)), (), said("weather")).await.unwrap();
    run.settled().await;
    let open = pending(&run.state());

    run.result().await.unwrap();

    assert!(open.iter().all(|item| item.kind.is_for_caller()), "{open:?}");
    let log = runner.client().events(run.id(), Seq(0)).await.unwrap();
    let expired = log.iter().filter(|event| {
        matches!(&event.kind, EventKind::LoopToolResult { result, .. } if *result == ToolResult::error("the caller has sent no result in time"))
    });
    assert_eq!(expired.count(), 2);
    let late = run.reply(&open[0].call, json!("late"), "ann").await;
    assert!(matches!(late, Err(SignalError::Refused(_))), "{late:?}");
}

async fn log_of(runner: &Runner, run: &RunHandle<Value>) -> Vec<Arc<Event>> {
    runner.client().events(run.id(), Seq(0)).await.unwrap()
}

/// Answers the calls that wait for the caller until the run has ended, and returns its events.
async fn finished(runner: &Runner, run: &RunHandle<Value>) -> Vec<EventKind> {
    while let Settled::Waiting(_) = run.settled().await {
        for call in asked(run) {
            run.reply(&call, json!(format!("sun at {call}")), "app").await.unwrap();
        }
    }
    log_of(runner, run).await.iter().map(|event| event.kind.clone()).collect()
}

fn results(kinds: &[EventKind]) -> Vec<ToolResult> {
    let results = kinds.iter().filter_map(|kind| match kind {
        EventKind::LoopToolResult { result, .. } => Some(result.clone()),
        _ => None,
    });
    results.collect()
}

#[tokio::test(start_paused = true)]
async fn calls_of_a_callers_tools_wait_beside_own_ones_and_the_model_reads_the_results() {
    let runner = runner(MemoryStore::new());
    let run = started(&runner, "go").await;

    let Settled::Waiting(_) = run.settled().await else { panic!("it does not wait") };
    let calls = asked(&run);
    let sentence = positronic_core::machine::why(&run.state()).unwrap().sentence;
    run.reply(&calls[1], json!("rain"), "app").await.unwrap();
    run.settled().await;
    let again = run.reply(&calls[1], json!("snow"), "ann").await.unwrap_err();
    let elsewhere = run.webhook("post", "7", json!({})).await.unwrap_err();
    run.reply(&calls[0], json!({ "degrees": 7 }), "app").await.unwrap();
    run.settled().await;
    let log = log_of(&runner, &run).await;

    assert_eq!(calls.iter().map(Path::as_str).collect::<Vec<_>>(), ["Chat/0.0", "Chat/0.2"]);
    assert_eq!(
        again.to_string(),
        "the run has no open call `Chat/0.2`; it was answered by app; pending: `Chat/0.0` (a reply)"
    );
    assert_eq!(
        elsewhere.to_string(),
        "nothing waits for the webhook `post` with identifier `7`; pending: `Chat/0.0` (a reply)"
    );
    assert!(sentence.contains("the caller's result to `get_weather` at `Chat/0.0`"), "{sentence}");
    let requests = requests(&log);
    let tools = |request: &ModelRequest| {
        let names = request.tools.tools().iter().map(|tool| tool.id.to_string());
        names.collect::<Vec<_>>()
    };
    assert_eq!(tools(&requests[0]), ["clock", "get_weather"]);
    let last = serde_json::to_value(requests[1].messages.messages()).unwrap().to_string();
    assert!(last.contains("rain") && last.contains("noon") && last.contains("degrees"), "{last}");
    let starts = log.iter().filter(|event| matches!(event.kind, EventKind::LoopToolStart { .. })).count();
    assert_eq!(starts, 1, "only the loop's own tool runs");
}

#[tokio::test(start_paused = true)]
async fn arguments_that_do_not_match_the_callers_schema_do_not_reach_the_caller() {
    let runner = runner(MemoryStore::new());
    let run = started(&runner, "bad").await;

    let kinds = finished(&runner, &run).await;

    let [ToolResult::Error { message }] = &results(&kinds)[..] else { panic!("{kinds:?}") };
    assert!(message.contains("do not match the schema"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn crash_after_any_event_loses_and_repeats_no_call_of_a_callers_tool() {
    let first = runner(MemoryStore::new());
    let baseline = started(&first, "go").await;
    let expected = finished(&first, &baseline).await;
    let log = log_of(&first, &baseline).await;

    let mut deaths = 0;
    for until in 1..log.len() {
        let again = runner(MemoryStore::new()).brain(helper());
        let id = RunId::new("run-1");
        // No process can die between two events of one append.
        if again.client().import(&id, &log[..until]).await.is_err() {
            continue;
        }
        deaths += 1;
        let run = again.resume(&id).await.unwrap();
        let kinds = finished(&again, &run).await;

        let count = |kinds: &[EventKind], is: fn(&EventKind) -> bool| kinds.iter().filter(|kind| is(kind)).count();
        assert_eq!(results(&kinds), results(&expected), "after {until}");
        for is in [
            (|kind| matches!(kind, EventKind::LoopWait { .. })) as fn(&EventKind) -> bool,
            |kind| matches!(kind, EventKind::LoopResume { .. }),
            |kind| matches!(kind, EventKind::LoopToolCall(_)),
            |kind| matches!(kind, EventKind::LoopIteration(_)),
        ] {
            assert_eq!(count(&kinds, is), count(&expected, is), "after {until}");
        }
        let sent = |log: &[Arc<Event>]| {
            let last = requests(log).pop().unwrap();
            json!([*last.tools, last.messages.messages()]).to_string()
        };
        assert_eq!(sent(&log_of(&again, &run).await), sent(&log), "after {until}");
    }
    assert!(deaths > 8, "{deaths}");
}

#[tokio::test(start_paused = true)]
async fn fork_asks_the_caller_again() {
    let runner = runner(MemoryStore::new()).brain(helper());
    let run = started(&runner, "go").await;
    run.settled().await;
    let log = log_of(&runner, &run).await;
    let at = log.iter().find(|event| event.kind.name() == "LOOP_MODEL_RESULT").unwrap().seq;
    finished(&runner, &run).await;

    let fork = runner.fork(run.id(), at, Fork::default()).await.unwrap();
    fork.settled().await;

    assert_eq!(asked(&fork).len(), 2);
    assert_eq!(results(&finished(&runner, &fork).await).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn message_gives_other_tools_and_one_without_tools_leaves_them() {
    let runner = runner(MemoryStore::new());
    let run = started(&runner, "go").await;
    run.settled().await;
    let shout = CallerTool::new("shout", "", json!({})).unwrap();

    run.message("and this", "app").await.unwrap();
    assert_eq!(*run.state().caller_tools, [weather()]);
    run.message(UserMessage::new("or that").caller_tools([shout.clone()]), "app").await.unwrap();
    let calls = asked(&run);
    for call in calls {
        run.reply(&call, json!("sun"), "app").await.unwrap();
    }
    run.settled().await;
    let log = log_of(&runner, &run).await;

    assert_eq!(*run.state().caller_tools, [shout]);
    let last = requests(&log).pop().unwrap();
    assert_eq!(last.tools.tools().last().unwrap().id.as_str(), "shout");
}

#[tokio::test(start_paused = true)]
async fn tools_are_refused_where_no_loop_takes_them_and_where_names_collide() {
    let runner = runner(MemoryStore::new());
    let plain = brain("Plain")
        .r#loop("Chat", |cx| {
            cx.system("Help.").tool("wait", |t| {
                t.wait(|_: &NoArgs, _| [webhook::<NoArgs>("go").on("a")]).execute(async |_, _| Ok(()))
            })
        })
        .build();
    let plain_run = Runner::new(ScriptedModel::new([Reply::call("wait", json!({}))])).start(&plain, ()).await.unwrap();
    plain_run.settled().await;
    let clock = || UserMessage::new("go").caller_tools([CallerTool::new("clock", "", json!({})).unwrap()]);

    let refused = runner.start_with(&plain, (), said("go")).await.unwrap_err();
    let message = plain_run.message(UserMessage::new("go").caller_tools([weather()]), "app").await.unwrap_err();
    let run = started(&runner, "go").await;
    run.settled().await;
    let collides = run.message(clock(), "app").await.unwrap_err();
    let failed = runner.start_with(helper(), (), Start { message: Some(clock()), ..Start::default() }).await.unwrap();
    let Settled::Failed(failure) = failed.settled().await else { panic!("it has begun") };

    assert!(
        matches!(refused, StartError::NoCallerTools { .. }) && refused.to_string().contains("`.caller_tools()`"),
        "{refused}"
    );
    let SignalError::Refused(Refusal::CallerTools(how)) = message else { panic!("{message}") };
    assert!(how.contains("the loop `Chat` does not take tools of its caller"), "{how}");
    let SignalError::Refused(Refusal::CallerTools(how)) = collides else { panic!("{collides}") };
    assert!(how.contains("has the name of the tool `clock`"), "{how}");
    assert!(failure.message.contains("the caller's tool `clock` has the name of the loop's tool `clock`"), "{failure}");
    assert_eq!(run.state().caller_tools.len(), 1, "nothing of a refused message is recorded");
}

#[tokio::test(start_paused = true)]
async fn many_tools_are_refused_at_the_start_and_in_a_message() {
    let many = || (0..200).map(|n| CallerTool::new(&format!("t{n}"), "", json!({})).unwrap());
    let message = || UserMessage::new("go").caller_tools(many());
    let runner = runner(MemoryStore::new());
    let start = Start { message: Some(message()), ..Start::default() };

    let refused = runner.start_with(helper(), (), start).await.unwrap_err();
    let run = started(&runner, "go").await;
    run.settled().await;
    let sent = run.message(message(), "app").await.unwrap_err();

    assert!(matches!(refused, StartError::CallerTools(_)), "{refused}");
    assert!(sent.to_string().contains("200 tools are too many"), "{sent}");
}
