//! Limits and budgets of outer frames: nested brains, siblings, and later stages.

use std::time::Duration;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{
    Amounts, Budget, LimitKind, LoopOutcome, ModelError, ModelErrorKind, Path, Start, Status, ToolResult, Usage,
};
use positronic_core::runner::Settled;
use positronic_core::store::TimerFilter;
use positronic_core::testing::Story;
use positronic_plugins::Triggers;
use serde_json::json;

use super::{Depth, Then, Whose, asked, budgeted, model, prices, tokens, unbound_tree};
use crate::support::{Board, Journal, Play, batch, done, events_named, path, prompt, results, settled, tools, waits};

#[tokio::test(start_paused = true)]
async fn inner_and_outer_limits_each_ask_their_own_question() {
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
        .r#loop("Work", move |cx| cx.system("").brain("inner", deep()).max_tokens(40).ask_for_more())
        .bind(journal.clone());
    let play = Play::of(model(Depth::Called), true);
    let run = play.start(outer, ()).await;

    assert_eq!(waits(&run).await, ["Work/0.0/Deep"]);
    run.grant(&path("Work/0.0/Deep"), Amounts::tokens(1000), "ann").await.unwrap();
    assert_eq!(waits(&run).await, ["Work"]);
    assert_eq!(asked(&run.pending()), ("Work".to_owned(), LimitKind::Tokens, 40, 41));
    run.reject(&path("Work"), "enough", "ann").await.unwrap();

    let story = play.story(&run).await;
    assert!(matches!(story.settled(), Settled::Completed(_)), "by `OnLimit::Exit` of the one around");
    assert!(matches!(&results(&story, "Work")[0], ToolResult::Interrupted { reason } if reason.contains("tokens")));
    assert_eq!(prompt(&story, "Work/0.0/Deep").outcome, Some(LoopOutcome::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn decision_about_a_sibling_call_runs_it_while_a_limit_question_is_pending() {
    let journal = Journal::default();
    let deep =
        || brain("Inner").services::<Journal>().state(Board::default()).r#loop("Deep", |cx| tools(cx.system("")));
    let outer = brain("Outer")
        .services::<Journal>()
        .state(Board::default())
        .r#loop("Work", move |cx| tools(cx.system("")).brain("inner", deep()).max_tokens(20).ask_for_more())
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
    run.grant(&path("Work"), Amounts::tokens(100), "ann").await.unwrap();

    let story = play.story(&run).await;
    assert!(results(&story, "Work").iter().all(ToolResult::is_success));
}

#[tokio::test(start_paused = true)]
async fn exhausted_budget_allows_later_steps_and_no_later_model_call() {
    for kind in [LimitKind::Tokens, LimitKind::Iterations] {
        let journal = Journal::default();
        let two = brain("Two")
            .services::<Journal>()
            .state(Board::default())
            .r#loop("First", |cx| tools(cx.system("")))
            .step("Save", async |cx| {
                cx.services.note("saved");
                Ok(cx.state)
            })
            .r#loop("Second", |cx| {
                tools(cx.system("")).on_exit(|board, outcome| board.done.push(format!("{outcome:?}")))
            })
            .budget(|budget| match kind {
                LimitKind::Iterations => budget.max_iterations(1).on_limit(OnLimit::Exit),
                _ => budget.max_tokens(10).on_limit(OnLimit::Exit),
            })
            .bind(journal.clone());
        let play = Play::new([batch([("safe", "a")]).usage(tokens(10))]);

        let story = play.run(two, ()).await;

        assert_eq!(journal.take(), ["a", "saved"], "{kind:?}");
        assert_eq!(*story.state(), json!({"done": ["a", format!("Limit {{ limit: {kind:?} }}")]}));
        assert_eq!(events_named(&story, "LOOP_LIMIT"), ["First", "Second"], "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn loop_after_rejected_iterations_calls_no_model() {
    let journal = Journal::default();
    let two = brain("Two").services::<Journal>().state(Board::default());
    let two = two.r#loop("First", |cx| tools(cx.system(""))).r#loop("Second", |cx| tools(cx.system("")));
    let two = two.budget(|budget| budget.max_iterations(1).ask_for_more().on_limit(OnLimit::Exit)).bind(journal);
    let play = Play::new([Reply::text("One answer is enough.")]);
    let run = play.start(two, ()).await;
    waits(&run).await;

    run.reject(&Path::root(), "enough", "ann").await.unwrap();

    let story = Story::of(&run).await;
    assert!(matches!(story.settled(), Settled::Completed(_)), "{:?}", story.settled());
    assert_eq!(events_named(&story, "LOOP_MODEL_CALL"), ["First/0"]);
    assert_eq!(events_named(&story, "LOOP_LIMIT"), ["Second"]);
}

#[tokio::test(start_paused = true)]
async fn start_limits_override_the_authors_budget() {
    let journal = Journal::default();
    let author = unbound_tree(LimitKind::Tokens, Depth::Own, Whose::Brains, Then::Exit);
    let author = budgeted(author, LimitKind::Iterations, Then::Exit).bind(journal.clone());
    let budget = positronic_core::record::Budget::default().max_tokens(10).on_limit(OnLimit::Error);
    let play = Play::priced(model(Depth::Own), true, &prices());
    let start = Start { budget: Some(budget), ..Start::default() };
    let run = play.test.runner().start_with(author, (), start).await.unwrap();

    let Settled::Failed(failure) = settled(&run).await else { panic!() };

    assert_eq!(failure.message, "the brain `Outer` used up its budget of tokens in the loop `Work`: 10 tokens");
    assert_eq!(journal.take(), ["job"]);
}

#[tokio::test(start_paused = true)]
async fn delayed_inner_request_waits_while_a_limit_question_is_pending() {
    let journal = Journal::default();
    let deep =
        || brain("Inner").services::<Journal>().state(Board::default()).r#loop("Deep", |cx| tools(cx.system("")));
    let outer = brain("Outer")
        .services::<Journal>()
        .state(Board::default())
        .r#loop("Work", move |cx| tools(cx.system("")).brain("inner", deep()).max_tokens(20).ask_for_more())
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
    run.grant(&path("Work"), Amounts::tokens(100), "ann").await.unwrap();

    let story = play.story(&run).await;
    assert!(results(&story, "Work").iter().all(ToolResult::is_success));
}

#[tokio::test(start_paused = true)]
async fn blocked_step_does_not_block_its_siblings() {
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
            .r#loop("Work", move |cx| tools(cx.system("")).brain("inner", inner()).max_tokens(20).ask_for_more())
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
        run.grant(&path("Work"), Amounts::tokens(100), "ann").await.unwrap();

        let story = play.story(&run).await;
        assert_eq!(results(&story, "Work")[1], ToolResult::success(json!("!!")));
    }
}

#[tokio::test(start_paused = true)]
async fn triggered_run_inherits_the_budget_of_its_creator() {
    let gardener = || brain("Gardener").r#loop("Chat", |cx| cx.system("Water.").plugin(Triggers::new()));
    let used = Usage { input: 1000, ..Usage::default() };
    let create = Reply::call("trigger.create", json!({"what": "water", "in": "1 hour"}));
    let play = Play::new([create, Reply::text("I will."), Reply::text("Watered.").usage(used)]);
    let runner = play.test.runner().clone().brain(gardener());
    let budget = Budget::default().max_tokens(500);
    let start = Start { budget: Some(budget.clone()), user: Some("ann".to_owned()), ..Start::default() };
    runner.start_with(gardener(), (), start).await.unwrap().result().await.unwrap();

    let timers = runner.client().triggers(&TimerFilter::default()).await.unwrap();
    let fired = runner.fire(&timers[0]).await.unwrap();
    _ = fired.settled().await;

    assert_eq!(fired.state().start.budget, Some(budget));
}
