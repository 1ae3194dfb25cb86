//! Child runs: their start, their end as the parent learns of it, and the end of the parent.

mod background;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use positronic_core::dsl::{Child, Verdict};
use positronic_core::machine::Refusal;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{
    Actor, ChildLink, Event, EventKind, Failure, Message, ParentRun, RunId, Seq, Signal, SignalId, SignalKind, Speaker,
    Start, Status,
};
use positronic_core::runner::{Fork, Settled, SignalError};
use positronic_core::store::{MemoryStore, RunFilter};
use positronic_core::testing::{Story, Test, TestClock};
use serde_json::{Value, json};

use crate::support::boundaries::kinds;

/// A brain that counts how often it begins.
fn survey(begun: &Arc<AtomicU32>) -> Brain<String, usize> {
    let begun = Arc::clone(begun);
    brain("Survey")
        .options::<String>()
        .step("Read", move |cx| {
            begun.fetch_add(1, Ordering::Relaxed);
            async move {
                match cx.options.as_str() {
                    "nothing" => Err(Error::new("there is nothing to read")),
                    topic => Ok(topic.len()),
                }
            }
        })
        .build()
}

/// A child that waits for the webhook `post` with the topic.
fn slow() -> Brain<String, String> {
    brain("Slow")
        .options::<String>()
        .step("Begin", async |cx| Ok(String::clone(&cx.options)))
        .wait("Post", |w| w.on(webhook::<String>("post"), String::clone), |_, text| text)
        .build()
}

fn report(child: Brain<String, usize>, topic: &'static str) -> Brain<(), Result<usize, String>> {
    brain("Report")
        .step("Begin", move |cx| {
            let started = cx.start("survey", &child, topic.to_owned());
            async move { started.await }
        })
        .join("Survey", |child: &Child<usize>| child.clone(), |_, end| end.map_err(|failure: Failure| failure.message))
        .build()
}

fn letter(child: Brain<String, String>) -> Brain<(), String> {
    brain("Letter")
        .step("Begin", move |cx| {
            let started = cx.start("post", &child, "letter".to_owned());
            async move { started.await }
        })
        .join("Post", Child::clone, |_, end: Result<String, Failure>| end.unwrap_or_else(|failure| failure.message))
        .build()
}

#[tokio::test(start_paused = true)]
async fn children_are_joined_at_the_same_time_by_a_map() {
    let child = survey(&Arc::default());
    let end = brain("End").options::<Child<usize>>().step("Take", async |cx| Ok(Child::clone(&cx.options))).join(
        "Join",
        Child::clone,
        |_, end: Result<usize, Failure>| end.unwrap_or_default(),
    );
    let all = brain("All")
        .step("Begin", move |cx| {
            let child = child.clone();
            async move {
                let mut children = Vec::new();
                for topic in ["birds", "nothing", "bees"] {
                    children.push(cx.start(topic, &child, topic.to_owned()).await?);
                }
                Ok(children)
            }
        })
        .map("Ends", Vec::clone, end, |_, ends| ends);
    let run = test().start(all.build(), ()).await;
    assert_eq!(run.result().await.unwrap(), [5, 0, 4]);
}

#[tokio::test(start_paused = true)]
async fn child_is_joined_more_than_once() {
    let child = survey(&Arc::default());
    let end = brain("End").options::<Child<usize>>().step("Take", async |cx| Ok(Child::clone(&cx.options))).join(
        "Join",
        Child::clone,
        |_, end: Result<usize, Failure>| end.unwrap_or_default(),
    );
    let all = brain("All")
        .step("Begin", move |cx| {
            let started = cx.start("birds", &child, "birds".to_owned());
            async move { started.await }
        })
        .join("First", Child::clone, |child, end: Result<usize, Failure>| (child, end.unwrap_or_default()))
        .map("Ends", |(child, _)| vec![child.clone(), child.clone()], end, |(child, first), ends| (child, first, ends))
        .join(
            "Last",
            |(child, ..)| child.clone(),
            |(_, first, ends), last: Result<usize, Failure>| (first, ends, last.ok()),
        );
    let run = test().start(all.build(), ()).await;
    assert_eq!(run.result().await.unwrap(), (5, vec![5, 5], Some(5)));
}

fn test() -> Test {
    Test::new(ScriptedModel::from_fn(|request| panic!("{request:?}")))
}

/// Returns the children of a run.
async fn children(runner: &Runner, run: &RunId) -> Vec<RunId> {
    let log = runner.client().events(run, Seq(0)).await.unwrap();
    let child = |event: &Arc<Event>| match &event.kind {
        EventKind::ChildStart(child) => Some(child.run.clone()),
        _ => None,
    };
    log.iter().filter_map(child).collect()
}

