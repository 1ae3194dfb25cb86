//! Failures at three levels: an action, a model, a run; and how a loop ends with a partial result.

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{
    EndReason, EventKind, LimitKind, LimitReached, LoopOutcome, Message, ModelError, ModelErrorKind, ModelRequest,
    SignalKind, ToolResult, Usage,
};
use positronic_core::runner::{Fork, Settled};
use positronic_core::testing::Story;
use positronic_plugins::Compaction;
use serde_json::{Value, json};

use crate::support::{
    Board, Journal, Play, ShopBuilder, ShopLoop, batch, done, error_of, events_named, prompt, results, worker, workshop,
};

fn job(id: &str, fails: bool) -> Value {
    json!({ "id": id, "fails": fails })
}

fn bad(id: &str) -> Reply {
    Reply::call("safe", job(id, true))
}

fn exiting(config: ShopLoop) -> ShopLoop {
    config.tools([worker("safe", |t| t), worker("finish.work", ShopBuilder::exit)])
}

fn plain(config: ShopLoop) -> ShopLoop {
    config.tools([worker("safe", |t| t)])
}

fn tool_names(request: &ModelRequest) -> Vec<&str> {
    request.tools.tools().iter().map(|tool| tool.id.as_str()).collect()
}

fn last_message(request: &ModelRequest) -> String {
    match request.messages.messages().pop() {
        Some(Message::User { text, .. } | Message::Tool { text, .. }) => text,
        other => panic!("{other:?}"),
    }
}

fn outcome(story: &Story) -> LoopOutcome {
    prompt(story, "Work").outcome.unwrap()
}

#[tokio::test(start_paused = true)]
async fn failed_action_is_reported_with_its_reason_and_the_model_selects_again() {
    let journal = Journal::default();
    let play = Play::new([
        bad("a"),
        Reply::calls([("safe", json!({ "id": 7 }))]),
        Reply::call("safe", job("b", false)),
        done(),
    ]);

    let story = play.run(&workshop(&journal, plain), ()).await;

    let results = results(&story, "Work");
    assert_eq!(error_of(&results[0]), "a broke");
    assert_eq!(error_of(&results[1]), "the arguments do not match the schema: at `/id`: 7 is not of type \"string\"");
    assert_eq!(results[2], ToolResult::success("b done"));
    assert_eq!(last_message(&play.requests()[1]), "Error: a broke");
    assert_eq!(outcome(&story), LoopOutcome::Answered);
}

#[tokio::test(start_paused = true)]
async fn failed_model_is_retried_and_then_fails_the_run_with_a_typed_error() {
    let journal = Journal::default();
    let down = || Reply::error(ModelError::new(ModelErrorKind::Server, "down"));
    let play =
        Play::new([down(), down(), Reply::call("safe", job("a", false)), down(), down(), down(), down(), done()]);
    let brain = workshop(&journal, plain);
    let run = play.start(&brain, ()).await;

    let story = play.story(&run).await;

    let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
    assert_eq!((failure.code, failure.retryable), (EndReason::Model, true));
    assert_eq!(events_named(&story, "LOOP_MODEL_RETRY").len(), 2 + 3);
    // A failed run continues in a fork from the last successful event.
    let good = story.log().iter().rfind(|event| event.kind.name() == "LOOP_TOOL_RESULT").unwrap().seq;
    let again = play.test.runner().clone().brain(&brain);
    let fork = again.fork(run.id(), good, Fork::default()).await.unwrap();
    assert!(matches!(fork.settled().await, Settled::Completed(_)));
    assert_eq!(journal.take(), ["a"], "completed effects are not repeated");
}

#[tokio::test(start_paused = true)]
async fn consecutive_failures_end_a_loop_and_a_success_resets_the_count() {
    let journal = Journal::default();
    let limited = |config| plain(config).max_failures(3);
    let nope = || Reply::call("nope", json!({}));
    let play = Play::new([bad("a"), bad("b"), Reply::call("safe", job("c", false)), bad("d"), nope(), bad("e")]);

    let story = play.run(&workshop(&journal, limited), ()).await;

    assert_eq!(outcome(&story), LoopOutcome::Limit { limit: LimitKind::Failures });
    let reached = story.log().iter().find_map(|event| match event.kind {
        EventKind::LoopLimit(LimitReached { kind, limit, used, .. }) => Some((kind, limit, used)),
        _ => None,
    });
    assert_eq!(reached, Some((LimitKind::Failures, 3, 3)));
    assert!(matches!(story.settled(), Settled::Completed(_)), "the brain continues with the partial result");
}

