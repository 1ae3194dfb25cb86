//! Decisions of people: promises 2, 7, 8, 9 and 18.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use positronic_core::machine::Refusal;
use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_core::record::{BatchPolicy, DenialCause, EventKind, Path, SignalKind, ToolResult};
use positronic_core::runner::Settled;
use serde_json::{Value, json};

use crate::bench::{
    Bench, approve, behind, by, decisions, edit, in_two_iterations, named, refusal, reject, result_of, run_id, signal,
};
use crate::stores::{Fresh, on_both_stores};
use crate::support::boundaries::Ledger;
use crate::support::dialogues::read;
use crate::support::{Board, Job, Journal, Shop, batch, done, path, settled, tools, waits, work, workshop};

on_both_stores! {
    promise_02_several_people_decide_in_any_order
    promise_07_identical_call_is_denied_without_asking_in_every_process
    promise_08_edited_arguments_run_in_every_process
    promise_09_failed_approved_tool_harms_no_sibling_and_the_run_continues_in_every_process
}

/// A loop with its own gated calls, and one in a nested brain.
fn in_depth(journal: &Journal) -> Brain<(), Board> {
    let inner = || {
        brain("Inner").services::<Journal>().state(Board::default()).r#loop("Deep", |cx| tools(cx.system("Inside.")))
    };
    workshop(journal, move |config| tools(config).brain("inner", inner()))
}

fn says_in_depth(place: &str) -> Reply {
    match place {
        "Work/0" => Reply::calls([
            ("gated", json!({"id": "a"})),
            ("gated", json!({"id": "b"})),
            ("inner", json!({})),
            ("gated", json!({"id": "c"})),
        ]),
        "Work/0.2/Deep/0" => batch([("gated", "d")]),
        _ => done(),
    }
}

/// Returns all permutations.
fn orders<T: Clone>(things: &[T]) -> Vec<Vec<T>> {
    let Some((first, rest)) = things.split_first() else { return vec![Vec::new()] };
    let mut all = Vec::new();
    for order in orders(rest) {
        for place in 0..=order.len() {
            let mut order = order.clone();
            order.insert(place, first.clone());
            all.push(order);
        }
    }
    all
}

async fn promise_02_several_people_decide_in_any_order<S: Fresh>() {
    // The call after two undecided ones begins after both decisions.
    let calls = ["Work/0.0", "Work/0.1", "Work/0.3"];
    for (index, order) in orders(&calls).into_iter().enumerate() {
        let (bench, journal) = (Bench::<S>::fresh(), Journal::default());
        let process = bench.process("work", says_in_depth);
        let run = bench.start(&process, &in_depth(&journal)).await;
        assert_eq!(waits(&run).await, calls);
        for (call, who) in order.iter().zip(["ann", "bob", "cem"]) {
            let kind = if *call == "Work/0.1" { reject(call, "no") } else { approve(call) };
            bench.client(who).signal(&run_id(), kind, by(who)).await.unwrap();
        }
        assert_eq!(bench.waits(&run).await, ["Work/0.2/Deep/0.0"]);
        bench.client("dan").approve(&run_id(), &path("Work/0.2/Deep/0.0"), by("dan")).await.unwrap();

        assert!(matches!(bench.settled(&run).await, Settled::Completed(_)), "order {index}");
        let log = bench.checked().await;
        let decided: Vec<_> = decisions(&log).into_iter().map(|(call, who)| (call.to_string(), who.unwrap())).collect();
        let expected = order.iter().zip(["ann", "bob", "cem"]).map(|(call, who)| ((*call).to_owned(), who.to_owned()));
        assert_eq!(decided[..3], expected.collect::<Vec<_>>());
        let mut did = journal.take();
        did.sort();
        assert_eq!(did, ["a", "c", "d"]);
        let results: Vec<_> =
            bench.last_results().iter().map(|text| text.chars().take(6).collect::<String>()).collect();
        assert_eq!(results, ["a done", "Not ru", "{\"done", "c done"], "the model reads them in call order");
    }
}

/// Draws pseudo-random numbers that are the same in every run of a test.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % n.max(1)
    }
}

