//! Guards of calls and of results that ask a model, and that stop the loop or replace what they check.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use positronic_core::dsl::{GuardContext, IntoBrain as _, Verdict};
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::projection::timeline::{NodeKind, Timeline};
use positronic_core::record::{
    EndReason, Event, EventKind, LoopOutcome, ModelError, ModelErrorKind, ModelRequest, Path, Pending, Seq, SignalKind,
    ToolResult, Usage,
};
use positronic_core::runner::{Fork, Settled};
use positronic_core::store::MemoryStore;
use positronic_core::testing::Test;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::boundaries::{Ledger, Tale, kinds, last_text};
use crate::support::disturbances;

#[derive(Serialize, Deserialize, JsonSchema)]
struct Amount {
    amount: u32,
}

/// Asks the model about a call or its result.
async fn judge(cx: GuardContext<(), u32>, tool: String, value: Arc<Value>) -> Result<Verdict> {
    Ok(match &*cx.model().system("Judge.").ask(format!("{tool} {value}")).await? {
        "fine" => Verdict::Pass,
        reason => Verdict::Refuse(reason.to_owned()),
    })
}

/// A desk that looks customers up, pays after an approval, and lets a brain send what it is given.
fn desk(ledger: &Ledger) -> Brain<(), u32> {
    let (pays, sends) = (ledger.clone(), ledger.clone());
    let send = brain("Send")
        .options::<Amount>()
        .step("Send", move |cx| {
            let sends = sends.clone();
            async move {
                sends.act_once(cx.path().as_str(), &format!("send {}", cx.options.amount));
                Ok(cx.options.amount)
            }
        })
        .build();
    brain("Desk")
        .state(0)
        .r#loop("Chat", move |cx| {
            let (pays, send) = (pays.clone(), send.clone());
            cx.system("Help.")
                .input("Pay Ann.")
                .tool("look", |t| {
                    t.description("Looks a customer up").read_only().execute(async |Amount { amount }: Amount, cx| {
                        cx.update(|looked| *looked += 1);
                        Ok(format!("customer {amount}"))
                    })
                })
                .tool("pay", |t| {
                    t.description("Pays")
                        .idempotent()
                        .approval(|_: &Amount, _| Some("money leaves".to_owned()))
                        .execute(move |Amount { amount }: Amount, cx| {
                            let pays = pays.clone();
                            async move {
                                pays.act_once(cx.path().as_str(), &format!("pay {amount}"));
                                Ok(format!("paid {amount}"))
                            }
                        })
                })
                .tool("send", |t| t.brain(send).approval(|_: &Amount, _| Some("goods leave".to_owned())))
                .guard_call("Calls", judge)
                .guard_result("Results", judge)
        })
        .build()
}

/// Answers as the model and as the judge.
fn says(request: &ModelRequest) -> Reply {
    if &*request.system == "Judge." {
        return Reply::text(match &*last_text(request) {
            r#"pay {"amount":500}"# => "it is too much",
            r#"look "customer 2""# => "it names a customer",
            _ => "fine",
        });
    }
    match request.messages.read().iter().count() {
        1 => Reply::calls([
            ("look", json!({ "amount": 1 })),
            ("look", json!({ "amount": 2 })),
            ("pay", json!({ "amount": 500 })),
        ]),
        5 => Reply::calls([("pay", json!({ "amount": 50 })), ("send", json!({ "amount": 50 }))]),
        _ => Reply::text("Done."),
    }
}

fn tale() -> Tale {
    let ledger = Ledger::default();
    Tale {
        definition: desk(&ledger).definition(),
        options: Value::Null,
        ledger,
        says: Arc::new(says),
        answers: Arc::new(|pending: &Pending| {
            vec![SignalKind::Approve { call: pending.call.clone(), arguments: Some(json!({ "amount": 60 })) }]
        }),
    }
}

fn results(log: &[Arc<Event>]) -> Vec<ToolResult> {
    let result = |event: &Arc<Event>| match &event.kind {
        EventKind::LoopToolResult { result, .. } => Some(result.clone()),
        _ => None,
    };
    log.iter().filter_map(result).collect()
}

