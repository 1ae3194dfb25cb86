//! Limits: iterations, tokens over the tree, active time; and how a loop ends.

use std::time::Duration;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{
    EndReason, EventKind, LimitKind, LimitReached, LoopOutcome, ModelError, ModelErrorKind, ToolResult, Usage,
};
use positronic_core::runner::Settled;
use positronic_core::store::MemoryStore;
use positronic_core::testing::{CountedIds, Story, Test, TestClock};
use positronic_store_suite::{Fault, FaultyStore};
use serde_json::json;

use crate::support::{
    Board, Journal, Play, ShopLoop, batch, done, events_named, path, prompt, results, slow_batch, tools, waits, worker,
    workshop,
};

fn tokens(input: u64, output: u64) -> Usage {
    Usage { input, output, ..Usage::default() }
}

fn exiting(config: ShopLoop) -> ShopLoop {
    tools(config).tools([worker("finish", |t| t.exit())])
}

fn limit_of(story: &Story) -> (String, LimitKind, u64, u64) {
    let found = story.log().iter().find_map(|event| match &event.kind {
        EventKind::LoopLimit(LimitReached { kind, limit, used, .. }) => {
            Some((event.path.to_string(), *kind, *limit, *used))
        }
        _ => None,
    });
    found.expect("a limit ended a loop")
}

#[tokio::test(start_paused = true)]
async fn iteration_limit_ends_a_loop_and_the_brain_continues() {
    let journal = Journal::default();
    let counted = brain("Counted")
        .services::<Journal>()
        .state(Board::default())
        .r#loop("Work", |cx| tools(cx.system("")).max_iterations(2))
        .step("After", async |cx| Ok(cx.state.done.len()))
        .bind(journal);
    let play = Play::new([batch([("safe", "a")]), batch([("safe", "b")])]);

    let story = play.run(&counted, ()).await;

    assert_eq!(*story.settled(), Settled::Completed(json!(2)));
    assert_eq!(events_named(&story, "LOOP_MAX_ITERATIONS"), ["Work"]);
    assert_eq!(prompt(&story, "Work").outcome, Some(LoopOutcome::MaxIterations));
}

#[tokio::test(start_paused = true)]
async fn iteration_limit_can_fail_the_brain() {
    let journal = Journal::default();
    let play = Play::new([batch([("safe", "a")])]);
    let strict = |config| tools(config).max_iterations(1).on_max_iterations(OnLimit::Error);

    let story = play.run(&workshop(&journal, strict), ()).await;

    let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
    assert_eq!(failure.code, EndReason::Limit);
    assert_eq!(failure.message, "the loop `Work` used up its 1 iterations without coming to an end");
}

#[tokio::test(start_paused = true)]
async fn default_limit_is_fifty_iterations() {
    let journal = Journal::default();
    let model = ScriptedModel::from_fn(|_| batch([("safe", "again")]));

    let story = Play::of(model, true).run(&workshop(&journal, tools), ()).await;

    assert_eq!(journal.take().len(), 50);
    assert_eq!(prompt(&story, "Work").outcome, Some(LoopOutcome::MaxIterations));
}

#[tokio::test(start_paused = true)]
async fn unlimited_loop_continues() {
    let journal = Journal::default();
    let model =
        ScriptedModel::from_fn(
            |request| {
                if request.path == path("Work/60") { done() } else { batch([("safe", "again")]) }
            },
        );

    let story = Play::of(model, true).run(&workshop(&journal, |config| tools(config).unlimited()), ()).await;

    assert_eq!(prompt(&story, "Work").outcome, Some(LoopOutcome::Answered));
}

#[tokio::test(start_paused = true)]
async fn token_limit_ends_a_loop_before_the_next_model_call() {
    let journal = Journal::default();
    let play = Play::new([batch([("safe", "a")]).usage(tokens(30, 10)), batch([("safe", "b")]).usage(tokens(50, 10))]);

    let story = play.run(&workshop(&journal, |config| tools(config).max_tokens(100)), ()).await;

    assert_eq!(journal.take(), ["a", "b"], "paid calls run");
    assert_eq!(limit_of(&story), ("Work".to_owned(), LimitKind::Tokens, 100, 100));
    assert!(matches!(story.settled(), Settled::Completed(_)));
    let usage = story.log().iter().find_map(|event| match event.kind {
        EventKind::LoopComplete { usage, .. } => Some(usage),
        _ => None,
    });
    assert_eq!(usage, Some(tokens(80, 20)));
}