#[tokio::test(start_paused = true)]
async fn promise_02_batches_of_real_calls_are_decided_in_random_order_one_by_one_or_together() {
    for (seed, dialogue) in (0..).zip(read(include_str!("../data/bfcl/parallel.jsonl"))) {
        let (bench, ledger, mut dice) = (Bench::new(), Ledger::default(), Dice(seed));
        let made = &dialogue.turns[0].calls;
        let gated: Vec<bool> = made.iter().map(|_| dice.below(3) > 0).collect();
        let (gates, opening) = (gated.clone(), dialogue.turns[0].user.clone());
        let tools: Vec<Tool<(), (), Ledger>> = dialogue
            .tools
            .iter()
            .map(|tool| {
                let gates = gates.clone();
                Tool::new(&tool.name, move |t| {
                    t.approval(move |_: &Value, cx: &ToolContext<(), (), Ledger>| {
                        gates[index_of(cx.path())].then(|| "it is gated".to_owned())
                    })
                    .execute_json(
                        tool.parameters.clone(),
                        |arguments: Value, cx: ToolContext<(), (), Ledger>| {
                            cx.services.act(cx.path().as_str(), &arguments.to_string());
                            std::future::ready(Ok(cx.path().to_string()))
                        },
                    )
                })
            })
            .collect();
        let assistant = brain(&dialogue.id)
            .services::<Ledger>()
            .r#loop("Chat", move |cx| cx.system("Help.").input(&opening).tools(tools.clone()))
            .bind(ledger.clone());
        let asked = Reply::calls(made.iter().map(|call| (&call.name, call.arguments.clone())));
        let process = bench.process("work", move |place| if place == "Chat/0" { asked.clone() } else { done() });
        let run = bench.start(&process, &assistant).await;
        let client = bench.client("people");
        let mut verdicts = std::collections::BTreeMap::new();
        while let Settled::Waiting(mut pending) = bench.settled(&run).await {
            let mut signals = Vec::new();
            for n in 0..=dice.below(pending.len()) {
                let chosen = pending.remove(dice.below(pending.len()));
                let call = chosen.call.clone();
                let kind = match dice.below(3) {
                    0 => SignalKind::Reject { call, reason: None },
                    1 => SignalKind::Approve { call, arguments: Some(Value::clone(&chosen.arguments)) },
                    _ => SignalKind::Approve { call, arguments: None },
                };
                let known = verdicts.insert(chosen.call, !matches!(kind, SignalKind::Reject { .. }));
                assert_eq!(known, None, "{}: no question is repeated: {verdicts:?}", dialogue.id);
                signals.push(signal(&format!("{} {n}", verdicts.len()), kind));
            }
            client.send_all(&run_id(), &signals).await.unwrap();
        }

        let log = bench.checked().await;
        assert!(run.state().has_ended(), "{}: {:?}", dialogue.id, settled(&run).await);
        assert_eq!(verdicts.len(), gated.iter().filter(|gated| **gated).count(), "{}", dialogue.id);
        let mut ran: Vec<_> = ledger.deeds().into_iter().map(|(call, _)| call).collect();
        ran.sort_by_key(|call| index_of(&path(call)));
        let calls = (0..made.len()).map(|index| path(&format!("Chat/0.{index}")));
        let expected: Vec<_> =
            calls.filter(|call| verdicts.get(call).copied().unwrap_or(true)).map(|call| call.to_string()).collect();
        assert_eq!(ran, expected, "{}: approved calls ran once", dialogue.id);
        assert_eq!(named(&log, "LOOP_TOOL_RESULT").len(), made.len());
        for (text, index) in bench.last_results().iter().zip(0..) {
            let call = format!("Chat/0.{index}");
            assert!(*text == call || text.starts_with("Not run"), "{call} keeps its position: {text}");
        }
    }
}

/// Returns the index of a call in its batch.
fn index_of(call: &Path) -> usize {
    call.as_str().rsplit_once('.').unwrap().1.parse().unwrap()
}