async fn status(runner: &Runner, run: &RunId) -> Status {
    runner.client().store().run(run).await.unwrap().status
}

#[tokio::test(start_paused = true)]
async fn join_gets_the_result_of_the_child() {
    let (test, begun) = (test(), Arc::default());
    let run = test.start(report(survey(&begun), "birds"), ()).await;
    assert_eq!(run.result().await.unwrap(), Ok(5));
    assert_eq!(begun.load(Ordering::Relaxed), 1);
    let log = run.events(Seq(0)).await.unwrap();
    insta::assert_snapshot!(kinds(&log), @r"
    BRAIN_START
    RUN_CLAIMED
    STEP_START Begin
    CHILD_START Begin
    STEP_COMPLETE Begin
    STAGE_WAIT Survey
    STAGE_RESUME Survey
    STEP_COMPLETE Survey
    BRAIN_COMPLETE
    ");
    let child = children(test.runner(), run.id()).await.pop().unwrap();
    let begin = test.runner().client().events(&child, Seq(0)).await.unwrap();
    let EventKind::BrainStart(start) = &begin[0].kind else { panic!("{:?}", begin[0]) };
    let parent = start.start.as_ref().unwrap().parent.as_ref().unwrap();
    assert_eq!((&parent.run, parent.path.as_str(), parent.link), (run.id(), "Begin", ChildLink::Linked));
}

#[tokio::test(start_paused = true)]
async fn join_gets_the_failure_of_the_child() {
    let run = test().start(report(survey(&Arc::default()), "nothing"), ()).await;
    assert_eq!(run.result().await.unwrap(), Err("the step `Read` failed: there is nothing to read".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn parent_waits_until_the_child_has_ended() {
    let test = test();
    let run = test.start(letter(slow()), ()).await;
    let Settled::Waiting(pending) = run.settled().await else { panic!("{:?}", run.settled().await) };
    let waits = pending.iter().flat_map(|pending| pending.kind.waits());
    let child = children(test.runner(), run.id()).await.pop().unwrap();
    assert_eq!(waits.map(|wait| wait.identifier.as_str()).collect::<Vec<_>>(), [child.as_str()]);
    let why = positronic_core::machine::why(&run.state()).unwrap();
    assert!(why.sentence.contains(&format!("the end of the run `{child}` at `Post`")), "{}", why.sentence);
    test.runner().client().webhook(&child, "post", "letter", json!("Dear Ann")).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "Dear Ann");
}

#[tokio::test(start_paused = true)]
async fn only_the_engine_reports_the_end_of_a_child() {
    let test = test();
    let run = test.start(letter(slow()), ()).await;
    run.settled().await;
    let child = children(test.runner(), run.id()).await.pop().unwrap();
    let forged = test.runner().client().webhook(run.id(), "run", child.as_str(), json!({ "completed": "x" })).await;
    assert!(matches!(forged, Err(SignalError::Refused(Refusal::NothingWaits { .. }))), "{forged:?}");
}

#[tokio::test(start_paused = true)]
async fn no_other_signal_takes_the_id_of_the_end_of_a_child() {
    let test = test();
    let run = test.start(letter(slow()), ()).await;
    run.settled().await;
    let child = children(test.runner(), run.id()).await.pop().unwrap();
    let client = test.runner().client();
    for id in [format!("~ended:{child}"), format!("~ended:{child}:Post")] {
        let signal = Signal { id: SignalId::new(id), actor: Actor::default(), kind: SignalKind::Pause };
        let forged = client.send(run.id(), signal).await;
        assert!(matches!(forged, Err(SignalError::Refused(Refusal::ReservedId { .. }))), "{forged:?}");
    }
    // These ids are free: the engine has others.
    for (id, kind) in
        [(format!("ended:{child}"), SignalKind::Pause), (format!("ended:{child}:Post"), SignalKind::Resume)]
    {
        client.send(run.id(), Signal { id: SignalId::new(id), actor: Actor::default(), kind }).await.unwrap();
    }
    client.webhook(&child, "post", "letter", json!("Dear Ann")).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "Dear Ann");
}

#[test]
#[should_panic(expected = "a webhook cannot be named `run`")]
fn webhook_of_an_author_is_not_taken_for_the_end_of_a_child() {
    _ = webhook::<String>("run");
}

#[tokio::test(start_paused = true)]
async fn end_of_the_parent_cancels_linked_children_and_theirs() {
    let test = test();
    let child = letter(slow());
    let outer = brain("Outer")
        .step("Begin", move |cx| {
            let linked = cx.start("letter", &child, ());
            let detached = cx.start("detached", slow(), "detached".to_owned()).detached();
            async move {
                detached.await?;
                linked.await
            }
        })
        .join("Letter", Child::clone, |_, end: Result<String, Failure>| end.is_ok());
    let run = test.start(outer, ()).await;
    run.settled().await;
    let started = children(test.runner(), run.id()).await;
    let [detached, letter] = started.as_slice() else { panic!("{started:?}") };
    let post = loop {
        match children(test.runner(), letter).await.pop() {
            Some(post) => break post,
            None => tokio::task::yield_now().await,
        }
    };
    test.runner().client().cancel(run.id(), "no longer needed").await.unwrap();
    for (run, expected) in [
        (run.id(), Status::Cancelled),
        (letter, Status::Cancelled),
        (&post, Status::Cancelled),
        (detached, Status::Waiting),
    ] {
        assert_eq!(status(test.runner(), run).await, expected, "{run}");
    }
}

#[tokio::test(start_paused = true)]
async fn child_is_cancelled_before_its_parent_undoes_its_stages() {
    let test = test();
    let (client, seen) = (test.runner().client(), Arc::new(Mutex::new(None)));
    let undone = Arc::clone(&seen);
    let outer = brain("Outer")
        .step("Reserve", async |_| Ok(()))
        .compensate(move |_| {
            let (client, undone) = (client.clone(), Arc::clone(&undone));
            async move {
                let rows = client.store().runs(&RunFilter::builder().brain("Slow").build()).await;
                *undone.lock().unwrap() = Some(rows.map_err(Error::transient)?.remove(0).status);
                Ok(())
            }
        })
        .step("Begin", async |cx| cx.start("post", slow(), "x".to_owned()).await)
        .join("Post", Child::clone, |_, end: Result<String, Failure>| end.is_ok());
    let run = test.start(outer, ()).await;
    run.settled().await;
    run.cancel("no longer needed").await.unwrap();
    let end = run.settled().await;
    assert!(matches!(end, Settled::Cancelled), "{end:?}");
    assert_eq!(*seen.lock().unwrap(), Some(Status::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn child_that_is_not_joined_is_cancelled_when_its_parent_completes() {
    let test = test();
    let outer =
        brain("Outer").step("Begin", async |cx| Ok(cx.start("post", slow(), "x".to_owned()).await?.run().clone()));
    let run = test.start(outer, ()).await;
    let child = run.result().await.unwrap();
    assert_eq!(status(test.runner(), &child).await, Status::Cancelled);
}

/// Runs a report, and returns the logs of the parent and its child.
async fn logs(definition: &Brain<(), Result<usize, String>>) -> (RunId, Vec<Arc<Event>>, RunId, Vec<Arc<Event>>) {
    let test = test();
    let run = test.start(definition, ()).await;
    run.result().await.unwrap().unwrap();
    let child = children(test.runner(), run.id()).await.pop().unwrap();
    let log = run.events(Seq(0)).await.unwrap();
    (run.id().clone(), log, child.clone(), test.runner().client().events(&child, Seq(0)).await.unwrap())
}

#[tokio::test(start_paused = true)]
async fn crash_at_any_moment_starts_one_child_and_loses_no_result() {
    let begun = Arc::default();
    let definition = report(survey(&begun), "birds");
    let (parent, log, child, of_child) = logs(&definition).await;
    let started = log.iter().position(|event| matches!(event.kind, EventKind::ChildStart(_))).unwrap();
    for until in 1..=log.len() {
        for child_until in 0..=of_child.len() {
            // The child begins after the event that names it and before the step ends, and has ended before the parent knows.
            let has = |kind: fn(&EventKind) -> bool| log[..until].iter().any(|event| kind(&event.kind));
            let is_possible = match child_until {
                0 => !has(|kind| matches!(kind, EventKind::StepComplete { .. })),
                len => {
                    until > started
                        && (len == of_child.len() || !has(|kind| matches!(kind, EventKind::StageResume { .. })))
                }
            };
            if !is_possible {
                continue;
            }
            let runner =
                Runner::new(ScriptedModel::new([])).store(MemoryStore::new()).brain(&definition).brain(survey(&begun));
            if child_until > 0 {
                runner.client().import(&child, &of_child[..child_until]).await.unwrap();
            }
            runner.client().import(&parent, &log[..until]).await.unwrap();
            // The runner that resumes the parent works on the child.
            let result = match runner.resume(&parent).await {
                Ok(run) => run.result().await.unwrap(),
                Err(_) if until == log.len() => continue,
                Err(error) => panic!("{error} after {until}, {child_until}"),
            };
            assert_eq!(result, json!({ "Ok": 5 }), "after {until}, {child_until}");
            assert_eq!(children(&runner, &parent).await, std::slice::from_ref(&child));
        }
    }
}

/// The log of each run of a store.
async fn all_logs(runner: &Runner) -> Vec<(RunId, Vec<Arc<Event>>)> {
    let mut logs = Vec::new();
    for row in runner.client().store().runs(&RunFilter::default()).await.unwrap() {
        logs.push((row.run.clone(), runner.client().events(&row.run, Seq(0)).await.unwrap()));
    }
    logs
}

#[tokio::test(start_paused = true)]
async fn resume_of_a_run_continues_children_that_wait_and_theirs() {
    let nap = brain("Nap")
        .options::<String>()
        .step("Begin", async |cx| Ok(String::clone(&cx.options)))
        .sleep("Rest", |_| Duration::from_hours(1))
        .build();
    let begin = nap.clone();
    let middle = brain("Middle")
        .options::<String>()
        .step("Begin", move |cx| {
            let started = cx.start("nap", &begin, String::clone(&cx.options));
            async move { started.await }
        })
        .join("Nap", Child::clone, |_, end: Result<String, Failure>| end.unwrap_or_else(|failure| failure.message))
        .build();
    let outer = letter(middle.clone());
    let first = test();
    let run = first.start(&outer, ()).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    let logs = all_logs(first.runner()).await;
    assert_eq!(logs.len(), 3, "the nap, its parent and theirs");

    // Another process, to which nothing but the logs is known.
    let model = ScriptedModel::new([]);
    let second = Runner::new(model).store(MemoryStore::new()).clock(TestClock::default());
    let second = second.brain(&outer).brain(middle).brain(nap);
    for (run, log) in &logs {
        second.client().import(run, log).await.unwrap();
    }
    let resumed = second.resume(run.id()).await.unwrap();
    let result = tokio::time::timeout(Duration::from_hours(2), resumed.result()).await.unwrap();

    assert_eq!(result.unwrap(), json!("letter"));
}

/// Runs a letter until it waits, and returns the logs of the parent and its child, as of then and as of the child's end.
async fn letter_logs() -> (RunId, Vec<Arc<Event>>, RunId, Vec<Arc<Event>>) {
    let test = test();
    let run = test.start(letter(slow()), ()).await;
    run.settled().await;
    let log = run.events(Seq(0)).await.unwrap();
    let child = children(test.runner(), run.id()).await.pop().unwrap();
    test.runner().client().webhook(&child, "post", "letter", json!("Dear Ann")).await.unwrap();
    run.result().await.unwrap();
    (run.id().clone(), log, child.clone(), test.runner().client().events(&child, Seq(0)).await.unwrap())
}

#[tokio::test(start_paused = true)]
async fn server_reports_the_end_that_a_dead_process_did_not() {
    let (parent, log, child, of_child) = letter_logs().await;
    let runner = Runner::new(ScriptedModel::new([])).store(MemoryStore::new()).brain(letter(slow())).brain(slow());
    runner.client().import(&parent, &log).await.unwrap();
    runner.client().import(&child, &of_child).await.unwrap();
    let _service = runner.serve();
    let run = runner.open(&parent).await.unwrap();
    assert_eq!(run.result().await.unwrap(), json!("Dear Ann"));
}

#[tokio::test(start_paused = true)]
async fn child_that_begins_after_the_end_of_its_parent_is_cancelled() {
    let (parent, log, child, _) = letter_logs().await;
    let named = log.iter().position(|event| matches!(event.kind, EventKind::ChildStart(_))).unwrap() + 1;
    let runner = Runner::new(ScriptedModel::new([])).store(MemoryStore::new());
    runner.client().import(&parent, &log[..named]).await.unwrap();
    runner.client().cancel(&parent, "no longer needed").await.unwrap();
    let link = ParentRun { run: parent, path: "Begin".parse().unwrap(), link: ChildLink::Linked };
    let start = Start { id: Some(SignalId::new(child.as_str())), parent: Some(Box::new(link)), ..Start::default() };
    let begun = runner.start_with(slow(), "letter".to_owned(), start).await.unwrap();
    assert_eq!(begun.settled().await, Settled::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn fork_shares_the_child_of_its_origin_and_does_not_cancel_it() {
    let test = test();
    let run = test.start(letter(slow()), ()).await;
    run.settled().await;
    let at = run.events(Seq(0)).await.unwrap().len() - 1;
    let fork = test.runner().fork(run.id(), Seq(at as u64), Fork::default()).await.unwrap();
    fork.settled().await;
    let client = test.runner().client();
    client.cancel(fork.id(), "enough").await.unwrap();
    let child = children(test.runner(), run.id()).await.pop().unwrap();
    assert_eq!(status(test.runner(), &child).await, Status::Waiting);
    client.webhook(&child, "post", "letter", json!("Dear Ann")).await.unwrap();
    run.result().await.unwrap();
    let late = test.runner().fork(run.id(), Seq(at as u64), Fork::default()).await.unwrap();
    assert_eq!(late.result().await.unwrap(), json!("Dear Ann"));
}
