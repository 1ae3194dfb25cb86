//! Exit tools: what stands before and behind one, and what comes of it where it fails or is rejected.

use positronic_core::model::scripted::Reply;
use positronic_core::record::{Actor, LoopOutcome, SignalKind, ToolResult};
use serde_json::json;

use crate::support::{
    Job, Journal, Play, ShopBuilder, batch, done, events_named, path, prompt, results, slow_batch, success, tools,
    waits, work, worker, workshop,
};

fn with_exit(flags: fn(ShopBuilder) -> ShopBuilder) -> impl Fn(crate::support::ShopLoop) -> crate::support::ShopLoop {
    move |config| tools(config).tools([worker("finish", move |t| flags(t.exit()))])
}

#[tokio::test(start_paused = true)]
async fn an_exit_tool_waits_for_what_stands_before_it_and_nothing_behind_it_starts() {
    let journal = Journal::default();
    let jobs = [("safe", "a", 50), ("finish", "x", 0), ("gated", "g", 0), ("safe", "c", 0), ("read", "r", 0)];
    let play = Play::free([slow_batch(jobs)]);

    let story = play.run(&workshop(&journal, with_exit(|t| t)), ()).await;

    assert_eq!(journal.take(), ["a", "a-", "x"]);
    assert_eq!(events_named(&story, "LOOP_APPROVAL_REQUESTED"), ["Work/0.2"]);
    assert_eq!(events_named(&story, "LOOP_APPROVAL_WITHDRAWN"), ["Work/0.2"]);
    let results = results(&story, "Work");
    for skipped in &results[2..] {
        assert_eq!(*skipped, ToolResult::Skipped { reason: "it came after the exit tool `finish`".to_owned() });
    }
    assert_eq!(prompt(&story, "Work").outcome, Some(LoopOutcome::Exited { tool: "finish".to_owned() }));
}

#[tokio::test(start_paused = true)]
async fn an_exit_tool_waits_for_an_undecided_call_before_it() {
    let journal = Journal::default();
    let play = Play::new([batch([("gated", "a"), ("finish", "x")])]);
    let run = play.start(&workshop(&journal, with_exit(|t| t)), ()).await;
    waits(&run).await;
    assert_eq!(journal.take(), Vec::<String>::new());

    run.reject(&path("Work/0.0"), "no", "ann").await.unwrap();

    play.story(&run).await;
    assert_eq!(journal.take(), ["x"], "a denied call is done, too");
}

#[tokio::test(start_paused = true)]
async fn an_exit_tool_that_fails_lets_the_loop_go_on() {
    let journal = Journal::default();
    let failing = Reply::calls([("finish", json!({"id": "x", "fails": true})), ("safe", json!({"id": "c"}))]);
    let play = Play::new([failing, batch([("finish", "y")])]);

    let story = play.run(&workshop(&journal, with_exit(|t| t)), ()).await;

    assert_eq!(journal.take(), ["x", "y"]);
    assert_eq!(play.last_results(), ["Error: x broke", "Skipped: it came after the exit tool `finish`"]);
    assert_eq!(events_named(&story, "LOOP_EXIT"), ["Work"]);
}

#[tokio::test(start_paused = true)]
async fn an_exit_tool_that_is_rejected_lets_the_loop_go_on() {
    let journal = Journal::default();
    let play = Play::new([batch([("finish", "x"), ("safe", "c")]), batch([("finish", "y")])]);
    let run = play.start(&workshop(&journal, with_exit(|t| t.requires_approval("really?"))), ()).await;

    assert_eq!(waits(&run).await, ["Work/0.0"]);
    run.reject(&path("Work/0.0"), "not yet", "ann").await.unwrap();
    assert_eq!(waits(&run).await, ["Work/1.0"]);
    run.approve(&path("Work/1.0"), "ann").await.unwrap();

    play.story(&run).await;
    assert_eq!(journal.take(), ["y"]);
}

#[tokio::test(start_paused = true)]
async fn an_exit_tool_that_is_rejected_leaves_the_calls_before_it_alone() {
    let journal = Journal::default();
    let play = Play::free([
        slow_batch([("gated", "a", 0), ("safe", "b", 10), ("finish", "x", 0), ("safe", "c", 0)]),
        slow_batch([("safe", "d", 10), ("finish", "x", 0)]),
        batch([("finish", "y")]),
    ]);
    let run = play.start(&workshop(&journal, with_exit(|t| t.requires_approval("really?"))), ()).await;

    assert_eq!(waits(&run).await, ["Work/0.0", "Work/0.2"]);
    run.reject(&path("Work/0.2"), "not yet", "ann").await.unwrap();
    assert_eq!(waits(&run).await, ["Work/0.0"], "the other question stands");
    run.approve(&path("Work/0.0"), "ann").await.unwrap();

    // The refused call of the next round is denied as it comes, while the one before it runs.
    assert_eq!(waits(&run).await, ["Work/2.0"]);
    run.approve(&path("Work/2.0"), "ann").await.unwrap();
    let story = play.story(&run).await;
    assert_eq!(journal.take(), ["a", "b", "b-", "d", "d-", "y"]);
    let results = results(&story, "Work");
    assert_eq!(results[1], success("b done"));
    assert_eq!(results[4], success("d done"));
    assert!(matches!(results[3], ToolResult::Skipped { .. }));
}

#[tokio::test(start_paused = true)]
async fn whether_a_call_ends_its_loop_is_as_the_model_proposed_it_and_not_as_a_person_edits_it() {
    for (proposed, edited, ends) in [("end", "go on", true), ("go on", "end", false)] {
        let journal = Journal::default();
        let leave = || {
            positronic_core::dsl::Tool::new("leave", |t: ShopBuilder| {
                t.requires_approval("really?").exit_if(|job: &Job| job.id == "end").execute(work)
            })
        };
        let after = (!ends).then(done);
        let play = Play::new([batch([("leave", proposed)])].into_iter().chain(after));
        let run = play.start(&workshop(&journal, move |config| config.tools([leave()])), ()).await;
        assert_eq!(waits(&run).await, ["Work/0.0"]);
        let kind = SignalKind::Approve { call: path("Work/0.0"), arguments: Some(json!({"id": edited})) };
        run.signal(kind, Actor::default()).await.unwrap();

        let story = play.story(&run).await;

        assert_eq!(journal.take(), [edited], "what was edited is what runs");
        let exited = prompt(&story, "Work").outcome == Some(LoopOutcome::Exited { tool: "leave".to_owned() });
        assert_eq!(exited, ends, "{proposed}");
    }
}
