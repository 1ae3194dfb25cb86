//! The scripts of random stories, and the brain and the model that play them.

use std::time::Duration;

use positronic_core::dsl::{Loop, ToolBuilder};
use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_core::record::{BatchPolicy, ModelRequest, Usage};
use proptest::prelude::{Strategy, any};
use serde_json::json;

use crate::asks::{Ask, batches, policies};
use crate::support::boundaries::Ledger;
use crate::support::{Board, Job, done};

/// A story's script: the model's answers, the people's signals, and the crashes.
#[derive(Debug, Clone)]
pub(super) struct Script {
    pub(super) policy: BatchPolicy,
    pub(super) lockstep: bool,
    pub(super) linger: bool,
    pub(super) iterations: Vec<Vec<Ask>>,
    pub(super) inner: Vec<Ask>,
    /// Number of appends in a life, and whether the last one is written.
    pub(super) lives: Vec<(u64, bool)>,
    pub(super) deeds: Vec<(u8, u8, u8)>,
    pub(super) limits: Limited,
}

/// The limits at which a person is asked for more.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limited {
    /// The tokens of the outer loop; each answer uses ten.
    pub(super) outer: Option<u64>,
    /// The tokens of the inner loop.
    pub(super) inner: Option<u64>,
    /// The iterations of the whole brain.
    pub(super) iterations: Option<u64>,
    /// The tokens of the whole brain.
    pub(super) whole: Option<u64>,
}

const TOOLS: &[&str] = &["safe", "same", "read", "alone", "gated", "gated", "looked", "ask", "nope"];

pub(super) fn scripts() -> impl Strategy<Value = Script> {
    let (iterations, inner) = batches(TOOLS, 5);
    let lives = proptest::collection::vec((2..20_u64, any::<bool>()), 0..6);
    let deeds = proptest::collection::vec(any::<(u8, u8, u8)>(), 24);
    let limit = || proptest::option::weighted(0.3, 5..60_u64);
    let limits = (limit(), limit(), proptest::option::weighted(0.2, 1..6_u64), limit())
        .prop_map(|(outer, inner, iterations, whole)| Limited { outer, inner, iterations, whole });
    (policies(), any::<bool>(), any::<bool>(), iterations, inner, lives, deeds, limits).prop_map(
        |(policy, lockstep, linger, iterations, inner, lives, deeds, limits)| Script {
            limits,
            policy,
            lockstep,
            linger,
            iterations,
            inner,
            lives,
            deeds,
        },
    )
}

type Deeds = ToolContext<(), Board, Ledger>;
type DeedBuilder = ToolBuilder<(), Board, Ledger>;

async fn act(job: Job, cx: Deeds) -> Result<ToolReply<Board>> {
    cx.services.act(cx.path().as_str(), cx.idempotency_key());
    tokio::time::sleep(Duration::from_millis(job.takes)).await;
    if job.fails {
        return Err(Error::new("it broke"));
    }
    let place = cx.path().to_string();
    Ok(cx.result(job.id).update(move |board| board.done.push(place)))
}

fn deed(name: &str, flags: impl FnOnce(DeedBuilder) -> DeedBuilder) -> Tool<(), Board, Ledger> {
    Tool::new(name, |t| flags(t).execute(act))
}

fn bench(config: Loop<(), Board, Ledger>, policy: BatchPolicy) -> Loop<(), Board, Ledger> {
    config
        .policy(policy)
        .parallel(3)
        .tools([
            deed("safe", |t| t),
            deed("same", DeedBuilder::idempotent),
            deed("read", DeedBuilder::read_only),
            deed("alone", DeedBuilder::sequential),
            deed("gated", |t| t.requires_approval("it is dangerous")),
            deed("looked", |t| t.read_only().requires_approval("look")),
        ])
        .tool("ask", |t| t.wait(|job: &Job, _: &Deeds| [webhook::<NoArgs>("go").on(&job.id)]).execute(act))
}

pub(super) fn story(script: &Script, ledger: &Ledger) -> Brain<(), Board> {
    let (policy, limits) = (script.policy, script.limits);
    let limited = |config: Loop<(), Board, Ledger>, tokens: Option<u64>| match tokens {
        Some(tokens) => config.max_tokens(tokens).ask_for_more(),
        None => config,
    };
    let inner = move || {
        brain("Inner")
            .services::<Ledger>()
            .state(Board::default())
            .r#loop("Deep", move |cx| limited(bench(cx.system("Inside."), policy), limits.inner))
    };
    brain("Story")
        .services::<Ledger>()
        .state(Board::default())
        .step("Begin", async |cx| {
            let began = cx.once("began", async { Ok("began".to_owned()) }).await?;
            tokio::time::sleep(Duration::from_millis(5)).await;
            Ok(Board { done: vec![began] })
        })
        .r#loop("Work", move |cx| {
            limited(bench(cx.system(format!("{} done.", cx.state.done.len())), policy), limits.outer)
                .tool("inner", |t| t.brain(inner()).map_output(|board, inner| board.done.extend(inner.done)))
                .tools([deed("finish", DeedBuilder::exit)])
                .max_iterations(6)
        })
        .bind(ledger.clone())
        .budget(|mut budget| {
            (budget.max_iterations, budget.max_tokens) = (limits.iterations, limits.whole);
            budget.ask_for_more().on_limit(OnLimit::Exit)
        })
}

pub(super) fn says(script: &Script, request: &ModelRequest) -> Reply {
    let place = request.path.as_str();
    let batch = match place.strip_prefix("Work/").and_then(|iteration| iteration.parse::<usize>().ok()) {
        Some(iteration) => script.iterations.get(iteration),
        None => Some(&script.inner).filter(|_| place.ends_with("/Deep/0")),
    };
    let used = Usage { input: 7, output: 3, ..Usage::default() };
    let Some(batch) = batch.filter(|batch| !batch.is_empty()) else { return done().usage(used) };
    let call = |(index, ask): (usize, &Ask)| {
        // Identical calls occur, so that their denials occur too.
        let arguments = json!({"id": format!("{}", index / 2), "takes": ask.takes, "fails": ask.fails});
        (ask.tool, if ask.tool == "inner" { json!({}) } else { arguments })
    };
    Reply::calls(batch.iter().enumerate().map(call)).after(Duration::from_millis(3)).usage(used)
}