#[tokio::test(start_paused = true)]
async fn token_limit_can_fail_the_brain() {
    let journal = Journal::default();
    let play = Play::new([batch([("safe", "a")]).usage(tokens(100, 0))]);
    let strict = |config| tools(config).max_tokens(100).on_max_iterations(OnLimit::Error);

    let story = play.run(&workshop(&journal, strict), ()).await;

    let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
    assert_eq!(failure.message, "the loop `Work` used up its limit of tokens without coming to an end");
}

#[tokio::test(start_paused = true)]
async fn exit_tool_in_the_iteration_of_the_last_token_ends_the_loop_normally() {
    let journal = Journal::default();
    let play = Play::new([batch([("safe", "a"), ("finish", "x")]).usage(tokens(500, 500))]);

    let story = play.run(&workshop(&journal, |config| exiting(config).max_tokens(100)), ()).await;

    assert_eq!(prompt(&story, "Work").outcome, Some(LoopOutcome::Exited { tool: "finish".to_owned() }));
    assert_eq!(journal.take(), ["a", "x"]);
}

#[tokio::test(start_paused = true)]
async fn text_in_the_iteration_of_the_last_token_is_the_answer() {
    let journal = Journal::default();
    let play = Play::new([done().usage(tokens(500, 500))]);

    let story = play.run(&workshop(&journal, |config| tools(config).max_tokens(100)), ()).await;

    assert_eq!(prompt(&story, "Work").outcome, Some(LoopOutcome::Answered));
}

/// A loop `Work` whose tool `inner` is a brain with its own loop `Deep`.
fn nested(journal: &Journal, limit: u64) -> Brain<(), Board> {
    let inner =
        || brain("Inner").services::<Journal>().state(Board::default()).r#loop("Deep", |cx| tools(cx.system("")));
    brain("Outer")
        .services::<Journal>()
        .state(Board::default())
        .r#loop("Work", move |cx| tools(cx.system("")).brain("inner", inner()).max_tokens(limit))
        .bind(journal.clone())
}

#[tokio::test(start_paused = true)]
async fn tokens_of_a_nested_brain_count_for_the_outer_loop() {
    let journal = Journal::default();
    let play = Play::of(
        ScriptedModel::new([Reply::call("inner", json!({})).usage(tokens(10, 0))])
            .on("Work/0.0/Deep", [done().usage(tokens(60, 40))]),
        true,
    );

    let story = play.run(&nested(&journal, 100), ()).await;

    assert_eq!(limit_of(&story), ("Work".to_owned(), LimitKind::Tokens, 100, 110));
    assert!(results(&story, "Work")[0].is_success());
}

#[tokio::test(start_paused = true)]
async fn nested_brain_that_exhausts_the_outer_tokens_ends_with_typed_results() {
    let journal = Journal::default();
    let play = Play::of(
        ScriptedModel::new([Reply::call("inner", json!({})).usage(tokens(10, 0))])
            .on("Work/0.0/Deep", [batch([("safe", "a")]).usage(tokens(60, 40))]),
        true,
    );

    let story = play.run(&nested(&journal, 100), ()).await;

    assert_eq!(journal.take(), ["a"], "paid calls run");
    assert_eq!(limit_of(&story).0, "Work");
    assert_eq!(prompt(&story, "Work/0.0/Deep").outcome, Some(LoopOutcome::Cancelled));
    assert!(matches!(&results(&story, "Work")[0], ToolResult::Interrupted { reason } if reason.contains("tokens")));
    assert_eq!(events_named(&story, "BRAIN_CANCELLED"), ["Work/0.0"]);
    assert!(matches!(story.settled(), Settled::Completed(_)), "the limit's own frame ends by `OnLimit::Exit`");
}