async fn promise_07_identical_call_is_denied_without_asking_in_every_process<S: Fresh>() {
    let (bench, journal) = (Bench::<S>::fresh(), Journal::default());
    let says = |place: &str| match place {
        "Work/0" => batch([("gated", "a"), ("gated", "b")]),
        "Work/1" => batch([("gated", "a"), ("gated", "other")]),
        _ => done(),
    };
    let shop = workshop(&journal, tools);
    let process = bench.process("first", says);
    let run = bench.start(&process, &shop).await;
    waits(&run).await;
    bench.client("people").reject(&run_id(), &path("Work/0.0"), "too risky", by("ann")).await.unwrap();
    let (cause, reason) = (Some(DenialCause::Rejected), Some("too risky".to_owned()));
    let denied = ToolResult::Denied { cause, reason, by: Some("ann".to_owned()) };
    assert_eq!(bench.waits(&run).await, ["Work/0.1"]);
    assert_eq!(result_of(&bench.log().await, "Work/0.0"), denied);
    // Another process sends the request again.
    let cut = bench.cut(bench.log().await.len()).await;
    let second = cut.process("second", says).brain(shop);
    let run = second.resume(&run_id()).await.unwrap();

    run.approve(&path("Work/0.1"), "bob").await.unwrap();

    assert_eq!(waits(&run).await, ["Work/1.1"], "the same call needs no second decision");
    assert!(matches!(result_of(&cut.log().await, "Work/1.0"), ToolResult::Denied { .. }));
    assert_eq!(cut.last_results(), ["Not run: a person rejected this call: too risky", "b done"]);
    run.approve(&path("Work/1.1"), "bob").await.unwrap();
    assert!(matches!(settled(&run).await, Settled::Completed(_)));
    assert_eq!(journal.take(), ["b", "other"]);
    cut.checked().await;
}

#[tokio::test(start_paused = true)]
async fn promise_07_identical_call_is_denied_even_if_its_condition_would_now_pass_it() {
    let (bench, journal) = (Bench::new(), Journal::default());
    let shop = workshop(&journal, |config| {
        config.tool("gated", |t| {
            t.approval(|_: &Job, cx: &Shop| (cx.services.count() == 1).then(|| "sure?".to_owned())).execute(work)
        })
    });
    let process = bench.process("work", |place| match place {
        "Work/0" | "Work/1" => batch([("gated", "a")]),
        "Work/2" => batch([("gated", "b")]),
        _ => done(),
    });
    let run = bench.start(&process, &shop).await;
    assert_eq!(waits(&run).await, ["Work/0.0"]);

    run.reject(&path("Work/0.0"), "no", "ann").await.unwrap();

    assert!(matches!(settled(&run).await, Settled::Completed(_)));
    assert!(matches!(result_of(&bench.checked().await, "Work/1.0"), ToolResult::Denied { .. }));
    assert_eq!(journal.take(), ["b"]);
}

