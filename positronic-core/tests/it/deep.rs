//! Values beyond the limits of the log, from models, code and people: too deep, too large, or impossible in JSON.

use std::collections::HashSet;

use positronic_core::dsl::{IntoBrain as _, Loop, LoopContext};
use positronic_core::machine::Refusal;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{
    Actor, MAX_DOCUMENT_BYTES, ModelResponse, Part, ProposedCall, Signal, SignalId, SignalKind, Start, ToolResult,
    UserMessage,
};
use positronic_core::runner::{Settled, SignalError, StartError};
use positronic_core::store::RunFilter;
use positronic_core::testing::{CountedIds, Lockstep as _, Story, Test, TestClock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::{Journal, Play, done, error_of, results, success, workshop};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Loose {
    more: serde_json::Value,
}

/// JSON text of nested lists.
fn nested(levels: usize) -> String {
    format!(r#"{{"more":{}{}}}"#, "[".repeat(levels - 1), "]".repeat(levels - 1))
}

#[tokio::test(start_paused = true)]
async fn overly_nested_arguments_are_refused_and_the_log_stays_readable() {
    for (levels, runs) in [(64, true), (65, false), (126, false), (127, false), (128, false), (100_000, false)] {
        let play = Play::new([Reply::calls([("loose", json!(nested(levels)))]), done()]);
        let journal = Journal::default();
        let loose = workshop(&journal, |config| {
            config.tool("loose", |t| {
                t.execute(async |given: Loose, _| Ok(if given.more.is_array() { "ran" } else { "odd" }))
            })
        });

        let story = play.run(&loose, ()).await;

        assert!(matches!(story.settled(), Settled::Completed(_)), "{levels}: {:?}", story.settled());
        match &results(&story, "Work")[0] {
            result @ ToolResult::Success { .. } if runs => assert_eq!(*result, success("ran")),
            ToolResult::Error { message } if !runs => assert!(message.contains("the arguments"), "{levels}: {message}"),
            result => panic!("{levels}: {result:?}"),
        }
    }
}

/// Nested lists, built and dropped without recursion.
fn lists(levels: usize) -> Value {
    (1..levels).fold(json!([]), |inner, _| Value::Array(vec![inner]))
}

fn deep() -> Value {
    lists(65)
}

fn failure(story: &Story) -> String {
    match story.settled() {
        Settled::Failed(failure) => failure.message.clone(),
        other => panic!("{other:?}"),
    }
}

#[derive(Default, Serialize, Deserialize, JsonSchema)]
struct Stack(Value);

/// A tool for each way in which a tool produces a value.
fn diggers(config: Loop<(), Value>, value: &Value) -> Loop<(), Value> {
    type Cx = ToolContext<(), Value>;
    fn tool<F>(
        name: &'static str,
        value: &Value,
        dig: impl Fn(Value, Cx) -> F + Send + Sync + 'static,
    ) -> Tool<(), Value>
    where
        F: Future<Output = Result<ToolReply<Value>>> + Send + 'static,
    {
        let value = value.clone();
        Tool::new(name, |t| t.execute(move |_: NoArgs, cx| dig(value.clone(), cx)))
    }
    config.tools([
        tool("result", value, async |value, cx| Ok(cx.result(value))),
        tool("update", value, async |value, cx| Ok(cx.result(0).update(move |state| *state = value))),
        tool("once", value, async |value, cx| Ok(cx.result(cx.once("deep", async { Ok(value) }).await?.is_array()))),
        tool("widget", value, async |value, cx| {
            cx.display_widget("deep", value, "deep")?;
            Ok(cx.result(0))
        }),
        tool("task", value, async |value, cx| {
            let task = tokio::spawn(async move {
                cx.display_widget("deep", &value, "deep")?;
                Ok(cx.result(cx.once("deep", async { Ok(value) }).await?))
            });
            task.await.unwrap()
        }),
    ])
}

const DIGGERS: [&str; 5] = ["result", "update", "once", "widget", "task"];

/// Runs every digger with a value, each in its own run, and returns the outcome of its call.
async fn dug(runner: impl Fn(ScriptedModel) -> Runner, value: &Value) -> Vec<(&'static str, ToolResult, usize)> {
    let mut all = Vec::new();
    for name in DIGGERS {
        let config = value.clone();
        let digging =
            brain("Dig").state(json!(null)).r#loop("Work", move |cx| diggers(cx.system("Dig.").input("Go."), &config));
        let test = Test::with(runner(ScriptedModel::new([Reply::call(name, json!({})), done()])));
        let story = Story::of(&test.start(&digging, ()).await).await;
        assert!(matches!(story.settled(), Settled::Completed(_)), "{name}: {:?}", story.settled());
        let size = story.json_lines().len();
        all.push((name, results(&story, "Work").remove(0), size));
    }
    all
}

/// Limits of values in these tests.
const BYTES: usize = 10_000;

fn runner(model: ScriptedModel) -> Runner {
    with_limit(model, BYTES)
}

fn with_limit(model: ScriptedModel, max_bytes: usize) -> Runner {
    Runner::new(model)
        .clock(TestClock::default())
        .ids(CountedIds::default())
        .lockstep(true)
        .max_document_bytes(max_bytes)
}

#[tokio::test(start_paused = true)]
async fn tool_result_of_64_levels_is_recorded_and_65_levels_are_an_error() {
    for (name, result, _) in dug(runner, &lists(64)).await {
        assert!(matches!(result, ToolResult::Success { .. }), "{name}: {result:?}");
    }
    for (name, result, _) in dug(runner, &deep()).await {
        assert!(error_of(&result).contains("64 levels"), "{name}: {result:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn runner_limits_tool_result_size_and_writes_nothing_larger() {
    // Two bytes for the list, three for the text in it.
    let fits = json!(["x".repeat(BYTES - 5)]);
    let larger = json!(["x".repeat(BYTES - 4)]);

    for (name, result, _) in dug(runner, &fits).await {
        assert!(matches!(result, ToolResult::Success { .. }), "{name}: {result:?}");
    }
    for (name, result, size) in dug(runner, &larger).await {
        assert!(error_of(&result).contains("larger than 10000 bytes"), "{name}: {result:?}");
        assert!(size < BYTES, "{name}: {size} bytes of log");
    }
    for (name, result, _) in dug(|model| with_limit(model, BYTES + 1), &larger).await {
        assert!(matches!(result, ToolResult::Success { .. }), "{name}: {result:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn result_above_8_mib_is_an_error_by_default() {
    let digging = brain("Dig").r#loop("Work", |cx| {
        cx.system("Dig.")
            .input("Go.")
            .tool("dig", |t| t.execute(async |_: NoArgs, _| Ok("x".repeat(MAX_DOCUMENT_BYTES))))
    });

    let story = Play::new([Reply::call("dig", json!({})), done()]).run(&digging, ()).await;

    assert!(error_of(&results(&story, "Work")[0]).contains("larger than 8388608 bytes"));
}

#[tokio::test(start_paused = true)]
async fn task_of_a_tool_has_the_limit_of_its_runner() {
    let large = json!(["x".repeat(MAX_DOCUMENT_BYTES)]);

    for (name, result, _) in dug(|model| with_limit(model, 2 * MAX_DOCUMENT_BYTES), &large).await {
        assert!(matches!(result, ToolResult::Success { .. }), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn too_large_result_after_a_timeout_fails_its_call() {
    let digging = brain("Dig").r#loop("Work", |cx| {
        cx.system("Dig.").input("Go.").tool("dig", |t| {
            t.execute(async |_: NoArgs, cx| {
                let wait = webhook::<Value>("slack").on("thread-7").otherwise("x".repeat(BYTES));
                Ok(cx.result("asked").wait_for([wait]))
            })
        })
    });

    let test = Test::with(runner(ScriptedModel::new([Reply::call("dig", json!({})), done()])));
    let story = Story::of(&test.start(&digging, ()).await).await;

    assert!(error_of(&results(&story, "Work")[0]).contains("larger than 10000 bytes"));
}

/// Brains that produce a state value in every way, with the start of the expected failure.
fn states(value: &Value) -> Vec<(Brain<(), Value>, &'static str)> {
    let (returned, kept, left, mapped, given, last) =
        (value.clone(), value.clone(), value.clone(), value.clone(), value.clone(), value.clone());
    let quick = |cx: LoopContext<(), Value>| cx.system("Go.").input("Go.");
    let inner = || brain("Inner").options::<Stack>().state(json!(0)).step("Pass", async |_| Ok(json!(0)));
    vec![
        (
            brain("Returned")
                .state(json!(0))
                .step("Dig", move |_| {
                    let value = returned.clone();
                    async move { Ok(value) }
                })
                .build(),
            "the step `Dig` failed",
        ),
        (
            brain("Kept")
                .state(json!(0))
                .step("Dig", move |cx| {
                    let value = kept.clone();
                    async move { cx.once("deep", async { Ok(value) }).await }
                })
                .build(),
            "the step `Dig` failed",
        ),
        (
            brain("Left")
                .state(json!(0))
                .r#loop("Dig", move |cx| {
                    let value = left.clone();
                    quick(cx).on_exit(move |state, _| state.clone_from(&value))
                })
                .build(),
            "`on_exit` of the loop `Dig` failed",
        ),
        (
            brain("Mapped")
                .state(json!(0))
                .brain("Dig", inner())
                .map_input(|_| Stack::default())
                .map_output(move |_, _| mapped.clone())
                .build(),
            "cannot apply the result of the brain `Dig`",
        ),
        (
            brain("Given")
                .state(json!(0))
                .brain("Dig", inner())
                .map_input(move |_| Stack(given.clone()))
                .map_output(|state, _| state)
                .build(),
            "the brain `Dig` failed to start",
        ),
        (
            brain("Result").state(json!(0)).step("Pass", async |_| Ok(json!(0))).result(move |_| last.clone()),
            "cannot compute the result of `Result`",
        ),
    ]
}
#[tokio::test(start_paused = true)]
async fn overly_nested_or_large_state_fails_its_maker_and_is_not_written() {
    let large = json!(["x".repeat(BYTES)]);
    for (value, reason) in [(deep(), "64 levels"), (large, "larger than 10000 bytes")] {
        for (brain, begins) in states(&value) {
            let test = Test::with(runner(ScriptedModel::from_fn(|_| done())));
            let story = Story::of(&test.start(&brain, ()).await).await;
            let failure = failure(&story);
            assert!(failure.starts_with(begins) && failure.contains(reason), "{failure}");
            assert!(story.json_lines().len() < BYTES);
        }
    }
    for (brain, begins) in states(&lists(64)) {
        let test = Test::with(runner(ScriptedModel::from_fn(|_| done())));
        let run = test.start(&brain, ()).await;
        let story = Story::of(&run).await;
        assert!(matches!(story.settled(), Settled::Completed(_)), "{begins}: {:?}", story.settled());
        crate::support::checks::check_log(&story, &run.state());
    }
}

#[tokio::test(start_paused = true)]
async fn message_that_is_too_large_starts_no_run() {
    let helper = brain("Helper").r#loop("Chat", |cx| cx.system("Help."));
    let runner = runner(ScriptedModel::from_fn(|_| done()));
    let opened = async |bytes: usize| {
        let message = Some(UserMessage::new("x".repeat(bytes)));
        runner.start_with(&helper, (), Start { message, ..Start::default() }).await.map(|_| ())
    };

    let refused = opened(BYTES + 1).await.unwrap_err();
    let runs = runner.client().store().runs(&RunFilter::default()).await.unwrap();

    assert!(
        refused.to_string().starts_with("the message cannot be recorded: it is larger than 10000 bytes"),
        "{refused}"
    );
    assert!(runs.is_empty(), "{runs:?}");
    opened(BYTES).await.unwrap();
}

/// Runs work with the stack size of a runtime's worker thread.
fn on_a_worker_thread(work: impl Future<Output = ()> + Send + 'static) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let work = runtime.spawn(work);
    runtime.block_on(work).unwrap();
}

#[test]
fn document_of_2000_levels_is_an_error_on_a_worker_threads_stack() {
    on_a_worker_thread(async {
        for (name, result, _) in dug(runner, &lists(2000)).await {
            assert!(error_of(&result).contains("64 levels"), "{name}: {result:?}");
        }
        for (brain, begins) in states(&lists(2000)) {
            let story =
                Story::of(&Test::with(runner(ScriptedModel::from_fn(|_| done()))).start(&brain, ()).await).await;
            assert!(failure(&story).contains("64 levels"), "{begins}");
        }
        let test = Test::with(runner(ScriptedModel::from_fn(|_| done())));
        let options = brain("Stack").options::<Stack>().step("Pass", async |_| Ok(()));
        let refused = test.runner().start(&options, Stack(lists(2000))).await;
        assert!(matches!(refused, Err(StartError::Options { .. })), "{refused:?}");
        let client = test.runner().client();
        let sent = client.deliver("one".into(), "any", "a", lists(2000), Actor::default()).await;
        assert!(matches!(sent, Err(SignalError::Refused(Refusal::Misfit { .. }))), "{sent:?}");
    });
}

/// Answers that the log cannot store.
fn answers() -> Vec<(ModelResponse, &'static str)> {
    let large = || "x".repeat(BYTES + 1);
    let of = |part| ModelResponse { parts: vec![part], ..ModelResponse::default() };
    let call = ProposedCall { provider_id: None, name: "any".to_owned(), arguments: large(), data: None };
    vec![
        (of(Part::Opaque { data: deep() }), "64 levels"),
        (of(Part::Reasoning { text: String::new(), data: Some(deep()) }), "64 levels"),
        (of(Part::Text { text: large() }), "larger than 10000 bytes"),
        (
            ModelResponse { calls: vec![call], parts: vec![Part::Call { index: 0 }], ..ModelResponse::default() },
            "larger than 10000 bytes",
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn unstorable_answer_is_a_model_failure() {
    for (answer, reason) in answers() {
        let test = Test::with(runner(ScriptedModel::from_fn(move |_| Reply::response(answer.clone()))));
        let asking = brain("Ask").r#loop("Work", |cx| cx.system("Go.").input("Go."));

        let run = test.start(&asking, ()).await;
        let story = Story::of(&run).await;

        let failure = failure(&story);
        assert!(failure.contains("the model's answer cannot be recorded") && failure.contains(reason), "{failure}");
        assert!(story.json_lines().len() < BYTES);
    }
}

#[tokio::test(start_paused = true)]
async fn unstorable_signal_is_refused_and_changes_nothing() {
    let waiting = workshop(&Journal::default(), |config| {
        config.tool("pay", |t| t.requires_approval("it costs").execute(async |_: Loose, _| Ok("paid")))
    });
    let test = Test::with(runner(ScriptedModel::new([Reply::call("pay", json!({"more": 1}))])));
    let run = test.start(&waiting, ()).await;
    crate::support::waits(&run).await;
    let call = crate::support::path("Work/0.0");
    let before = run.state();
    let large = || "x".repeat(BYTES + 1);

    for kind in [
        SignalKind::Approve { call: call.clone(), arguments: Some(json!({ "more": deep() })) },
        SignalKind::Approve { call: call.clone(), arguments: Some(json!({ "more": large() })) },
        SignalKind::Reply { call: call.clone(), payload: deep() },
        SignalKind::Webhook { name: "any".to_owned(), identifier: "a".to_owned(), payload: deep() },
        SignalKind::message(large()),
        SignalKind::Reject { call, reason: Some(large()) },
        SignalKind::Cancel { reason: Some(large()) },
    ] {
        let signal = Signal { id: SignalId::new("one"), actor: Actor::default(), kind };
        let sent = test.runner().client().send(run.id(), signal).await;
        assert!(matches!(sent, Err(SignalError::Refused(Refusal::Misfit { .. }))), "{sent:?}");
    }
    assert_eq!(run.state(), before);
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Reading {
    value: f64,
}

fn readings(reading: &Reading) -> [Brain<(), Reading>; 3] {
    let (returned, left, updated) = (reading.clone(), reading.clone(), reading.clone());
    [
        brain("Returned")
            .state(Reading::default())
            .step("Read", move |_| {
                let value = returned.clone();
                async move { Ok(value) }
            })
            .build(),
        brain("Left")
            .state(Reading::default())
            .r#loop("Read", move |cx| {
                let value = left.clone();
                cx.system("Go.").input("Go.").on_exit(move |state, _| state.clone_from(&value))
            })
            .build(),
        brain("Updated")
            .state(Reading::default())
            .r#loop("Read", move |cx| {
                let value = updated.clone();
                cx.system("Go.").input("Go.").tool("read", |t| {
                    t.execute(move |_: NoArgs, cx| {
                        let value = value.clone();
                        async move { Ok(cx.result(0).update(move |state: &mut Reading| *state = value)) }
                    })
                })
            })
            .build(),
    ]
}

#[tokio::test(start_paused = true)]
async fn state_that_does_not_survive_json_is_an_error_where_it_is_made() {
    let reason = |story: &Story| match story.settled() {
        Settled::Failed(failure) => failure.message.clone(),
        _ => error_of(&results(story, "Read")[0]).to_owned(),
    };
    for (reading, says) in [
        (Reading { value: f64::NAN }, "at `/value`: JSON has no number for NaN"),
        (Reading { value: f64::INFINITY }, "at `/value`: JSON has no number for inf"),
    ] {
        for brain in readings(&reading) {
            let first = if brain.definition().title == "Updated" { Reply::call("read", json!({})) } else { done() };
            let replies = [first, done()];
            let model =
                ScriptedModel::from_fn(move |request| replies[usize::from(request.path.as_str() != "Read/0")].clone());
            let story = Story::of(&Test::with(runner(model)).start(&brain, ()).await).await;
            assert!(reason(&story).contains(says), "{}", reason(&story));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn state_with_unordered_encoding_survives() {
    fn words() -> HashSet<String> {
        (0..100).map(|word: u32| word.to_string()).collect()
    }
    let set = brain("Set").step("Make", async |_| Ok(words())).step("Count", async |cx| Ok(cx.state.len()));

    let story = Play::new([]).run(&set, ()).await;

    assert!(matches!(story.settled(), Settled::Completed(count) if *count == 100), "{:?}", story.settled());
}

#[test]
#[should_panic(expected = "at `/value`: JSON has no number for NaN")]
fn initial_state_that_does_not_survive_json_is_refused_by_the_builder() {
    let _ = brain("Read").state(Reading { value: f64::NAN });
}

#[tokio::test(start_paused = true)]
async fn overly_nested_webhook_is_refused_and_not_stored() {
    let play = Play::new([]);
    let client = play.test.runner().client();

    let sent = client.deliver("one".into(), "any", "a", deep(), Actor::default()).await;

    let Err(SignalError::Refused(Refusal::Misfit { reason, .. })) = &sent else { panic!("{sent:?}") };
    assert!(reason.contains("64 levels"), "{reason}");
    assert!(client.store().mailbox().await.unwrap().is_empty());
}