#[tokio::test(start_paused = true)]
async fn delayed_inner_request_ends_with_the_outer_limit() {
    let journal = Journal::default();
    let busy = Reply::error(ModelError::new(ModelErrorKind::Server, "busy")).after(Duration::from_secs(2));
    let play = Play::of(ScriptedModel::new([Reply::call("inner", json!({}))]).on("Work/0.0/Work", [busy]), false);
    let inner = workshop(&journal, tools);
    let timed = brain("Timed")
        .r#loop("Work", move |cx| cx.system("").max_time(Duration::from_secs(1)).brain("inner", inner.clone()));

    let story = play.run(&timed, ()).await;

    assert_eq!(limit_of(&story), ("Work".to_owned(), LimitKind::Time, 1_000_000, 2_000_000));
    assert!(matches!(story.settled(), Settled::Completed(_)), "{:?}", story.settled());
}

#[tokio::test(start_paused = true)]
async fn limit_reached_while_brains_begin_ends_the_remaining_ones() {
    // The second brain begins later than the outer limit, so the first one's iteration is the last that begins.
    let store = FaultyStore::new(MemoryStore::new(), |_, append| {
        let begins = append.events.iter().any(|event| event.path == path("Work/0.1"));
        let begins = begins && append.events.iter().any(|event| event.kind.name() == "LOOP_BRAIN_START");
        begins.then_some(Fault::Slow(Duration::from_secs(2)))
    });
    let both = Reply::calls([("inner", json!({})), ("inner", json!({}))]);
    let runner =
        Runner::new(ScriptedModel::new([both])).store(store).clock(TestClock::default()).ids(CountedIds::default());
    let inner = workshop(&Journal::default(), tools);
    let timed = brain("Timed")
        .r#loop("Work", move |cx| cx.system("").max_time(Duration::from_secs(1)).brain("inner", inner.clone()));

    let story = Test::with(runner).run(timed, ()).await;

    assert!(matches!(story.settled(), Settled::Completed(_)), "{:?}", story.settled());
    assert_eq!(limit_of(&story), ("Work".to_owned(), LimitKind::Time, 1_000_000, 2_000_000));
    assert_eq!(events_named(&story, "BRAIN_CANCELLED"), ["Work/0.0", "Work/0.1"]);
}

#[tokio::test(start_paused = true)]
async fn inner_limit_ends_only_the_inner_loop() {
    let journal = Journal::default();
    let inner = || {
        brain("Inner")
            .services::<Journal>()
            .state(Board::default())
            .r#loop("Deep", |cx| tools(cx.system("")).max_tokens(50).on_max_iterations(OnLimit::Error))
    };
    let outer = brain("Outer")
        .services::<Journal>()
        .state(Board::default())
        .r#loop("Work", move |cx| cx.system("").brain("inner", inner()))
        .bind(journal);
    let play = Play::of(
        ScriptedModel::new([Reply::call("inner", json!({})), done()])
            .on("Work/0.0/Deep", [batch([("safe", "a")]).usage(tokens(60, 0))]),
        true,
    );

    let story = play.run(&outer, ()).await;

    assert_eq!(
        play.last_results(),
        ["Error: the loop `Work/0.0/Deep` used up its limit of tokens without coming to an end"]
    );
    assert!(matches!(story.settled(), Settled::Completed(_)));
}

#[tokio::test(start_paused = true)]
async fn time_of_models_and_tools_counts() {
    let journal = Journal::default();
    for lockstep in [true, false] {
        let replies = [
            slow_batch([("safe", "a", 4000)]).after(Duration::from_secs(2)),
            slow_batch([("safe", "b", 1000), ("safe", "c", 3000)]).after(Duration::from_secs(3)),
        ];
        let play = Play::of(ScriptedModel::new(replies), lockstep);
        let timed = workshop(&journal, |config| tools(config).max_time(Duration::from_secs(12)));

        let story = play.run(&timed, ()).await;

        assert_eq!(limit_of(&story), ("Work".to_owned(), LimitKind::Time, 12_000_000, 12_000_000));
    }
}