#[tokio::test(start_paused = true)]
async fn consecutive_failures_can_fail_the_brain() {
    let journal = Journal::default();
    let strict = |config| plain(config).max_failures(1).on_max_iterations(OnLimit::Error);
    let play = Play::new([bad("a")]);

    let story = play.run(&workshop(&journal, strict), ()).await;

    let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
    assert_eq!(failure.message, "the loop `Work` used up its limit of failures without coming to an end");
}

#[tokio::test(start_paused = true)]
async fn loop_summarizes_in_one_last_iteration_with_only_its_exit_tools() {
    let journal = Journal::default();
    let wraps = |config| exiting(config).max_iterations(2).wrap_up();
    let play = Play::new([batch([("safe", "a")]), batch([("safe", "b")]), batch([("finish.work", "end")])]);

    let story = play.run(&workshop(&journal, wraps), ()).await;

    assert_eq!(journal.take(), ["a", "b", "end"]);
    assert_eq!(events_named(&story, "LOOP_MAX_ITERATIONS"), ["Work"], "the limit is in the log");
    assert_eq!(events_named(&story, "LOOP_ITERATION"), ["Work/0", "Work/1", "Work/2"]);
    assert_eq!(outcome(&story), LoopOutcome::Exited { tool: "finish.work".to_owned() });
    let last = play.last_request();
    assert_eq!(tool_names(&last), ["finish.work"]);
    assert_eq!(
        last_message(&last),
        "The limit of this task is reached, and this is your last answer. No other tools are available. Call \
         `finish_work` with what you have so far, and say what is missing."
    );
}

#[tokio::test(start_paused = true)]
async fn loop_without_exit_tools_summarizes_in_text_and_ends_by_its_limit() {
    let journal = Journal::default();
    let wraps = |config| plain(config).max_iterations(1).wrap_up();
    let play = Play::new([batch([("safe", "a")]), Reply::text("I have a, and b is missing.")]);

    let story = play.run(&workshop(&journal, wraps), ()).await;

    assert_eq!(outcome(&story), LoopOutcome::MaxIterations);
    assert!(play.last_request().tools.tools().is_empty());
    assert!(last_message(&play.last_request()).contains("available. Answer with what you have"));
    assert!(story.transcript().contains("assistant: I have a, and b is missing."), "the partial result is kept");
}

#[tokio::test(start_paused = true)]
async fn no_iteration_follows_the_last_one_whatever_the_model_answers() {
    let journal = Journal::default();
    for last in [
        Reply::text("I would go on."),
        batch([("safe", "more")]),
        Reply::call("finish.work", job("end", true)),
        Reply::call("nope", json!({})),
    ] {
        let wraps = |config| exiting(config).max_iterations(1).on_max_iterations(OnLimit::Error).wrap_up();
        let play = Play::new([batch([("safe", "a")]), last]);

        let story = play.run(&workshop(&journal, wraps), ()).await;

        let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
        assert_eq!(failure.code, EndReason::Limit, "the limit applies");
        assert_eq!(events_named(&story, "LOOP_MODEL_CALL").len(), 2);
        assert!(!journal.take().contains(&"more".to_owned()), "no other tool is offered");
    }
}

#[tokio::test(start_paused = true)]
async fn token_or_failure_limit_leaves_an_iteration_for_the_summary() {
    let journal = Journal::default();
    let used = Usage { input: 100, ..Usage::default() };
    let tokens = |config| exiting(config).max_tokens(100).wrap_up();
    let play = Play::new([batch([("safe", "a")]).usage(used), batch([("finish.work", "end")]).usage(used)]);
    let story = play.run(&workshop(&journal, tokens), ()).await;
    assert_eq!(outcome(&story), LoopOutcome::Exited { tool: "finish.work".to_owned() });
    assert_eq!(events_named(&story, "LOOP_LIMIT"), ["Work"]);

    let failures = |config| exiting(config).max_failures(1).wrap_up();
    let play = Play::new([bad("a"), batch([("finish.work", "end")])]);
    let story = play.run(&workshop(&journal, failures), ()).await;
    assert_eq!(outcome(&story), LoopOutcome::Exited { tool: "finish.work".to_owned() });

    // A text where an exit tool is required has begun an iteration that is not repeated.
    let play = Play::new([Reply::text("Hm.").usage(used), batch([("finish.work", "end")])]);
    let story = play.run(&workshop(&journal, tokens), ()).await;
    assert_eq!(events_named(&story, "LOOP_ITERATION"), ["Work/0", "Work/1"]);
    assert_eq!(outcome(&story), LoopOutcome::Exited { tool: "finish.work".to_owned() });
}

