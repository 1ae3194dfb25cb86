//! Random stories: the promises hold for calls, gates, decisions, messages and pauses in any order.
//!
//! `support::Play::story` checks the properties of every log; all stories of this binary go through it.

use std::sync::{Arc, Mutex};

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Actor, BatchPolicy, ModelRequest, SignalKind};
use positronic_core::record::{Pending, PendingKind};
use positronic_core::runner::{RunHandle, Settled};
use proptest::prelude::{Strategy, any};
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::asks::{Ask, batches, policies};
use crate::support::checks::check_requests;
use crate::support::{Board, Job, Journal, Play, Shop, ShopLoop, done, tools, work, worker};

/// A story's script: the model's answers and the people's signals.
#[derive(Debug, Clone)]
struct Script {
    policy: BatchPolicy,
    lockstep: bool,
    parallel: u32,
    iterations: Vec<Vec<Ask>>,
    inner: Vec<Ask>,
    deeds: Vec<(u8, u8)>,
}

fn call(ask: &Ask, id: &str) -> (&'static str, Value) {
    match ask.tool {
        "safe!" => ("safe", json!({"id": 7})),
        "safe?" => ("safe", json!("{\"id\"")),
        "inner" => ("inner", json!({})),
        tool => (tool, json!({"id": id, "takes": ask.takes, "fails": ask.fails})),
    }
}

const TOOLS: &[&str] = &["safe", "safe", "read", "alone", "gated", "gated", "ask", "looked", "safe!", "safe?", "nope"];

fn scripts() -> impl Strategy<Value = Script> {
    let (iterations, inner) = batches(TOOLS, 6);
    let deeds = proptest::collection::vec((any::<u8>(), any::<u8>()), 12);
    (policies(), any::<bool>(), 1..5_u32, iterations, inner, deeds).prop_map(
        |(policy, lockstep, parallel, iterations, inner, deeds)| Script {
            policy,
            lockstep,
            parallel,
            iterations,
            inner,
            deeds,
        },
    )
}

fn bench(config: ShopLoop, script: &Script) -> ShopLoop {
    tools(config)
        .policy(script.policy)
        .parallel(script.parallel)
        .tools([worker("looked", |t| t.read_only().requires_approval("look"))])
        .tool("ask", |t| t.wait(|job: &Job, _: &Shop| [webhook::<NoArgs>("go").on(&job.id)]).execute(work))
}

fn story(script: &Script, journal: &Journal) -> Brain<(), Board> {
    let (script, inner) = (script.clone(), script.clone());
    let deep = move || {
        let inner = inner.clone();
        brain("Inner")
            .services::<Journal>()
            .state(Board::default())
            .r#loop("Deep", move |cx| bench(cx.system("Inside."), &inner))
    };
    brain("Story")
        .services::<Journal>()
        .state(Board::default())
        .r#loop("Work", move |cx| {
            bench(cx.system(format!("{} done.", cx.state.done.len())), &script)
                .tool("inner", |t| t.brain(deep()).map_output(|board, inner| board.done.extend(inner.done)))
                .tool("finish", |t| t.exit().execute(work))
                .exit_on(["finish"])
                .max_iterations(6)
        })
        .bind(journal.clone())
}

/// Answers by the script; afterwards only with text.
fn model(script: &Script, sent: Arc<Mutex<Vec<ModelRequest>>>) -> ScriptedModel {
    let script = script.clone();
    ScriptedModel::from_fn(move |request| {
        sent.lock().unwrap().push(request.clone());
        let place = request.path.as_str();
        let batch = match place.strip_prefix("Work/").and_then(|iteration| iteration.parse::<usize>().ok()) {
            Some(iteration) => script.iterations.get(iteration),
            None => Some(&script.inner).filter(|_| place.ends_with("/Deep/0")),
        };
        match batch {
            Some(batch) if !batch.is_empty() => {
                // Identical calls occur, so that their denials occur too.
                let id = |index: usize| format!("{place}.{}", index / 2);
                Reply::calls(batch.iter().enumerate().map(|(index, ask)| call(ask, &id(index))))
            }
            _ => done(),
        }
    })
}

async fn act(run: &RunHandle<Board>, pending: &[Pending], (what, whom): (u8, u8)) {
    let chosen = &pending[usize::from(whom) % pending.len()];
    if what % 11 == 0 {
        run.message("Still there?", "ann").await.unwrap();
    }
    if what % 13 == 0 {
        run.pause().await.unwrap();
    }
    match &chosen.kind {
        PendingKind::Approval { .. } => {
            let call = chosen.call.clone();
            let kind = match what % 3 {
                0 => SignalKind::Approve { call, arguments: None },
                1 => SignalKind::Approve { call, arguments: Some(json!({"id": "edited"})) },
                _ => SignalKind::Reject { call, reason: None },
            };
            run.signal(kind, Actor::default()).await.unwrap();
        }
        PendingKind::Budget(_) => panic!("nothing is limited: {chosen:?}"),
        PendingKind::Answer { waits } => {
            run.webhook(&waits[0].webhook, &waits[0].identifier, json!({})).await.unwrap();
        }
    }
    if what % 13 == 0 {
        run.resume().await.unwrap();
    }
}

async fn plays(script: Script) {
    let sent = Arc::new(Mutex::new(Vec::new()));
    let play = Play::of(model(&script, Arc::clone(&sent)), script.lockstep);
    let run = play.start(&story(&script, &Journal::default()), ()).await;
    let mut deeds = script.deeds.iter().copied().cycle();
    for _ in 0..200 {
        match run.settled().await {
            Settled::Waiting(pending) => {
                play.story(&run).await;
                act(&run, &pending, deeds.next().unwrap()).await;
            }
            Settled::Completed(_) => {
                let story = play.story(&run).await;
                check_requests(story.log(), &sent.lock().unwrap());
                return;
            }
            other => panic!("{other:?}"),
        }
    }
    panic!("the story does not end:\n{}", play.story(&run).await.events());
}

#[test]
fn promises_hold_for_any_events_in_any_order() {
    let config = Config { cases: 32, failure_persistence: None, ..Config::default() };
    TestRunner::new(config)
        .run(&scripts(), |script| {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
            runtime.block_on(plays(script));
            Ok(())
        })
        .unwrap();
}