#[tokio::test(start_paused = true)]
async fn suspended_time_does_not_count() {
    let journal = Journal::default();
    let asking = |config: ShopLoop| {
        tools(config).max_time(Duration::from_secs(5)).tool("ask", |t| {
            t.wait(|_: &crate::support::Job, _| [webhook::<NoArgs>("go").on("1")]).execute(crate::support::work)
        })
    };
    let play = Play::new([
        batch([("gated", "a"), ("ask", "b")]),
        slow_batch([("safe", "c", 1000)]).after(Duration::from_secs(1)),
        batch([("gated", "d")]),
        done(),
    ]);
    let run = play.start(&workshop(&journal, asking), ()).await;
    waits(&run).await;
    tokio::time::advance(Duration::from_hours(1)).await;
    run.approve(&path("Work/0.0"), "ann").await.unwrap();
    waits(&run).await;
    tokio::time::advance(Duration::from_hours(1)).await;
    run.webhook("go", "1", json!({})).await.unwrap();
    waits(&run).await;
    run.pause().await.unwrap();
    tokio::time::advance(Duration::from_hours(1)).await;
    run.resume().await.unwrap();
    tokio::time::advance(Duration::from_hours(1)).await;
    run.reject(&path("Work/2.0"), "no", "ann").await.unwrap();

    let story = play.story(&run).await;

    assert_eq!(prompt(&story, "Work").outcome, Some(LoopOutcome::Answered));
}

#[tokio::test(start_paused = true)]
async fn retry_delay_counts_as_active_time() {
    let journal = Journal::default();
    let flaky = |config: ShopLoop| {
        config.max_time(Duration::from_secs(1)).tool("flaky", |t| {
            t.read_only().execute(
                async |_: crate::support::Job, cx: crate::support::Shop| {
                    if cx.services.count() < 3 { Err(Error::transient("not yet")) } else { Ok(()) }
                },
            )
        })
    };
    let play = Play::new([batch([("flaky", "a")])]);

    let story = play.run(&workshop(&journal, flaky), ()).await;

    assert_eq!(limit_of(&story), ("Work".to_owned(), LimitKind::Time, 1_000_000, 1_500_000));
}

#[tokio::test(start_paused = true)]
async fn on_exit_folds_the_outcome_into_the_state() {
    for (replies, expected) in [
        (vec![done()], "Answered"),
        (vec![batch([("safe", "a")]), batch([("safe", "b")])], "MaxIterations"),
        (vec![batch([("safe", "a")]).usage(tokens(99, 0))], "Limit { limit: Tokens }"),
    ] {
        let journal = Journal::default();
        let folding = |config: ShopLoop| {
            tools(config)
                .max_iterations(2)
                .max_tokens(50)
                .on_exit(|board, outcome| board.done = vec![format!("{outcome:?}")])
        };

        let story = Play::new(replies).run(&workshop(&journal, folding), ()).await;

        assert_eq!(*story.state(), json!({ "done": [expected] }));
    }
}

#[tokio::test(start_paused = true)]
async fn panic_in_on_exit_fails_the_brain() {
    let journal = Journal::default();
    let play = Play::new([done()]);

    let story = play.run(&workshop(&journal, |config| tools(config).on_exit(|_, _| panic!("no"))), ()).await;

    let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
    assert_eq!(
        (failure.code, failure.message.as_str()),
        (EndReason::State, "`on_exit` of the loop `Work` failed: the code panicked: no")
    );
}

#[tokio::test(start_paused = true)]
async fn text_does_not_end_a_loop_with_exit_tools_and_the_model_gets_a_reminder() {
    let journal = Journal::default();
    let play = Play::new([done(), batch([("finish", "x")])]);

    let story = play.run(&workshop(&journal, exiting), ()).await;

    assert_eq!(
        story.transcript(),
        "# Work\nuser: begin\nassistant: Done.\nengine: Call a tool. Text alone does not finish this task: when it is done, call `finish`.\n\
         finish({\"id\":\"x\"}) -> x done\n= {\"type\":\"exited\",\"tool\":\"finish\"}\n"
    );
}

#[tokio::test(start_paused = true)]
async fn model_that_only_writes_text_in_a_loop_with_exit_tools_reaches_the_limit() {
    let journal = Journal::default();
    let model = ScriptedModel::from_fn(|_| done());

    let story = Play::of(model, true).run(&workshop(&journal, |config| exiting(config).max_iterations(3)), ()).await;

    assert_eq!(prompt(&story, "Work").outcome, Some(LoopOutcome::MaxIterations));
    assert_eq!(events_named(&story, "LOOP_MESSAGE").len(), 3);
}
