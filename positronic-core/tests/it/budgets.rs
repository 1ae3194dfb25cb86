//! Limits whose end is a person's decision, and budgets of whole brains: rounds, tokens, money and time, at any depth.

use std::time::Duration;

use positronic_core::dsl::{Options, Plugin, PluginState, Preparation, Services, State};
use positronic_core::machine::Refusal;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::plugins::Triggers;
use positronic_core::prelude::*;
use positronic_core::record::{
    Actor, Body, Budget, Decision, EndReason, LimitKind, LoopOutcome, ModelError, ModelErrorKind, Money, More, Path,
    Pending, PendingKind, PriceTable, Signal, SignalId, SignalKind, Start, Status, ToolResult, Usage,
};
use positronic_core::runner::{Run, Runner, Settled, SignalError};
use positronic_core::store::{MemoryStore, TimerFilter};
use positronic_core::testing::Story;
use serde_json::{Value, json};

use crate::support::{
    Board, Journal, Play, ShopLoop, batch, done, events_named, path, prompt, results, settled, tools, waits,
};

/// How many rounds the one who works needs; each uses ten tokens, costs ten millionths and takes a second.
const NEEDS: u32 = 6;

const KINDS: [LimitKind; 4] = [LimitKind::Rounds, LimitKind::Tokens, LimitKind::Money, LimitKind::Time];

/// What three rounds use.
fn limit_of(kind: LimitKind) -> u64 {
    match kind {
        LimitKind::Rounds => 3,
        LimitKind::Tokens => 30,
        LimitKind::Money => 30_000,
        LimitKind::Time => 3_000_000,
        LimitKind::Failures => unreachable!("nobody grants failures"),
    }
}

fn enough(kind: LimitKind) -> More {
    match kind {
        LimitKind::Rounds => More::rounds(10),
        LimitKind::Tokens => More::tokens(100),
        LimitKind::Money => More::money(Money::of_nanos(100_000)),
        LimitKind::Time => More::time(Duration::from_secs(10)),
        LimitKind::Failures => unreachable!("nobody grants failures"),
    }
}

/// Who stands between the loop `Work`, which is limited, and the one who works.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Depth {
    /// Nobody: `Work` works itself.
    Own,
    /// A brain that it calls.
    Called,
    /// A brain that is a stage of one that it calls.
    Staged,
}

/// Whose limit it is.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Whose {
    Loops,
    Brains,
}

/// What is to come of it.
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
        LimitKind::Rounds => config.max_iterations(u32::try_from(limit).unwrap()),
        LimitKind::Tokens => config.max_tokens(limit),
        LimitKind::Money => config.max_money("0.00003"),
        LimitKind::Time => config.max_time(Duration::from_micros(limit)),
        LimitKind::Failures => unreachable!("nobody grants failures"),
    };
    match then {
        Then::Exit => config,
        Then::Error => config.on_limit(OnLimit::Error),
        Then::Granted => config.ask_for_more(),
        Then::Refused(on_limit) => config.ask_for_more().on_limit(on_limit),
        Then::Expired(on_limit) => config.ask_for_more_within(WEEK).on_limit(on_limit),
    }
}