#[tokio::test(start_paused = true)]
async fn structured_loop_summarizes_with_its_exit_actions() {
    let journal = Journal::default();
    let wraps = |config| exiting(config).structured_actions().max_iterations(1).wrap_up();
    let play = Play::new([
        Reply::action("Due.", "safe", job("a", false)),
        Reply::action("Amounts.", "safe", job("b", false)),
        Reply::action("Well.", "finish.work", job("end", false)),
    ]);

    let story = play.run(&workshop(&journal, wraps), ()).await;

    assert_eq!(journal.take(), ["a", "end"]);
    assert_eq!(events_named(&story, "LOOP_ANSWER_REFUSED"), ["Work/1"], "no other action is offered");
    assert_eq!(outcome(&story), LoopOutcome::Exited { tool: "finish.work".to_owned() });
}

#[tokio::test(start_paused = true)]
async fn message_during_the_last_iteration_is_refused_and_begins_no_other() {
    let journal = Journal::default();
    let gated = |config: ShopLoop| {
        config
            .tools([worker("safe", |t| t), worker("finish.work", |t| t.exit().requires_approval("sure?"))])
            .max_iterations(1)
            .wrap_up()
    };
    let play = Play::new([batch([("safe", "a")]), batch([("finish.work", "end")])]);
    let brain = workshop(&journal, gated);
    let run = play.start(&brain, ()).await;
    assert_eq!(crate::support::waits(&run).await, ["Work/1.0"]);

    assert!(run.message("Wait, there is more!", "ann").await.is_err(), "no iteration would read it");
    let reject = SignalKind::Reject { call: crate::support::path("Work/1.0"), reason: None };
    run.signal(reject, positronic_core::record::Actor::default()).await.unwrap();
    let story = play.story(&run).await;

    assert_eq!(outcome(&story), LoopOutcome::MaxIterations);
    assert_eq!(events_named(&story, "LOOP_MODEL_CALL").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn outer_budget_also_limits_the_summary_iteration() {
    let used = Usage { input: 10, ..Usage::default() };
    let play = Play::new([Reply::call("look", json!({})).usage(used)]);
    let brain = brain("Thrifty")
        .r#loop("Work", |cx| {
            cx.system("").max_tokens(10).wrap_up().tool("look", |t| t.execute(async |_: NoArgs, _| Ok("seen")))
        })
        .budget(|budget| budget.max_tokens(10));

    let story = play.run(&brain, ()).await;

    assert_eq!(events_named(&story, "LOOP_MODEL_CALL").len(), 1);
    assert_eq!(events_named(&story, "BRAIN_ERROR").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn plugin_may_ask_in_the_summary_iteration() {
    let used = Usage { input: 10, ..Usage::default() };
    let look = || Reply::call("look", json!({})).usage(used);
    let summary = Reply::text("All was looked at.").usage(used);
    let play = Play::new([look(), look(), look(), look(), summary, Reply::text("Summed up.").usage(used)]);
    let brain = brain("Thrifty").r#loop("Work", |cx| {
        cx.system("")
            .input("Look around.")
            .max_tokens(40)
            .wrap_up()
            .plugin(Compaction::new().iterations(4).keep(2))
            .tool("look", |t| t.execute(async |_: NoArgs, _| Ok("seen")))
    });

    let story = play.run(&brain, ()).await;

    assert_eq!(events_named(&story, "LOOP_COMPACTED").len(), 1);
    assert_eq!(events_named(&story, "LOOP_COMPLETE").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn outer_limit_ends_a_summarizing_loop() {
    let used = Usage { input: 60, ..Usage::default() };
    let inner = brain("Inner").r#loop("Ask", |cx| {
        cx.system("").max_iterations(1).wrap_up().tool("look", |t| t.execute(async |_: NoArgs, _| Ok("seen")))
    });
    let outer = brain("Outer").state(Board::default()).r#loop("Work", move |cx| {
        cx.system("").max_tokens(100).tool("inner", |t| t.brain(inner.clone()).description("Asks"))
    });
    let model =
        ScriptedModel::new([Reply::call("inner", json!({})).usage(used), Reply::call("look", json!({})).usage(used)]);
    let play = Play::of(model, true);

    let story = play.run(&outer, ()).await;

    assert_eq!(outcome(&story), LoopOutcome::Limit { limit: LimitKind::Tokens });
    assert!(matches!(results(&story, "Work")[0], ToolResult::Interrupted { .. }));
}

#[tokio::test(start_paused = true)]
async fn error_of_a_loops_closure_fails_the_loop_with_its_message() {
    let reader = brain("Reader").state("7 pages".to_owned()).r#loop("Read", |cx| {
        let pages: u32 = cx.state.parse().map_err(|error| Error::new(format!("cannot count the pages: {error}")))?;
        Ok(cx.system(format!("Read {pages} pages.")))
    });

    let story = Play::new([]).run(&reader, ()).await;

    let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
    let why = "the loop `Read` cannot be configured: cannot count the pages: invalid digit found in string";
    assert_eq!(failure.message, why);
}