#[tokio::test(start_paused = true)]
async fn judge_is_asked_about_calls_edits_and_results_in_the_iteration_of_each() {
    let tale = tale();
    let baseline = tale.undisturbed().await;
    insta::assert_snapshot!(kinds(&baseline.log), @r"
    BRAIN_START
    RUN_CLAIMED
    LOOP_START Chat
    LOOP_ITERATION Chat/0
    LOOP_MODEL_CALL Chat/0
    LOOP_MODEL_CALL Chat/0~0
    LOOP_MODEL_RESULT Chat/0~0
    LOOP_MODEL_CALL Chat/0~1
    LOOP_MODEL_RESULT Chat/0~1
    LOOP_MODEL_CALL Chat/0~2
    LOOP_MODEL_RESULT Chat/0~2
    LOOP_MODEL_RESULT Chat/0
    LOOP_TOOL_CALL Chat/0.0
    LOOP_TOOL_CALL Chat/0.1
    LOOP_TOOL_CALL Chat/0.2
    LOOP_TOOL_RESULT Chat/0.2
    LOOP_TOOL_START Chat/0.0
    LOOP_TOOL_START Chat/0.1
    LOOP_MODEL_CALL Chat/0~3
    LOOP_MODEL_CALL Chat/0~4
    LOOP_MODEL_RESULT Chat/0~3
    LOOP_MODEL_RESULT Chat/0~4
    LOOP_TOOL_RESULT Chat/0.0
    LOOP_TOOL_RESULT Chat/0.1
    LOOP_ITERATION Chat/1
    LOOP_MODEL_CALL Chat/1
    LOOP_MODEL_CALL Chat/1~0
    LOOP_MODEL_RESULT Chat/1~0
    LOOP_MODEL_CALL Chat/1~1
    LOOP_MODEL_RESULT Chat/1~1
    LOOP_MODEL_RESULT Chat/1
    LOOP_TOOL_CALL Chat/1.0
    LOOP_TOOL_CALL Chat/1.1
    LOOP_APPROVAL_REQUESTED Chat/1.0
    LOOP_APPROVAL_REQUESTED Chat/1.1
    LOOP_APPROVAL_DECIDED Chat/1.0
    LOOP_TOOL_START Chat/1.0
    LOOP_MODEL_CALL Chat/1~2
    LOOP_MODEL_RESULT Chat/1~2
    LOOP_MODEL_CALL Chat/1~3
    LOOP_MODEL_RESULT Chat/1~3
    LOOP_TOOL_RESULT Chat/1.0
    LOOP_APPROVAL_DECIDED Chat/1.1
    LOOP_MODEL_CALL Chat/1~4
    LOOP_MODEL_RESULT Chat/1~4
    LOOP_BRAIN_START Chat/1.1
    BRAIN_START Chat/1.1
    STEP_START Chat/1.1/Send
    STEP_COMPLETE Chat/1.1/Send
    BRAIN_COMPLETE Chat/1.1
    LOOP_BRAIN_COMPLETE Chat/1.1
    LOOP_TOOL_RESULT Chat/1.1
    LOOP_ITERATION Chat/2
    LOOP_MODEL_CALL Chat/2
    LOOP_MODEL_RESULT Chat/2
    LOOP_COMPLETE Chat
    BRAIN_COMPLETE
    ");
    assert_eq!(baseline.end.deeds.iter().map(|(_, deed)| &**deed).collect::<Vec<_>>(), ["pay 60", "send 60"]);
    let results = results(&baseline.log);
    assert_eq!(results[0], ToolResult::error("the guard `Calls` refused the call: it is too much"));
    assert_eq!(results[1], ToolResult::success("customer 1"));
    assert_eq!(results[2], ToolResult::error("the guard `Results` refused the result: it names a customer"));
    assert_eq!(baseline.end.state, json!(1), "the change of a refused result is dropped");
}

#[tokio::test(start_paused = true)]
async fn judged_calls_end_the_same_after_a_crash_at_every_boundary() {
    let tale = tale();
    disturbances::crash(&tale, &tale.undisturbed().await).await;
}

#[tokio::test(start_paused = true)]
async fn judged_calls_are_cancelled_at_every_boundary() {
    let tale = tale();
    disturbances::cancel(&tale, &tale.undisturbed().await).await;
}

#[tokio::test(start_paused = true)]
async fn judged_calls_pause_at_every_boundary() {
    let tale = tale();
    disturbances::pause(&tale, &tale.undisturbed().await).await;
}

#[tokio::test(start_paused = true)]
async fn judged_calls_end_the_same_in_a_fork_at_every_boundary() {
    let tale = tale();
    disturbances::fork(&tale, &tale.undisturbed().await).await;
}

/// A loop with one tool, of which a guard asks about each result.
fn noting(idempotent: bool) -> Brain<(), u32> {
    brain("Notes")
        .state(0)
        .r#loop("Chat", move |cx| {
            cx.system("Help.")
                .input("Note it.")
                .tool("note", |t| {
                    let tool = t.description("Notes");
                    let tool = if idempotent { tool.idempotent() } else { tool };
                    tool.execute(async |_: NoArgs, _| Ok("noted"))
                })
                .guard_result("Judge", judge)
        })
        .build()
}

