//! Tools: failures, retries, state changes, and names.

use std::time::Duration;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{
    Assistant, EndReason, Message, ModelResponse, Part, ProposedCall, ResponseMetadata, ToolResult,
};
use positronic_core::runner::Settled;
use serde_json::json;

use crate::support::{
    Board, Job, Journal, Play, Shop, ShopBuilder, ShopLoop, ShopTool, batch, calls, done, error_of, events_named,
    prompt, results, success, tools, worker, workshop,
};

#[tokio::test(start_paused = true)]
async fn panicking_tool_fails_its_call_and_siblings_keep_their_results() {
    let journal = Journal::default();
    let play = Play::new([batch([("safe", "a"), ("bad", "b"), ("worse", "c"), ("safe", "d")]), done()]);
    let panicking = |config: ShopLoop| {
        tools(config)
            .tool("bad", |t| {
                t.execute(async |job: Job, _| -> Result<()> {
                    tokio::task::yield_now().await;
                    panic!("{} fell", job.id)
                })
            })
            .tool("worse", |t| t.execute(|_: Job, _| -> std::future::Ready<Result<()>> { panic!("at once") }))
    };

    let story = play.run(&workshop(&journal, panicking), ()).await;

    let results = results(&story, "Work");
    assert_eq!((&results[0], &results[3]), (&success("a done"), &success("d done")));
    assert_eq!(error_of(&results[1]), "the code panicked: b fell");
    assert_eq!(error_of(&results[2]), "the code panicked: at once");
}

