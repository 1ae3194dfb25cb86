//! Limits that a person can raise, and budgets of whole brains: iterations, tokens, money and time, at any depth.

mod conversation;
mod decisions;
mod money;
mod nested;
mod questions;

use std::time::Duration;

use positronic_core::dsl::BrainBuilder;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{
    Amounts, BudgetRequest, Decision, EndReason, EventKind, LimitKind, LoopOutcome, Money, Path, Pending, PendingKind,
    Status, Usage,
};
use positronic_core::runner::{RunHandle, Settled};
use positronic_core::testing::Story;
use serde_json::{Value, json};

use crate::support::{Board, Journal, Play, ShopLoop, batch, done, events_named, path, prompt, tools, waits};

/// Number of iterations that the working loop needs; each uses ten tokens, costs ten millionths and takes a second.
const NEEDS: u32 = 6;

const KINDS: [LimitKind; 4] = [LimitKind::Iterations, LimitKind::Tokens, LimitKind::Money, LimitKind::Time];

/// Usage of three iterations.
fn limit_of(kind: LimitKind) -> u64 {
    match kind {
        LimitKind::Iterations => 3,
        LimitKind::Tokens => 30,
        LimitKind::Money => 30_000,
        LimitKind::Time => 3_000_000,
        LimitKind::Failures => unreachable!("failures cannot be granted"),
    }
}

fn enough(kind: LimitKind) -> Amounts {
    match kind {
        LimitKind::Iterations => Amounts::iterations(10),
        LimitKind::Tokens => Amounts::tokens(100),
        LimitKind::Money => Amounts::money(Money::of_nanos(100_000)),
        LimitKind::Time => Amounts::time(Duration::from_secs(10)),
        LimitKind::Failures => unreachable!("failures cannot be granted"),
    }
}

/// The frames between the limited loop `Work` and the working loop.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Depth {
    /// None: `Work` does the work itself.
    Own,
    /// A brain that `Work` calls.
    Called,
    /// A brain that is a stage of a called brain.
    Staged,
}

/// The frame that sets the limit.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Whose {
    Loops,
    Brains,
}

/// The expected outcome.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Then {
    Exit,
    Error,
    Granted,
    Refused(OnLimit),
    Expired(OnLimit),
}

const WEEK: Duration = Duration::from_hours(7 * 24);

fn limited(config: ShopLoop, kind: LimitKind, then: Then) -> ShopLoop {
    let limit = limit_of(kind);
    let config = match kind {
        LimitKind::Iterations => config.max_iterations(limit),
        LimitKind::Tokens => config.max_tokens(limit),
        LimitKind::Money => config.max_money("0.00003"),
        LimitKind::Time => config.max_time(Duration::from_micros(limit)),
        LimitKind::Failures => unreachable!("failures cannot be granted"),
    };
    match then {
        Then::Exit => config,
        Then::Error => config.on_limit(OnLimit::Error),
        Then::Granted => config.ask_for_more(),
        Then::Refused(on_limit) => config.ask_for_more().on_limit(on_limit),
        Then::Expired(on_limit) => config.ask_for_more_within(WEEK).on_limit(on_limit),
    }
}

fn budgeted(brain: BrainBuilder<(), Board, Journal>, kind: LimitKind, then: Then) -> BrainBuilder<(), Board, Journal> {
    brain.budget(|budget| {
        let limit = limit_of(kind);
        let budget = match kind {
            LimitKind::Iterations => budget.max_iterations(limit),
            LimitKind::Tokens => budget.max_tokens(limit),
            LimitKind::Money => budget.max_money(Money::of_nanos(limit)),
            LimitKind::Time => budget.max_time(Duration::from_micros(limit)),
            LimitKind::Failures => unreachable!("failures cannot be granted"),
        };
        match then {
            Then::Exit => budget.on_limit(OnLimit::Exit),
            Then::Error => budget,
            Then::Granted => budget.ask_for_more(),
            Then::Refused(on_limit) => budget.ask_for_more().on_limit(on_limit),
            Then::Expired(on_limit) => budget.ask_for_more_within(WEEK).on_limit(on_limit),
        }
    })
}

fn tree(journal: &Journal, kind: LimitKind, depth: Depth, whose: Whose, then: Then) -> Brain<(), Board> {
    unbound_tree(kind, depth, whose, then).bind(journal.clone())
}