/// Answers as the model and as a judge, which counts what it is asked.
fn counting(asked: &Arc<AtomicU32>) -> ScriptedModel {
    let asked = Arc::clone(asked);
    ScriptedModel::from_fn(move |request| match (&*request.system, request.messages.read().iter().count()) {
        ("Judge.", _) => {
            asked.fetch_add(1, Ordering::SeqCst);
            Reply::text("fine")
        }
        (_, 1) => Reply::call("note", json!({})),
        _ => Reply::text("Done."),
    })
}

#[tokio::test(start_paused = true)]
async fn recorded_verdict_is_not_asked_for_again_after_a_crash() {
    for (idempotent, result) in
        [(true, ToolResult::success("noted")), (false, ToolResult::Interrupted { reason: String::new() })]
    {
        let asked = Arc::new(AtomicU32::new(0));
        let brain = noting(idempotent);
        let runner = Runner::new(counting(&asked)).store(MemoryStore::new()).brain(brain.clone());
        let run = runner.start(brain, ()).await.unwrap();
        run.result().await.unwrap();
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        let log = run.events(Seq(0)).await.unwrap();
        let verdict =
            log.iter().find(|event| event.path.as_str() == "Chat/0~0" && event.kind.name() == "LOOP_MODEL_RESULT");

        let fork = runner.client().fork(run.id(), verdict.unwrap().seq, Fork::default()).await.unwrap();
        let forked = runner.resume(&fork).await.unwrap();
        forked.settled().await;

        assert_eq!(asked.load(Ordering::SeqCst), 1, "the verdict is in the log");
        let found = results(&forked.events(Seq(0)).await.unwrap()).remove(0);
        assert_eq!(std::mem::discriminant(&found), std::mem::discriminant(&result), "{found:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn cost_of_a_judge_of_results_is_the_loops() {
    let used = Usage { input: 60, ..Usage::default() };
    let model = ScriptedModel::from_fn(move |request| {
        let reply = match (&*request.system, request.messages.read().iter().count()) {
            ("Judge.", _) => Reply::text("fine"),
            (_, 1) => Reply::call("note", json!({})),
            _ => Reply::text("Done."),
        };
        reply.usage(used)
    });
    let run = Test::new(model).start(noting(false), ()).await;
    run.result().await.unwrap();
    let log = run.events(Seq(0)).await.unwrap();
    let counted = log.iter().find_map(|event| match &event.kind {
        EventKind::LoopComplete { usage, .. } => Some(usage.input),
        _ => None,
    });
    assert_eq!(counted, Some(180));
    let timeline = Timeline::of(log.iter().map(|event| &**event));
    let asked = timeline.nodes().filter_map(|node| match &node.kind {
        NodeKind::Answer(answer) if answer.question.is_some() => {
            Some((node.path.as_str(), timeline.node(node.parent?)?.path.as_str()))
        }
        _ => None,
    });
    assert_eq!(asked.collect::<Vec<_>>(), [("Chat/0~0", "Chat/0")]);
}

#[tokio::test(start_paused = true)]
async fn loop_stops_with_the_code_guard_when_the_budget_of_its_judge_is_used_up() {
    let used = Usage { input: 60, ..Usage::default() };
    let model = ScriptedModel::from_fn(move |_| Reply::call("note", json!({})).usage(used));
    let brain = brain("Notes").state(0).budget(|budget| budget.max_tokens(50)).r#loop("Chat", |cx| {
        cx.system("Help.").tool("note", |t| t.execute(async |_: NoArgs, _| Ok("noted"))).guard_result("Judge", judge)
    });
    let run = Test::new(model).start(brain.build(), ()).await;
    let Settled::Failed(failure) = run.settled().await else { panic!("it has not failed") };
    assert_eq!(failure.code, EndReason::Guard);
    assert!(failure.message.contains("used up its budget of tokens"), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn loop_stops_with_the_code_guard_when_the_judge_of_a_call_cannot_answer() {
    let model = ScriptedModel::from_fn(|request| match &*request.system {
        "Judge." => Reply::error(ModelError::new(ModelErrorKind::Auth, "the key has expired")),
        _ => Reply::call("note", json!({})),
    });
    let brain = brain("Notes").state(0).r#loop("Chat", |cx| {
        cx.system("Help.").tool("note", |t| t.execute(async |_: NoArgs, _| Ok("noted"))).guard_call("Judge", judge)
    });
    let run = Test::new(model).start(brain.build(), ()).await;
    let Settled::Failed(failure) = run.settled().await else { panic!("it has not failed") };
    assert_eq!(failure.code, EndReason::Guard);
    assert!(failure.message.contains("the guard `Judge` stopped the loop `Chat`: its call of `note`"), "{failure}");
    assert!(failure.message.contains("the key has expired"), "{failure}");
    let log = run.events(Seq(0)).await.unwrap();
    let calls = log.iter().find_map(|event| match &event.kind {
        EventKind::LoopAnswerRefused { calls, .. } => Some(calls.len()),
        _ => None,
    });
    assert_eq!(calls, Some(1), "the log has the call that did not run");
}