#[tokio::test(start_paused = true)]
async fn failed_tool_reports_its_reason_with_all_causes() {
    #[derive(Debug, thiserror::Error)]
    #[error("the order could not be read")]
    struct Unreadable(#[source] std::num::ParseIntError);
    let journal = Journal::default();
    let play = Play::new([batch([("parse", "x")]), done()]);
    let failing = |config: ShopLoop| {
        config.tool("parse", |t| t.execute(async |job: Job, _| Ok(job.id.parse::<u32>().map_err(Unreadable)?)))
    };

    play.run(&workshop(&journal, failing), ()).await;

    assert_eq!(play.last_results(), ["Error: the order could not be read: invalid digit found in string"]);
}

#[tokio::test(start_paused = true)]
async fn arguments_with_a_number_that_would_be_rounded_are_refused_and_the_model_reads_why() {
    let journal = Journal::default();
    let numbers = ["18446744073709551617", "-9223372036854775809", "12345678901234567.89", "1e-400"];
    let ask = |number: &&str| {
        let call = ProposedCall {
            provider_id: None,
            name: "pay".to_owned(),
            arguments: format!("{{\"amount\": {number}}}"),
            data: None,
        };
        Reply::response(ModelResponse {
            parts: vec![Part::Call { index: 0 }],
            calls: vec![call],
            metadata: ResponseMetadata::default(),
        })
    };
    let play = Play::new(numbers.iter().map(ask).chain([done()]));
    let pay = journal.clone();
    let paying = move |config: ShopLoop| {
        let pay = pay.clone();
        config.tool("pay", move |t| {
            t.execute(move |amount: std::collections::BTreeMap<String, f64>, _| {
                pay.note(format!("{amount:?}"));
                std::future::ready(Ok("paid"))
            })
        })
    };

    let story = play.run(&workshop(&journal, paying), ()).await;

    for (result, number) in results(&story, "Work").iter().zip(numbers) {
        let reason = format!(
            "the arguments have a number with too many digits at `/amount`: {number}; write one that fits into 64 bits, or a string"
        );
        assert_eq!(error_of(result), reason);
    }
    assert!(journal.take().is_empty(), "no call has run");
    let logged = story.json_lines();
    assert!(
        numbers.iter().all(|number| logged.contains(&format!("\\\"amount\\\": {number}"))),
        "the log keeps them: {logged}"
    );
}

#[tokio::test(start_paused = true)]
async fn slow_tool_fails_and_is_stopped() {
    let journal = Journal::default();
    let play = Play::new([Reply::call("slow", json!({"id": "a", "takes": 5000})), done()]);
    let slow = || worker("slow", |t| t.timeout(Duration::from_secs(2)));

    let story = play.run(&workshop(&journal, move |config| config.tools([slow()])), ()).await;

    let results = results(&story, "Work");
    assert_eq!(error_of(&results[0]), "the tool took longer than 2s; whether it had its effect is unknown");
    assert_eq!(prompt(&story, "Work").output[0].duration, Some(Duration::from_secs(2)));
    tokio::time::advance(Duration::from_secs(10)).await;
    assert_eq!(journal.take(), ["a"], "its future was dropped");
    assert_eq!(*story.state(), json!({"done": []}));
}

/// Fails transiently twice, then works; records its idempotency key each time.
fn flaky(name: &str, flags: fn(ShopBuilder) -> ShopBuilder) -> ShopTool {
    Tool::new(name, |t| {
        flags(t).execute(async |_: Job, cx: Shop| {
            cx.services.note(cx.idempotency_key());
            let tries = cx.services.count();
            if tries < 3 { Err(Error::transient(format!("try {tries} failed"))) } else { Ok("at last") }
        })
    })
}

#[tokio::test(start_paused = true)]
async fn transient_failure_of_a_repeatable_tool_is_retried_with_backoff() {
    for flags in [ShopBuilder::read_only as fn(ShopBuilder) -> ShopBuilder, ShopBuilder::idempotent] {
        let journal = Journal::default();
        let play = Play::new([batch([("flaky", "a")]), done()]);

        let story = play.run(&workshop(&journal, move |config| config.tools([flaky("flaky", flags)])), ()).await;

        assert_eq!(results(&story, "Work"), [success("at last")]);
        assert_eq!(journal.take(), ["run-1:Work/0.0"; 3], "the key is the same for every try");
        assert_eq!(events_named(&story, "LOOP_TOOL_RETRY").len(), 2);
        let starts: Vec<_> = story.log().iter().filter(|event| event.kind.name() == "LOOP_TOOL_START").collect();
        let pauses: Vec<_> = starts.windows(2).map(|pair| pair[1].at.since(pair[0].at)).collect();
        assert_eq!(pauses, [Duration::from_millis(500), Duration::from_secs(1)]);
    }
}

#[tokio::test(start_paused = true)]
async fn other_tools_are_not_retried_and_retries_are_limited() {
    let journal = Journal::default();
    let play = Play::new([batch([("plain", "a")]), done()]);
    let story = play.run(&workshop(&journal, |config| config.tools([flaky("plain", |t| t)])), ()).await;
    assert_eq!(error_of(&results(&story, "Work")[0]), "try 1 failed");
    assert_eq!(journal.take().len(), 1);

    let journal = Journal::default();
    let play = Play::new([batch([("once", "a")]), done()]);
    let once = |config: ShopLoop| config.tools([flaky("once", |t| t.read_only().retries(1))]);
    let story = play.run(&workshop(&journal, once), ()).await;
    assert_eq!(error_of(&results(&story, "Work")[0]), "try 2 failed");
    assert_eq!(journal.take().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn panicking_update_fails_the_call_and_keeps_the_state() {
    let journal = Journal::default();
    let play = Play::new([batch([("safe", "a"), ("bad", "b"), ("safe", "c")]), done()]);
    let bad = |config: ShopLoop| {
        tools(config).tool("bad", |t| {
            t.execute(async |job: Job, cx: Shop| {
                let reply = cx.result("receipt 7").update(move |board: &mut Board| board.done.push(job.id));
                Ok(reply.update(|_| panic!("no room")))
            })
        })
    };

    let story = play.run(&workshop(&journal, bad), ()).await;

    let results = results(&story, "Work");
    assert_eq!(
        error_of(&results[1]),
        "the tool did its work and gave \"receipt 7\", but its change of the state failed, so the state is as before: \
         the code panicked: no room"
    );
    assert_eq!(story.state()["done"], json!(["a", "c"]), "all of a call's updates or none");
}

#[tokio::test]
async fn parallel_updates_lose_nothing() {
    let journal = Journal::default();
    let many = (0..40).map(|n| ("safe", json!({"id": n.to_string()})));
    let play = Play::free([Reply::calls(many), done()]);

    let story = play.run(&workshop(&journal, |config| tools(config).parallel(40)), ()).await;

    let mut done: Vec<u32> =
        story.state()["done"].as_array().unwrap().iter().map(|id| id.as_str().unwrap().parse().unwrap()).collect();
    done.sort_unstable();
    assert_eq!(done, (0..40).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn updates_of_the_context_precede_those_of_the_reply() {
    let journal = Journal::default();
    let play = Play::free([batch([("note", "a"), ("note", "b")]), done()]);
    let noting = |config: ShopLoop| {
        config.tool("note", |t| {
            t.execute(async |Job { id, .. }, cx: Shop| {
                let reply = cx.result("noted").update({
                    let id = id.clone();
                    move |board: &mut Board| board.done.push(format!("{id}3"))
                });
                for step in 1..3 {
                    let noted = format!("{id}{step}");
                    cx.clone().update(|board| board.done.push(noted));
                    tokio::task::yield_now().await;
                    assert!(!cx.state.done.contains(&format!("{id}{step}")), "the state is that of the start");
                }
                Ok(reply)
            })
        })
    };

    let story = play.run(&workshop(&journal, noting), ()).await;

    let state = story.state()["done"].to_string();
    assert!(
        [r#"["a1","a2","a3","b1","b2","b3"]"#, r#"["b1","b2","b3","a1","a2","a3"]"#].contains(&state.as_str()),
        "{state}"
    );
}

#[tokio::test(start_paused = true)]
async fn updates_of_a_failed_try_are_dropped() {
    let journal = Journal::default();
    let play = Play::new([batch([("flaky", "a"), ("broken", "b"), ("torn", "c")]), done()]);
    let failing = |config: ShopLoop| {
        config
            .tool("flaky", |t| {
                t.idempotent().execute(async |job: Job, cx: Shop| {
                    cx.update(|board| board.done.push(job.id));
                    match cx.services.count() {
                        1 => Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into()),
                        _ => Ok("done"),
                    }
                })
            })
            .tool("broken", |t| {
                t.execute(async |job: Job, cx: Shop| -> Result<()> {
                    cx.update(|board| board.done.push(job.id));
                    Err(Error::new("no paper"))
                })
            })
            .tool("torn", |t| {
                t.execute(async |job: Job, cx: Shop| {
                    cx.update(|board| board.done.push(job.id));
                    cx.update(|_| panic!("torn"));
                    Ok("done")
                })
            })
    };

    let story = play.run(&workshop(&journal, failing), ()).await;

    let results = results(&story, "Work");
    assert_eq!(results[0], success("done"));
    assert_eq!(error_of(&results[1]), "no paper");
    assert!(error_of(&results[2]).ends_with("so the state is as before: the code panicked: torn"), "{results:?}");
    assert_eq!(*story.state(), json!({"done": ["a"]}), "once, although it was tried twice");
}

#[tokio::test(start_paused = true)]
async fn exit_tools_can_be_named_and_an_unknown_name_fails_the_loop() {
    let journal = Journal::default();
    let play = Play::new([batch([("safe", "a")])]);
    play.run(&workshop(&journal, |config| tools(config).exit_on(["safe"])), ()).await;
    assert_eq!(journal.take(), ["a"]);

    let play = Play::new([]);
    let story = play.run(&workshop(&journal, |config| tools(config).exit_on(["save"])), ()).await;
    let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
    assert_eq!(failure.code, EndReason::Config);
    assert_eq!(
        failure.message,
        "the loop `Work` cannot be configured: `exit_on` names `save`, but the loop's tools are `safe`, `read`, \
         `alone`, `gated`"
    );
}

#[tokio::test(start_paused = true)]
async fn tool_with_dots_has_another_name_only_for_the_model() {
    let journal = Journal::default();
    let play = Play::new([Reply::call("payment_send", json!({"id": "a"})), done()]);

    let story = play.run(&workshop(&journal, |config| config.tools([worker("payment.send", |t| t)])), ()).await;

    assert_eq!(calls(&story, "Work")[0].tool, "payment.send");
    let request = play.last_request();
    assert_eq!(request.tools.tools()[0].id.wire_name(), "payment_send");
    let said = request.messages.messages().into_iter().find_map(|message| match message {
        Message::Assistant { parts, .. } => Some(parts),
        _ => None,
    });
    assert!(matches!(&said.unwrap()[0], Assistant::Call { name, .. } if name == "payment_send"));
}

#[tokio::test(start_paused = true)]
async fn tools_that_a_provider_cannot_distinguish_are_refused() {
    let journal = Journal::default();
    let play = Play::new([]);
    let colliding = |config: ShopLoop| config.tools([worker("payment.send", |t| t), worker("payment_send", |t| t)]);

    let story = play.run(&workshop(&journal, colliding), ()).await;

    let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
    assert!(failure.message.contains("`payment.send` and `payment_send` would have the same name"), "{failure}");
}

#[test]
#[should_panic(expected = "two tools named `safe`")]
fn two_tools_of_one_name_are_a_usage_error() {
    let journal = Journal::default();
    let twice = workshop(&journal, |config| tools(config).tools([worker("safe", |t| t)]));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let story = runtime.block_on(async { Play::new([]).run(&twice, ()).await });
    let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
    panic!("{failure}");
}

#[tokio::test(start_paused = true)]
async fn panicking_config_closure_fails_the_brain_with_its_message() {
    let journal = Journal::default();
    let play = Play::new([batch([("safe", "a")])]);
    let iterations = std::sync::atomic::AtomicU32::new(0);
    let moody = move |config: ShopLoop| {
        assert!(iterations.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0, "not again");
        tools(config)
    };

    let story = play.run(&workshop(&journal, moody), ()).await;

    let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
    assert_eq!(failure.message, "the loop `Work` cannot be configured: the code panicked: not again");
    assert_eq!(results(&story, "Work"), [success("a done")]);
}

#[tokio::test(start_paused = true)]
async fn long_loop_with_changing_prompt_and_tools_keeps_all_its_iterations_refer_to() {
    let journal = Journal::default();
    let play = Play::of(ScriptedModel::from_fn(|_| batch([("safe", "a")])), true);
    let changing = brain("Changing")
        .services::<Journal>()
        .state(Board::default())
        .r#loop("Work", |cx| {
            let iteration = cx.state.done.len();
            let config = cx.system(format!("Iteration {iteration}")).max_iterations(300).tools([worker("safe", |t| t)]);
            if iteration % 2 == 0 { config } else { config.tools([worker("odd", |t| t)]) }
        })
        .bind(journal);

    let story = play.test.run(&changing, ()).await;

    assert!(matches!(story.settled(), Settled::Completed(_)), "{:?}", story.settled());
}

#[tokio::test(start_paused = true)]
async fn tools_change_with_the_state_and_a_removed_tool_is_an_error() {
    let journal = Journal::default();
    let play = Play::new([batch([("safe", "a")]), batch([("safe", "b"), ("late", "c")]), done()]);
    let changing = brain("Changing")
        .services::<Journal>()
        .state(Board::default())
        .r#loop("Work", |cx| {
            let name = if cx.state.done.is_empty() { "safe" } else { "late" };
            cx.system("").tools([worker(name, |t| t)])
        })
        .bind(journal);

    let story = play.run(&changing, ()).await;

    let results = results(&story, "Work");
    assert_eq!(error_of(&results[1]), "there is no tool `safe`; the tools are `late`");
    assert_eq!(results[2], success("c done"));
    assert!(!matches!(results[0], ToolResult::Error { .. }));
}

#[tokio::test(start_paused = true)]
async fn dynamic_tool_result_is_folded_into_the_state() {
    #[derive(serde::Deserialize)]
    struct Asked {
        id: String,
    }
    let journal = Journal::default();
    let play = Play::new([
        batch([("safe", "a"), ("odd", "b")]),
        Reply::call("safe", json!({ "id": "c", "fails": true })),
        done(),
    ]);
    let keeping = |config: ShopLoop| {
        let keep = |board: &mut Board, Asked { id }: Asked, said: String| board.done.push(format!("{id}: {said}"));
        let no_text = |board: &mut Board, _: Asked, number: u32| board.done.push(number.to_string());
        config.tools([worker("safe", |t| t).keep(keep), worker("odd", |t| t).keep(no_text)])
    };

    let story = play.run(&workshop(&journal, keeping), ()).await;

    // After the tool's own update; a failed call and one whose result has another type fold nothing.
    assert_eq!(story.state()["done"], json!(["a", "a: a done"]));
    let results = results(&story, "Work");
    assert_eq!(results[0], success("a done"));
    assert!(
        error_of(&results[1]).starts_with("the tool has run, but its result cannot be decoded as `u32`"),
        "{results:?}"
    );
    assert_eq!(error_of(&results[2]), "c broke");
}

/// Arguments whose type accepts and ignores unknown fields.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Named {
    id: String,
}

#[tokio::test(start_paused = true)]
async fn undeclared_argument_is_refused() {
    let journal = Journal::default();
    let play = Play::new([Reply::call("plain", json!({"id": "a", "urgent": true})), done()]);
    let plain = workshop(&journal, |config| {
        config.tool("plain", |t| {
            t.execute(async |named: Named, cx| {
                cx.services.note(named.id);
                Ok("ran")
            })
        })
    });

    let story = play.run(&plain, ()).await;

    let results = results(&story, "Work");
    assert_eq!(
        error_of(&results[0]),
        "the arguments do not match the schema: Additional properties are not allowed ('urgent' was unexpected)"
    );
    assert_eq!(journal.take(), Vec::<String>::new());
    assert_eq!(play.last_request().tools.find("plain").unwrap().parameters["additionalProperties"], json!(false));
}