fn budgeted(brain: Brain<(), Board>, kind: LimitKind, then: Then) -> Brain<(), Board> {
    brain.budget(|budget| {
        let limit = limit_of(kind);
        let budget = match kind {
            LimitKind::Rounds => budget.max_rounds(limit),
            LimitKind::Tokens => budget.max_tokens(limit),
            LimitKind::Money => budget.max_money(Money::of_nanos(limit)),
            LimitKind::Time => budget.max_time(Duration::from_micros(limit)),
            LimitKind::Failures => unreachable!("nobody grants failures"),
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
    let deep = |title: &str| {
        brain(title).services::<Journal>().state(Board::default()).r#loop("Deep", |cx| tools(cx.system("Work.")))
    };
    let inner = move || match depth {
        Depth::Own | Depth::Called => deep("Inner"),
        Depth::Staged => brain("Inner").services::<Journal>().state(Board::default()).brain(
            "Part",
            deep("Part"),
            |_| (),
            |board, _: Board| board,
        ),
    };
    let outer = brain("Outer").services::<Journal>().state(Board::default()).r#loop("Work", move |cx| {
        let config = tools(cx.system("Go on."));
        let config = if whose == Whose::Loops { limited(config, kind, then) } else { config };
        if depth == Depth::Own { config } else { config.brain("inner", inner(), |b| b) }
    });
    let outer = outer.step("After", async |cx| Ok(cx.state)).bind(journal.clone());
    if whose == Whose::Brains { budgeted(outer, kind, then) } else { outer }
}

fn prices() -> Value {
    json!({"scripted/*": {"input": 1, "output": 1}})
}

/// A model whose loop `works` at a path works for [`NEEDS`] rounds.
fn model(depth: Depth) -> ScriptedModel {
    let works = match depth {
        Depth::Own => "Work",
        Depth::Called => "Work/0.0/Deep",
        Depth::Staged => "Work/0.0/Part/Deep",
    };
    ScriptedModel::from_fn(move |request| {
        let looped = request.path.parent().unwrap();
        let round: u32 = request.path.as_str().rsplit_once('/').unwrap().1.parse().unwrap();
        if looped.as_str() != works {
            // It neither costs nor takes anything but its round.
            return if round == 0 { Reply::call("inner", json!({})).usage(tokens(1)) } else { done().usage(tokens(1)) };
        }
        let reply = if round < NEEDS { batch([("safe", "job")]) } else { done() };
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
    let [Pending { call, kind: PendingKind::More { kind, limit, used, .. }, .. }] = pending else {
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
) -> (Play, Run<Board>) {
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
    // A loop counts its own rounds alone.
    cases.filter(|(kind, depth, whose)| (*kind, *whose) != (LimitKind::Rounds, Whose::Loops) || *depth == Depth::Own)
}

fn check_end(story: &Story, on_limit: OnLimit, kind: LimitKind, whose: Whose, case: &str) {
    let outcome = prompt(story, "Work").outcome;
    match (kind, whose) {
        (LimitKind::Rounds, Whose::Loops) => assert_eq!(outcome, Some(LoopOutcome::MaxIterations), "{case}"),
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
            // However long nobody answers, it is no active time, and nothing happens.
            tokio::time::advance(Duration::from_hours(48)).await;
            run.grant(&path_of(at), enough(kind), "ann").await.unwrap();
            let story = play.story(&run).await;

            assert!(matches!(story.settled(), Settled::Completed(_)), "{case}: {:?}", story.settled());
            assert_eq!(prompt(&story, "Work").outcome, Some(LoopOutcome::Answered), "{case}");
            assert_eq!(events_named(&story, "BUDGET_REQUESTED"), [at], "{case}");
            let decided = story.log().iter().find_map(|event| match &event.body {
                Body::BudgetDecided { decision, more, actor, .. } => Some((*decision, *more, actor.by.clone())),
                _ => None,
            });
            assert_eq!(decided, Some((Decision::Approved, enough(kind), Some("ann".to_owned()))), "{case}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_limit_that_is_refused_or_not_answered_in_time_does_what_its_author_says() {
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
                    tokio::time::sleep(WEEK + Duration::from_secs(1)).await;
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

/// A run that asks for tokens in its loop `Work`.
async fn asking(journal: &Journal) -> (Play, Run<Board>) {
    let (play, run) = play(journal, LimitKind::Tokens, Depth::Own, Whose::Loops, Then::Granted, true).await;
    assert_eq!(waits(&run).await, ["Work"]);
    (play, run)
}

async fn refused(run: &Run<Board>, kind: SignalKind) -> Refusal {
    let before = run.state();
    let error = run.signal(kind, Actor::default()).await.unwrap_err();
    assert_eq!(run.state(), before, "a refused decision changes nothing");
    let SignalError::Refused(refusal) = error else { panic!("{error}") };
    refusal
}

#[tokio::test(start_paused = true)]
async fn what_is_granted_is_checked_before_it_is_recorded() {
    let (_, run) = asking(&Journal::default()).await;
    let grant = |more| SignalKind::Grant { to: path("Work"), more };

    for nothing in [More::default(), More::rounds(5)] {
        let refusal = refused(&run, grant(nothing)).await;
        assert!(refusal.to_string().contains("it takes at least 1 token more"), "{refusal}");
    }
    for (more, kind) in [(More::money("1".parse().unwrap()), "money"), (More::time(WEEK), "time")] {
        let refusal = refused(&run, grant(more)).await;
        assert!(refusal.to_string().contains(&format!("no limit of {kind}")), "{refusal}");
    }
    let nowhere = refused(&run, SignalKind::Grant { to: Path::root(), more: More::tokens(5) }).await;
    assert_eq!(nowhere.to_string(), "nobody is asked for more at ``; pending: `Work`");
    let approved = refused(&run, SignalKind::Approve { call: path("Work"), arguments: None }).await;
    assert_eq!(approved.to_string(), "the call `Work` asks for more, so say how much, or reject it");
    let reply = refused(&run, SignalKind::Reply { call: path("Work"), payload: json!(1) }).await;
    assert_eq!(reply.to_string(), "the call `Work` asks for more tokens, not for a reply");
}

#[tokio::test(start_paused = true)]
async fn one_of_two_decisions_wins_and_the_other_is_told_which() {
    let (play, run) = asking(&Journal::default()).await;
    let kind = SignalKind::Grant { to: path("Work"), more: More::tokens(20) };
    let actor = Actor::builder().by("ann").channel("slack").build();
    let signal = Signal { id: SignalId::new("once"), actor, kind: kind.clone() };

    let seq = run.send(signal.clone()).await.unwrap();
    let late = run.reject(&path("Work"), "no", "bob").await;
    let again = run.send(signal).await.unwrap();

    assert_eq!(again, seq, "the same signal is the same answer");
    let SignalError::Refused(late) = late.unwrap_err() else { panic!() };
    assert_eq!(late.to_string(), "the call `Work` was decided already: 20 tokens more was granted by ann");
    // Twenty more are two rounds more; then it is asked again, about what there is by now.
    assert_eq!(waits(&run).await, ["Work"]);
    assert_eq!(asked(&run.pending()), ("Work".to_owned(), LimitKind::Tokens, 50, 50));
    run.grant(&path("Work"), More::tokens(1000), "bob").await.unwrap();
    let story = play.story(&run).await;
    assert!(matches!(story.settled(), Settled::Completed(_)));
    let granted = story.log().iter().find(|event| event.seq == seq).unwrap().body.to_value();
    assert_eq!(granted["actor"], json!({"by": "ann", "channel": "slack"}));
    assert_eq!(granted["more"], json!({"tokens": 20}));
}

#[tokio::test(start_paused = true)]
async fn a_question_whose_time_is_up_takes_no_answer() {
    let journal = Journal::default();
    let then = Then::Expired(OnLimit::Exit);
    let (play, run) = play(&journal, LimitKind::Tokens, Depth::Own, Whose::Loops, then, true).await;
    waits(&run).await;
    let PendingKind::More { expires: Some(expires), .. } = run.pending()[0].kind else { panic!() };
    assert_eq!(run.why().unwrap().until, Some(expires));

    tokio::time::advance(WEEK).await;
    let late = run.grant(&path("Work"), More::tokens(99), "ann").await;

    assert!(matches!(late, Err(SignalError::Refused(Refusal::Expired { .. }))), "{late:?}");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let story = play.story(&run).await;
    assert_eq!(prompt(&story, "Work").outcome, Some(LoopOutcome::Limit { limit: LimitKind::Tokens }));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_asks_can_be_cancelled_paused_and_spoken_to() {
    let (play, run) = asking(&Journal::default()).await;
    run.message("Hurry up.", "ann").await.unwrap();
    run.pause().await.unwrap();
    assert_eq!(settled(&run).await, Settled::Paused);
    run.grant(&path("Work"), More::tokens(20), "ann").await.unwrap();
    assert_eq!(settled(&run).await, Settled::Paused, "what is granted stays");
    tokio::time::advance(Duration::from_hours(1)).await;
    run.resume().await.unwrap();
    assert_eq!(waits(&run).await, ["Work"]);
    assert_eq!(asked(&run.pending()).2, 50, "a pause resets nothing");
    run.cancel("enough").await.unwrap();

    let story = play.story(&run).await;

    assert_eq!(*story.settled(), Settled::Cancelled);
    assert!(run.pending().is_empty());
    let transcript = story.transcript();
    let (before, after) = transcript.split_once("Hurry up.").unwrap();
    let rounds = |text: &str| text.matches("safe(").count();
    assert_eq!((rounds(before), rounds(after)), (3, 2), "{transcript}");
}

#[tokio::test(start_paused = true)]
async fn a_limit_inside_asks_for_itself_and_one_around_for_its_own() {
    let journal = Journal::default();
    let deep = || {
        brain("Inner")
            .services::<Journal>()
            .state(Board::default())
            .r#loop("Deep", |cx| tools(cx.system("")).max_tokens(20).ask_for_more().on_limit(OnLimit::Error))
    };
    let outer = brain("Outer")
        .services::<Journal>()
        .state(Board::default())
        .r#loop("Work", move |cx| cx.system("").brain("inner", deep(), |b| b).max_tokens(40).ask_for_more())
        .bind(journal.clone());
    let play = Play::of(model(Depth::Called), true);
    let run = play.start(outer, ()).await;

    assert_eq!(waits(&run).await, ["Work/0.0/Deep"]);
    run.grant(&path("Work/0.0/Deep"), More::tokens(1000), "ann").await.unwrap();
    assert_eq!(waits(&run).await, ["Work"]);
    assert_eq!(asked(&run.pending()), ("Work".to_owned(), LimitKind::Tokens, 40, 41));
    run.reject(&path("Work"), "enough", "ann").await.unwrap();

    let story = play.story(&run).await;
    assert!(matches!(story.settled(), Settled::Completed(_)), "by `OnLimit::Exit` of the one around");
    assert!(matches!(&results(&story, "Work")[0], ToolResult::Interrupted { reason } if reason.contains("tokens")));
    assert_eq!(prompt(&story, "Work/0.0/Deep").outcome, Some(LoopOutcome::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn a_decision_about_a_call_beside_runs_it_while_more_is_asked_for() {
    let journal = Journal::default();
    let deep =
        || brain("Inner").services::<Journal>().state(Board::default()).r#loop("Deep", |cx| tools(cx.system("")));
    let outer = brain("Outer")
        .services::<Journal>()
        .state(Board::default())
        .r#loop("Work", move |cx| tools(cx.system("")).brain("inner", deep(), |b| b).max_tokens(20).ask_for_more())
        .bind(journal.clone());
    let model = ScriptedModel::from_fn(|request| match request.path.as_str() {
        "Work/0" => {
            let calls = [("inner", json!({})), ("gated", json!({"id": "gated", "takes": 2000}))];
            Reply::calls(calls).usage(tokens(10))
        }
        "Work/0.0/Deep/0" => batch([("safe", "deep")]).usage(tokens(10)),
        _ => done().usage(tokens(1)),
    });
    let play = Play::of(model, true);
    let run = play.start(outer, ()).await;

    assert_eq!(waits(&run).await, ["Work", "Work/0.1"]);
    run.approve(&path("Work/0.1"), "ann").await.unwrap();
    assert_eq!(waits(&run).await, ["Work"]);
    assert_eq!(journal.take(), ["deep", "gated", "gated-"], "it was paid for");
    run.grant(&path("Work"), More::tokens(100), "ann").await.unwrap();

    let story = play.story(&run).await;
    assert!(results(&story, "Work").iter().all(ToolResult::is_success));
}

#[tokio::test(start_paused = true)]
async fn a_question_of_a_step_is_held_until_there_is_more_and_the_step_goes_on_with_what_it_has() {
    let journal = Journal::default();
    let asking = brain("Asking").services::<Journal>().step("Ask", async |cx| {
        let tries = cx.services.count();
        let id = cx.once("id", async { Ok(tries) }).await?;
        let mut texts = Vec::new();
        for question in ["one", "two", "three"] {
            texts.push(cx.model().ask(question).await?);
        }
        Ok(Board { done: [vec![id.to_string()], texts].concat() })
    });
    let asking = asking.bind(journal.clone()).budget(|budget| budget.max_tokens(20).ask_for_more());
    let play = Play::new(["1", "2", "3"].map(|text| Reply::text(text).usage(tokens(10))));
    let run = play.start(asking, ()).await;

    assert_eq!(waits(&run).await, [""]);
    assert_eq!(run.status(), Status::Waiting);
    run.grant(&Path::root(), More::tokens(10), "ann").await.unwrap();

    let story = play.story(&run).await;
    assert_eq!(*story.state(), json!({"done": ["1", "1", "2", "3"]}), "no answer is asked for twice");
    assert_eq!(journal.count(), 3, "the step has run twice");
    assert_eq!(events_named(&story, "STEP_HELD"), ["Ask"]);
}

#[tokio::test(start_paused = true)]
async fn a_question_of_a_step_beyond_a_budget_is_an_error() {
    for refuse in [false, true] {
        let asking = brain("Asking").step("Ask", async |cx| {
            cx.model().ask("one").await?;
            cx.model().ask("two").await.map_err(|error| Error::new(format!("no luck: {error}")))
        });
        let asking = asking.budget(|budget| {
            let budget = budget.max_tokens(10);
            if refuse { budget.ask_for_more() } else { budget }
        });
        let play = Play::new([Reply::text("1").usage(tokens(10))]);
        let run = play.start(asking, ()).await;
        if refuse {
            waits(&run).await;
            run.reject(&Path::root(), "no", "ann").await.unwrap();
        }

        let Settled::Failed(failure) = settled(&run).await else { panic!() };
        let why = "no luck: the model is not asked any more: the brain `Asking` has used up its budget of tokens";
        assert_eq!(failure.message, format!("the step `Ask` failed: {why}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_inside_a_loop_that_is_used_up_ends_with_the_loop_or_goes_on_with_it() {
    for ask in [false, true] {
        let inner = || {
            brain("Inner").step("Ask", async |cx| {
                let first = cx.model().ask("one").await?;
                let second = cx.model().ask("two").await?;
                Ok(first + &second)
            })
        };
        let outer = brain("Outer").r#loop("Work", move |cx| {
            let config = cx.system("").brain("inner", inner(), |b| b).max_tokens(20);
            if ask { config.ask_for_more() } else { config }
        });
        let used = |reply: Reply| reply.usage(tokens(10));
        let more = if ask { vec![used(Reply::text("2")), used(done())] } else { Vec::new() };
        let first = vec![used(Reply::call("inner", json!({}))), used(Reply::text("1"))];
        let play = Play::new([first, more].concat());
        let run = play.start(outer, ()).await;
        if ask {
            assert_eq!(waits(&run).await, ["Work"]);
            run.grant(&path("Work"), More::tokens(100), "ann").await.unwrap();
        }

        let story = play.story(&run).await;

        assert!(matches!(story.settled(), Settled::Completed(_)), "{:?}", story.settled());
        match (&results(&story, "Work")[0], ask) {
            (ToolResult::Success { output, .. }, true) => assert_eq!(*output, json!("12")),
            (ToolResult::Interrupted { reason }, false) => assert!(reason.contains("tokens"), "{reason}"),
            (other, _) => panic!("{other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_is_used_up_lets_later_steps_run_and_no_later_loop_ask() {
    let journal = Journal::default();
    let two = brain("Two")
        .services::<Journal>()
        .state(Board::default())
        .r#loop("First", |cx| tools(cx.system("")))
        .step("Save", async |cx| {
            cx.services.note("saved");
            Ok(cx.state)
        })
        .r#loop("Second", |cx| tools(cx.system("")).on_exit(|board, outcome| board.done.push(format!("{outcome:?}"))))
        .bind(journal.clone())
        .budget(|budget| budget.max_tokens(10).on_limit(OnLimit::Exit));
    let play = Play::new([batch([("safe", "a")]).usage(tokens(10))]);

    let story = play.run(two, ()).await;

    assert_eq!(journal.take(), ["a", "saved"]);
    assert_eq!(*story.state(), json!({"done": ["a", "Limit { limit: Tokens }"]}));
    assert_eq!(events_named(&story, "LOOP_LIMIT"), ["First", "Second"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_run_is_started_with_goes_before_its_authors_budget() {
    let journal = Journal::default();
    let author = budgeted(
        tree(&journal, LimitKind::Tokens, Depth::Own, Whose::Brains, Then::Exit),
        LimitKind::Rounds,
        Then::Exit,
    );
    let budget = positronic_core::record::Budget::default().max_tokens(10).on_limit(OnLimit::Error);
    let play = Play::priced(model(Depth::Own), true, &prices());
    let start = Start { budget: Some(budget), ..Start::default() };
    let run = play.test.runner().start_with(author, (), start).await.unwrap();

    let Settled::Failed(failure) = settled(&run).await else { panic!() };

    assert_eq!(failure.message, "the brain `Outer` used up its budget of tokens in the loop `Work`: 10 tokens");
    assert_eq!(journal.take(), ["job"]);
}

fn money(config: ShopLoop) -> ShopLoop {
    tools(config).max_money("0.00002").on_limit(OnLimit::Error)
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_a_cost_ends_a_loop_with_a_limit_of_money_and_no_other() {
    let journal = Journal::default();
    for (config, fails) in [(money as fn(ShopLoop) -> ShopLoop, true), (tools, false)] {
        // An answer that came without its tokens.
        let model = ScriptedModel::from_fn(|request| match request.path.as_str() {
            "Work/0" => batch([("safe", "a")]),
            _ => done(),
        });
        let play = Play::priced(model, true, &prices());
        let story = Story::of(&play.start(crate::support::workshop(&journal, config), ()).await).await;
        match (story.settled(), fails) {
            (Settled::Failed(failure), true) => assert_eq!(
                failure.message,
                "the loop `Work` has a limit of money, and nobody knows what `scripted/scripted` costs"
            ),
            (Settled::Completed(_), false) => {}
            (other, _) => panic!("{other:?}"),
        }
        let unpriced: Vec<_> =
            story.log().iter().filter_map(|event| event.body.to_value().get("unpriced").cloned()).collect();
        assert_eq!(unpriced, if fails { vec![json!("scripted/scripted")] } else { Vec::new() });
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_money_that_cannot_be_kept_is_told_before_the_first_call() {
    let journal = Journal::default();
    let shop = || crate::support::workshop(&journal, money);
    let no_table = Play::new([]).run(&shop(), ()).await;
    let unknown = Play::priced(ScriptedModel::new([]), true, &json!({"openai/*": {"input": 1, "output": 1}}));
    let unknown = unknown.run(&shop(), ()).await;
    for (story, says) in [
        (no_table, "there is a limit of money, and the runner has no prices; give it a table with `.prices(…)`"),
        (unknown, "there is a limit of money, and the runner's prices of 2026-01-01 have none for `scripted/scripted`"),
    ] {
        let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
        assert_eq!(failure.code, EndReason::Config);
        assert_eq!(failure.message, format!("the loop `Work` cannot be configured: {says}"));
        assert!(events_named(&story, "LOOP_MODEL_CALL").is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn what_an_answer_cost_is_in_the_log_and_nobody_needs_the_table_again() {
    let journal = Journal::default();
    let replies = [batch([("safe", "a")]).usage(tokens(10)), batch([("safe", "b")]).usage(tokens(15))];
    let play = Play::priced(ScriptedModel::new(replies), true, &prices());
    let run = play.start(crate::support::workshop(&journal, money), ()).await;
    let story = Story::of(&run).await;

    let costs: Vec<_> =
        story.log().iter().filter_map(|event| event.body.to_value()["facts"].get("cost").cloned()).collect();
    assert_eq!(costs[1], json!({"amount": "0.000015", "currency": "EUR", "as_of": "2026-01-01"}));
    // The story's own check has replayed the log without any table, to the same state.
    let lines = story.json_lines();
    let events: Vec<_> = lines.lines().map(|line| positronic_core::record::Event::from_json(line).unwrap()).collect();
    let replayed = positronic_core::machine::RunState::replay(&events).unwrap();
    assert_eq!(serde_json::to_string(&replayed).unwrap(), serde_json::to_string(&run.state()).unwrap());
    assert_eq!(replayed.root.unwrap().spent.known.to_string(), "0.000025");
    assert_eq!(events_named(&story, "LOOP_LIMIT"), ["Work"]);
}

/// A plugin that asks a model in every round.
struct Asker;

#[derive(Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Heard {
    answers: Vec<String>,
}

impl PluginState for Heard {
    const NAME: &'static str = "asker";
}

impl<O: Options, S: State, V: Services> Plugin<O, S, V> for Asker {
    type State = Heard;

    fn initial(&self) -> Heard {
        Heard::default()
    }

    async fn prepare(&self, cx: &mut Preparation<'_, O, S, V, Heard>) -> Result<()> {
        for question in ["one", "two"] {
            let heard = cx.model().ask(question).await?;
            cx.state.answers.push(heard);
        }
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_of_a_plugin_is_held_until_there_is_more_and_is_not_asked_twice() {
    let brain = brain("Asking").r#loop("Work", |cx| cx.system("").plugin(Asker).max_tokens(10).ask_for_more());
    let used = |text: &str| Reply::text(text).usage(tokens(10));
    let play = Play::new(["1", "2", "Done."].map(used));
    let run = play.start(brain, ()).await;

    assert_eq!(waits(&run).await, ["Work"]);
    assert_eq!(asked(&run.pending()), ("Work".to_owned(), LimitKind::Tokens, 10, 10));
    run.grant(&path("Work"), More::tokens(5), "ann").await.unwrap();
    assert_eq!(waits(&run).await, ["Work"], "both are answered, and the round itself may not ask");
    run.grant(&path("Work"), More::tokens(100), "ann").await.unwrap();

    let story = play.story(&run).await;
    assert_eq!(prompt(&story, "Work").outcome, Some(LoopOutcome::Answered));
    assert_eq!(events_named(&story, "LOOP_MODEL_RESULT").len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_fork_has_what_was_granted_by_then_and_is_asked_for_the_rest() {
    let (play, run) = asking(&Journal::default()).await;
    let control = play.test.runner().control();
    let before = run.state().next.0 - 2;
    run.grant(&path("Work"), More::tokens(20), "ann").await.unwrap();
    waits(&run).await;
    let after = run.state().next.0 - 1;

    let states = futures::future::join_all([before, after].map(async |at| {
        let fork = control.fork(run.id(), positronic_core::record::Seq(at), Default::default()).await.unwrap();
        control.state(&fork).await.unwrap()
    }));
    let allowed = states.await.into_iter().map(|state| state.looped(&path("Work")).unwrap().allowance.more.tokens);

    assert_eq!(allowed.collect::<Vec<_>>(), [0, 20]);
}

#[tokio::test(start_paused = true)]
async fn a_request_inside_that_is_put_off_waits_with_the_run_while_more_is_asked_for() {
    let journal = Journal::default();
    let deep =
        || brain("Inner").services::<Journal>().state(Board::default()).r#loop("Deep", |cx| tools(cx.system("")));
    let outer = brain("Outer")
        .services::<Journal>()
        .state(Board::default())
        .r#loop("Work", move |cx| tools(cx.system("")).brain("inner", deep(), |b| b).max_tokens(20).ask_for_more())
        .bind(journal.clone());
    let busy = || Reply::error(ModelError::new(ModelErrorKind::Server, "busy")).after(Duration::from_millis(900));
    let model = ScriptedModel::from_fn(move |request| match (request.path.as_str(), request.attempt) {
        ("Work/0", _) => Reply::calls([("inner", json!({})), ("inner", json!({}))]).usage(tokens(10)),
        ("Work/0.0/Deep/0", 0) => busy(),
        ("Work/0.1/Deep/0", _) => batch([("safe", "deep")]).usage(tokens(10)).after(Duration::from_secs(1)),
        _ => done().usage(tokens(1)),
    });
    let play = Play::of(model, false);
    let run = play.start(outer, ()).await;

    assert_eq!(waits(&run).await, ["Work"]);
    assert_eq!(run.status(), Status::Waiting);
    run.grant(&path("Work"), More::tokens(100), "ann").await.unwrap();

    let story = play.story(&run).await;
    assert!(results(&story, "Work").iter().all(ToolResult::is_success));
}

#[tokio::test(start_paused = true)]
async fn a_step_that_is_held_holds_up_nothing_that_runs_beside_it() {
    for lockstep in [true, false] {
        let journal = Journal::default();
        let inner = || {
            brain("Inner").services::<Journal>().step("Ask", async |cx| {
                let first = cx.model().ask("one").await?;
                tokio::time::sleep(Duration::from_secs(5)).await;
                Ok(first + &cx.model().ask("two").await?)
            })
        };
        let outer = brain("Outer")
            .services::<Journal>()
            .state(Board::default())
            .r#loop("Work", move |cx| tools(cx.system("")).brain("inner", inner(), |b| b).max_tokens(20).ask_for_more())
            .bind(journal.clone());
        let model = ScriptedModel::from_fn(|request| match request.path.as_str() {
            "Work/0" => {
                Reply::calls([("safe", json!({"id": "beside", "takes": 1000})), ("inner", json!({}))]).usage(tokens(10))
            }
            "Work/0.1/Ask/0" | "Work/0.1/Ask/1" => Reply::text("!").usage(tokens(10)),
            _ => done().usage(tokens(1)),
        });
        let play = Play::of(model, lockstep);
        let run = play.start(outer, ()).await;

        assert_eq!(waits(&run).await, ["Work"]);
        assert_eq!(journal.take(), ["beside", "beside-"]);
        run.grant(&path("Work"), More::tokens(100), "ann").await.unwrap();

        let story = play.story(&run).await;
        assert_eq!(results(&story, "Work")[1], ToolResult::success(json!("!!")));
    }
}

/// A run that a person has to let on, with a limit of money in a currency.
fn paid() -> Brain {
    brain("Paid").r#loop("Read", |cx| {
        cx.system("Read.")
            .input("What is there?")
            .max_money("5")
            .tool("look", |t| t.requires_approval("it costs").execute(async |_: NoArgs, _| Ok("seen")))
    })
}

fn worker(store: &MemoryStore, currency: Option<&str>) -> Runner {
    let used = Usage { input: 10, ..Usage::default() };
    let model = ScriptedModel::from_fn(move |request| match request.path.as_str() {
        "Read/0" => Reply::call("look", json!({})).usage(used),
        _ => Reply::text("It was seen.").usage(used),
    });
    let runner = Runner::builder().model(model).store(store.clone()).linger(Duration::ZERO);
    let table = |currency| json!({"as_of": "2026-01-01", "currency": currency, "prices": prices()});
    let table = currency.map(|currency| serde_json::from_value::<PriceTable>(table(currency)).unwrap());
    match table {
        Some(table) => runner.prices(table).build().brain(paid()),
        None => runner.build().brain(paid()),
    }
}

#[tokio::test(start_paused = true)]
async fn a_runner_whose_prices_do_not_fit_leaves_a_run_with_a_limit_of_money_as_it_is() {
    let store = MemoryStore::new();
    let first = worker(&store, Some("EUR"));
    let run = first.start(&paid(), ()).await.unwrap();
    let Settled::Waiting(pending) = run.settled().await else { panic!("a person is asked") };
    run.approve(&pending[0].call, "ann").await.unwrap();
    let id = run.id().clone();
    first.release().await;
    drop(run);

    let without = worker(&store, None).resume(&id).await.map(|_| ()).unwrap_err().to_string();
    let other = worker(&store, Some("USD")).resume(&id).await.map(|_| ()).unwrap_err().to_string();

    assert_eq!(
        without,
        "the run has a limit of money: this runner has no prices; go on with the prices that it began with"
    );
    assert_eq!(
        other,
        "the run has a limit of money: it counts in EUR, and this runner's prices are in USD; go on with the prices that \
         it began with"
    );
    let run = worker(&store, Some("EUR")).resume(&id).await.unwrap();
    assert!(matches!(run.settled().await, Settled::Completed(_)), "the run is as it was");
}

#[tokio::test(start_paused = true)]
async fn what_a_trigger_starts_has_the_budget_of_the_run_that_set_it() {
    let gardener = || brain("Gardener").r#loop("Chat", |cx| cx.system("Water.").plugin(Triggers::new()));
    let used = Usage { input: 1000, ..Usage::default() };
    let create = Reply::call("trigger.create", json!({"what": "water", "in": "1 hour"}));
    let play = Play::new([create, Reply::text("I will."), Reply::text("Watered.").usage(used)]);
    let runner = play.test.runner().clone().brain(gardener());
    let budget = Budget { max_tokens: Some(500), ..Budget::default() };
    let start = Start { budget: Some(budget.clone()), user: Some("ann".to_owned()), ..Start::default() };
    runner.start_with(gardener(), (), start).await.unwrap().result().await.unwrap();

    let timers = runner.control().triggers(&TimerFilter::default()).await.unwrap();
    let fired = runner.fire(&timers[0]).await.unwrap();
    _ = fired.settled().await;

    assert_eq!(fired.state().start.budget, Some(budget));
}