fn unbound_tree(kind: LimitKind, depth: Depth, whose: Whose, then: Then) -> BrainBuilder<(), Board, Journal> {
    let deep = |title: &str| {
        brain(title).services::<Journal>().state(Board::default()).r#loop("Deep", |cx| tools(cx.system("Work.")))
    };
    let inner = move || match depth {
        Depth::Own | Depth::Called => deep("Inner").build(),
        Depth::Staged => brain("Inner")
            .services::<Journal>()
            .state(Board::default())
            .brain("Part", deep("Part"))
            .map_output(|board, _: Board| board)
            .build(),
    };
    let outer = brain("Outer").services::<Journal>().state(Board::default()).r#loop("Work", move |cx| {
        let config = tools(cx.system("Go on."));
        let config = if whose == Whose::Loops { limited(config, kind, then) } else { config };
        if depth == Depth::Own { config } else { config.brain("inner", inner()) }
    });
    let outer = outer.step("After", async |cx| Ok(cx.state));
    if whose == Whose::Brains { budgeted(outer, kind, then) } else { outer }
}

fn prices() -> Value {
    json!({"scripted/*": {"input": 1, "output": 1}})
}

/// A model whose loop `works` at a path works for [`NEEDS`] iterations.
fn model(depth: Depth) -> ScriptedModel {
    let works = match depth {
        Depth::Own => "Work",
        Depth::Called => "Work/0.0/Deep",
        Depth::Staged => "Work/0.0/Part/Deep",
    };
    ScriptedModel::from_fn(move |request| {
        let loop_at = request.path.parent().unwrap();
        let iteration: u32 = request.path.as_str().rsplit_once('/').unwrap().1.parse().unwrap();
        if loop_at.as_str() != works {
            // It uses an iteration but no money and no time.
            return if iteration == 0 {
                Reply::call("inner", json!({})).usage(tokens(1))
            } else {
                done().usage(tokens(1))
            };
        }
        let reply = if iteration < NEEDS { batch([("safe", "job")]) } else { done() };
        reply.usage(tokens(10)).after(Duration::from_secs(1))
    })
}

fn tokens(input: u64) -> Usage {
    Usage { input, ..Usage::default() }
}

fn jobs(journal: &Journal) -> usize {
    journal.take().len()
}

fn asked(pending: &[Pending]) -> (String, LimitKind, u64, u64) {
    let [Pending { call, kind: PendingKind::Budget(BudgetRequest { kind, limit, used, .. }), .. }] = pending else {
        panic!("{pending:?}")
    };
    (call.to_string(), *kind, *limit, *used)
}

async fn play(
    journal: &Journal,
    kind: LimitKind,
    depth: Depth,
    whose: Whose,
    then: Then,
    lockstep: bool,
) -> (Play, RunHandle<Board>) {
    let play = Play::priced(model(depth), lockstep, &prices());
    let run = play.start(tree(journal, kind, depth, whose, then), ()).await;
    (play, run)
}

fn all() -> impl Iterator<Item = (LimitKind, Depth, Whose)> {
    let cases = KINDS.into_iter().flat_map(|kind| {
        [Depth::Own, Depth::Called, Depth::Staged]
            .into_iter()
            .flat_map(move |depth| [Whose::Loops, Whose::Brains].map(move |whose| (kind, depth, whose)))
    });
    // A loop counts only its own iterations.
    cases
        .filter(|(kind, depth, whose)| (*kind, *whose) != (LimitKind::Iterations, Whose::Loops) || *depth == Depth::Own)
}