async fn promise_08_edited_arguments_run_in_every_process<S: Fresh>() {
    let (bench, journal) = (Bench::<S>::fresh(), Journal::default());
    let says = in_two_iterations(batch([("gated", "a")]));
    let shop = workshop(&journal, tools);
    let process = bench.process("first", |_| batch([("gated", "a")]));
    let run = bench.start(&process, &shop).await;
    waits(&run).await;
    let undecided = bench.log().await.len();
    // The process dies before it reads the decision.
    let cut = bench.cut(undecided).await;
    let client = cut.client("people");
    let misfit = client.signal(&run_id(), edit("Work/0.0", json!({"id": null})), by("ann")).await.unwrap_err();
    assert!(matches!(refusal(misfit), Refusal::Misfit { .. }));
    client.signal(&run_id(), edit("Work/0.0", json!({"takes": 0, "id": "b"})), by("ann")).await.unwrap();

    let run = cut.process("second", says).brain(shop).resume(&run_id()).await.unwrap();

    assert!(matches!(settled(&run).await, Settled::Completed(_)));
    assert_eq!(journal.take(), ["b"]);
    let log = cut.checked().await;
    let proposed = log.iter().find_map(|event| match &event.kind {
        EventKind::LoopToolCall(call) => Some(Arc::clone(&call.arguments)),
        _ => None,
    });
    assert_eq!(*proposed.unwrap(), json!({"id": "a"}), "the proposal stays as it was");
    let transcript = cut.transcript().await;
    assert!(transcript.contains(r#"gated({"id":"a"}) [approved by ann: "#), "{transcript}");
    assert!(transcript.contains(r#"] edited to {"id":"b","takes":0} -> b done"#), "{transcript}");
    assert_eq!(
        cut.last_results(),
        ["A person changed the arguments before the call ran: {\"id\":\"b\",\"takes\":0}\n\nb done"]
    );
}

async fn promise_09_failed_approved_tool_harms_no_sibling_and_the_run_continues_in_every_process<S: Fresh>() {
    let (bench, journal) = (Bench::<S>::fresh(), Journal::default());
    let says = |place: &str| match place {
        "Work/0" => Reply::calls([
            ("safe", json!({"id": "a"})),
            ("gated", json!({"id": "b", "fails": true})),
            ("panics", json!({"id": "c"})),
            ("gated", json!({"id": "d"})),
        ]),
        _ => done(),
    };
    let shop = workshop(&journal, |config| {
        tools(config).tool("panics", |t| {
            t.approval(|_: &Job, _| Some("sure?".to_owned()))
                .execute(|job: Job, _| async move { if job.id == "c" { panic!("oh") } else { Ok(()) } })
        })
    });
    let process = bench.process("first", says);
    let run = bench.start(&process, &shop).await;
    for call in waits(&run).await.iter().take(2) {
        run.approve(&path(call), "ann").await.unwrap();
    }
    assert_eq!(waits(&run).await, ["Work/0.3"]);
    let cut = bench.cut(bench.log().await.len()).await;
    let second = cut.process("second", says).brain(shop);
    let run = second.resume(&run_id()).await.unwrap();

    run.approve(&path("Work/0.3"), "ann").await.unwrap();

    assert!(matches!(settled(&run).await, Settled::Completed(_)));
    assert_eq!(cut.last_results(), ["a done", "Error: b broke", "Error: the code panicked: oh", "d done"]);
    assert_eq!(journal.take(), ["a", "b", "d"], "each ran once");
    assert_eq!(run.document(), json!({"done": ["a", "d"]}));
    cut.checked().await;
}

#[tokio::test(start_paused = true)]
async fn promise_18_gated_call_never_runs_unapproved_whatever_later_code_says() {
    for policy in [BatchPolicy::Gated, BatchPolicy::Strict, BatchPolicy::Eager] {
        let journal = Journal::default();
        let asked = Arc::new(AtomicU32::new(0));
        let made = |needed: bool| {
            let asked = Arc::clone(&asked);
            workshop(&journal, move |config| {
                let asked = Arc::clone(&asked);
                config.policy(policy).tool("gated", move |t| {
                    t.approval(move |_: &Job, _| {
                        asked.fetch_add(1, Ordering::SeqCst);
                        needed.then(|| "sure?".to_owned())
                    })
                    .execute(work)
                })
            })
        };
        let bench = Bench::new();
        let says = |place: &str| if place == "Work/0" { batch([("gated", "a"), ("gated", "b")]) } else { done() };
        let process = bench.process("first", says);
        let run = bench.start(&process, &made(true)).await;
        waits(&run).await;
        // At every moment of the batch, another process continues with code that has no approvals.
        let log = bench.log().await;
        let asked_then = asked.load(Ordering::SeqCst);
        for until in behind(&log, "Work/0.1", "LOOP_TOOL_CALL")..=log.len() {
            let cut = bench.cut(until).await;
            let second = cut.process("second", says).brain(made(false));
            let run = second.resume(&run_id()).await.unwrap();
            while let Settled::Waiting(pending) = settled(&run).await {
                assert_eq!(journal.take(), Vec::<String>::new(), "{policy:?} after {until}");
                run.reject(&pending[0].call, "no", "ann").await.unwrap();
            }
            assert_eq!(journal.take(), Vec::<String>::new(), "{policy:?} after {until}: rejected calls never run");
            assert_eq!(asked.load(Ordering::SeqCst), asked_then, "the log contains the decision");
            cut.checked().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn promise_18_gated_tool_is_unreachable_without_approval_at_any_depth() {
    let (bench, journal) = (Bench::new(), Journal::default());
    let inner = || {
        brain("Inner").services::<Journal>().state(Board::default()).r#loop("Deep", |cx| tools(cx.system("Inside.")))
    };
    let outer = workshop(&journal, move |config| {
        tools(config).tool("inner", |t| t.brain(inner()).requires_approval("it is a brain"))
    });
    let process = bench.process("work", |place| match place {
        "Work/0" => Reply::calls([("inner", json!({})), ("read", json!({"id": "r"}))]),
        "Work/0.0/Deep/0" => batch([("gated", "a")]),
        _ => done(),
    });
    let run = bench.start(&process, &outer).await;

    assert_eq!(waits(&run).await, ["Work/0.0"]);
    assert_eq!((journal.take(), bench.sent().len()), (vec!["r".to_owned()], 1), "the brain has not begun");
    run.approve(&path("Work/0.0"), "ann").await.unwrap();
    assert_eq!(waits(&run).await, ["Work/0.0/Deep/0.0"], "approving a brain does not approve its calls");
    assert_eq!(journal.take(), Vec::<String>::new());
    run.approve(&path("Work/0.0/Deep/0.0"), "ann").await.unwrap();
    assert!(matches!(settled(&run).await, Settled::Completed(_)));
    assert_eq!(journal.take(), ["a"]);
}