/// Two calls of one answer: a slow one, and one that waits for an approval.
fn stopping(stops_results: bool) -> Brain<(), u32> {
    brain("Notes")
        .state(0)
        .r#loop("Chat", move |cx| {
            let stop = move |at_result: bool, tool: &str, value: &Value| match tool == "note"
                && at_result == stops_results
                && *value != json!({ "amount": 1 })
            {
                true => Verdict::Stop("not here".to_owned()),
                false => Verdict::Pass,
            };
            cx.system("Help.")
                .tool("note", |t| {
                    t.approval(|_: &Amount, _| Some("a note".to_owned())).execute(async |_: Amount, cx| {
                        cx.update(|noted| *noted += 1);
                        Ok("noted")
                    })
                })
                .tool("slow", |t| {
                    t.execute(async |_: NoArgs, _| {
                        std::future::pending::<()>().await;
                        Ok("slow")
                    })
                })
                .guard_call("Notes", move |_, tool, arguments| std::future::ready(stop(false, &tool, &arguments)))
                .guard_result("Notes", move |_, tool, result| std::future::ready(stop(true, &tool, &result)))
        })
        .build()
}

#[tokio::test(start_paused = true)]
async fn guard_of_an_edit_or_a_result_that_stops_ends_the_other_calls_and_fails_the_loop() {
    for stops_results in [false, true] {
        let calls = Reply::calls([("slow", json!({})), ("note", json!({ "amount": 1 }))]);
        // In lockstep the slow call would hold the other one's outcome back.
        let runner = Runner::new(ScriptedModel::new([calls])).store(MemoryStore::new());
        let run = runner.start(stopping(stops_results), ()).await.unwrap();
        let call = Path::parse("Chat/0.1").unwrap();
        while run.state().call(&call).is_none() {
            tokio::task::yield_now().await;
        }
        run.signal(SignalKind::Approve { call, arguments: Some(json!({ "amount": 2 })) }, "ann").await.unwrap();
        let Settled::Failed(failure) = run.settled().await else { panic!("it has not failed") };
        let at = if stops_results { "result" } else { "call" };
        let why = format!("the guard `Notes` stopped the loop at the {at}: not here");
        assert_eq!(failure.code, EndReason::Guard);
        assert!(failure.message.contains(&why), "{failure}");
        let log = run.events(Seq(0)).await.unwrap();
        let results = results(&log);
        assert_eq!(results[0], ToolResult::error(&*why));
        assert!(matches!(results[1], ToolResult::Interrupted { .. }), "{results:?}");
        assert!(log.iter().any(|event| matches!(
            &event.kind,
            EventKind::LoopComplete { outcome: LoopOutcome::Failed { code: EndReason::Guard, .. }, .. }
        )));
    }
}