fn check_end(story: &Story, on_limit: OnLimit, kind: LimitKind, whose: Whose, case: &str) {
    let outcome = prompt(story, "Work").outcome;
    match (kind, whose) {
        (LimitKind::Iterations, Whose::Loops) => assert_eq!(outcome, Some(LoopOutcome::MaxIterations), "{case}"),
        _ => assert_eq!(outcome, Some(LoopOutcome::Limit { limit: kind }), "{case}"),
    }
    match (on_limit, story.settled()) {
        (OnLimit::Exit, Settled::Completed(_)) => {}
        (OnLimit::Error, Settled::Failed(failure)) => {
            assert_eq!(failure.code, EndReason::Limit, "{case}");
            let says = if whose == Whose::Loops { "the loop `Work` used up" } else { "the brain `Outer` used up" };
            assert!(failure.message.contains(says), "{case}: {}", failure.message);
        }
        (_, settled) => panic!("{case}: {settled:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn every_limit_ends_or_fails_its_loop_at_every_depth() {
    for (kind, depth, whose) in all() {
        for (then, on_limit) in [(Then::Exit, OnLimit::Exit), (Then::Error, OnLimit::Error)] {
            let case = format!("{kind:?} {depth:?} {whose:?} {then:?}");
            let journal = Journal::default();
            let (play, run) = play(&journal, kind, depth, whose, then, true).await;

            let story = play.story(&run).await;

            check_end(&story, on_limit, kind, whose, &case);
            assert!((2..=3).contains(&jobs(&journal)), "{case}");
            assert_eq!(events_named(&story, "BUDGET_REQUESTED").len(), 0, "{case}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_limit_is_raised_by_a_person_at_every_depth() {
    for (kind, depth, whose) in all() {
        for lockstep in [true, false] {
            let case = format!("{kind:?} {depth:?} {whose:?}");
            let journal = Journal::default();
            let (play, run) = play(&journal, kind, depth, whose, Then::Granted, lockstep).await;
            let at = if whose == Whose::Loops { "Work" } else { "" };

            assert_eq!(waits(&run).await, [at], "{case}");
            assert_eq!(run.status(), Status::Waiting, "{case}");
            let (place, of, limit, used) = asked(&run.pending());
            assert_eq!((place.as_str(), of, limit), (at, kind, limit_of(kind)), "{case}");
            assert!(used >= limit, "{case}: {used}");
            let why = run.why().unwrap();
            assert!(why.sentence.contains(&format!("a person's decision about more {}", kind.noun())), "{why:?}");
            assert!((2..=3).contains(&jobs(&journal)), "{case}");
            // Waiting for an answer is not active time, and no event is appended.
            tokio::time::advance(Duration::from_hours(48)).await;
            run.grant(&path_of(at), enough(kind), "ann").await.unwrap();
            let story = play.story(&run).await;

            assert!(matches!(story.settled(), Settled::Completed(_)), "{case}: {:?}", story.settled());
            assert_eq!(prompt(&story, "Work").outcome, Some(LoopOutcome::Answered), "{case}");
            assert_eq!(events_named(&story, "BUDGET_REQUESTED"), [at], "{case}");
            let decided = story.log().iter().find_map(|event| match &event.kind {
                EventKind::BudgetDecided { decision, more, actor, .. } => Some((*decision, *more, actor.by.clone())),
                _ => None,
            });
            assert_eq!(decided, Some((Decision::Approved, enough(kind), Some("ann".to_owned()))), "{case}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_rejected_or_expired_limit_question_applies_its_policy() {
    for (kind, depth, whose) in all() {
        for on_limit in [OnLimit::Exit, OnLimit::Error] {
            for then in [Then::Refused(on_limit), Then::Expired(on_limit)] {
                let case = format!("{kind:?} {depth:?} {whose:?} {then:?}");
                let journal = Journal::default();
                let (play, run) = play(&journal, kind, depth, whose, then, true).await;
                let at = if whose == Whose::Loops { "Work" } else { "" };

                assert_eq!(waits(&run).await, [at], "{case}");
                if matches!(then, Then::Refused(_)) {
                    run.reject(&path_of(at), "enough", "ann").await.unwrap();
                } else {
                    // A jump: a sleep would wake the lingering worker for each renewal of its lease.
                    tokio::time::advance(WEEK).await;
                    tokio::time::sleep(Duration::from_secs(2)).await;
                }
                let story = play.story(&run).await;

                check_end(&story, on_limit, kind, whose, &case);
                let name = if matches!(then, Then::Refused(_)) { "BUDGET_DECIDED" } else { "BUDGET_EXPIRED" };
                assert_eq!(events_named(&story, name), [at], "{case}");
                assert_eq!(events_named(&story, "BUDGET_REQUESTED"), [at], "{case}: asked once");
            }
        }
    }
}

fn path_of(text: &str) -> Path {
    if text.is_empty() { Path::root() } else { path(text) }
}

/// A run that asks for more tokens in its loop `Work`.
async fn asking(journal: &Journal) -> (Play, RunHandle<Board>) {
    let (play, run) = play(journal, LimitKind::Tokens, Depth::Own, Whose::Loops, Then::Granted, true).await;
    assert_eq!(waits(&run).await, ["Work"]);
    (play, run)
}