#[tokio::test(start_paused = true)]
async fn guard_replaces_the_arguments_of_a_call_before_a_person_is_asked() {
    let brain = brain("Notes").state(0).r#loop("Chat", |cx| {
        cx.system("Help.")
            .tool("note", |t| {
                t.approval(|_: &Amount, _| Some("a note".to_owned())).execute(async |Amount { amount }, cx| {
                    cx.update(move |noted| *noted += amount);
                    Ok(amount)
                })
            })
            .guard_call("At most 100", async |_, _, arguments: Arc<Value>| match arguments["amount"].as_u64() {
                Some(666) => Verdict::Replace(json!({ "amount": "none" })),
                Some(101..) => Verdict::Replace(json!({ "amount": 100 })),
                _ => Verdict::Pass,
            })
    });
    let model = ScriptedModel::new([
        Reply::calls([("note", json!({ "amount": 666 })), ("note", json!({ "amount": 500 }))]),
        Reply::text("Done."),
    ]);
    let run = Test::new(model).start(brain.build(), ()).await;
    let Settled::Waiting(pending) = run.settled().await else { panic!("it does not wait") };
    assert_eq!(*pending[0].arguments, json!({ "amount": 100 }));
    let call = Path::parse("Chat/0.1").unwrap();
    run.approve(&call, "ann").await.unwrap();
    assert_eq!(run.result().await.unwrap(), 100);
    let log = run.events(Seq(0)).await.unwrap();
    let ToolResult::Error { message } = &results(&log)[0] else { panic!("it does not fit") };
    assert!(
        message.starts_with("the guard `At most 100` replaced the arguments, and the arguments do not match"),
        "{message}"
    );
    let replaced = log.iter().filter_map(|event| match &event.kind {
        EventKind::LoopGuardReplaced { replaced, .. } => Some((event.path.as_str(), replaced.clone())),
        _ => None,
    });
    assert_eq!(
        replaced.collect::<Vec<_>>(),
        [("Chat/0.0", json!({ "amount": 666 })), ("Chat/0.1", json!({ "amount": 500 }))]
    );
}

#[tokio::test(start_paused = true)]
async fn arguments_that_a_person_has_edited_are_refused_and_not_replaced() {
    let brain = brain("Notes").state(0).r#loop("Chat", |cx| {
        cx.system("Help.")
            .tool("note", |t| {
                t.approval(|_: &Amount, _| Some("a note".to_owned())).execute(async |Amount { amount }, _| Ok(amount))
            })
            .guard_call("At most 100", async |_, _, arguments: Arc<Value>| match arguments["amount"].as_u64() {
                Some(101..) => Verdict::Replace(json!({ "amount": 100 })),
                _ => Verdict::Pass,
            })
    });
    let model = ScriptedModel::new([Reply::call("note", json!({ "amount": 1 })), Reply::text("Done.")]);
    let run = Test::new(model).start(brain.build(), ()).await;
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    let call = Path::parse("Chat/0.0").unwrap();
    run.signal(SignalKind::Approve { call, arguments: Some(json!({ "amount": 500 })) }, "ann").await.unwrap();
    run.result().await.unwrap();
    let message = "the guard `At most 100` cannot replace arguments that a person has edited; refuse the call instead";
    assert_eq!(results(&run.events(Seq(0)).await.unwrap())[0], ToolResult::error(message));
}
