//! Approvals of brains as tools and of skills.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use positronic_core::dsl::BrainTool;
use positronic_core::machine::Refusal;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{
    Actor, CallFlags, DenialCause, Gate, Pending, PendingKind, SignalKind, Timestamp, ToolResult,
};
use positronic_core::runner::{Clock, RunHandle, SignalError};
use positronic_core::testing::TestClock;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::support::{Board, Journal, Play, batch, calls, done, path, results, success, waits, worker, workshop};

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct Topic {
    topic: String,
    #[serde(default)]
    depth: u32,
}

type Research = BrainTool<(), Board, (), Topic, String>;

fn research() -> Brain<Topic, String> {
    brain("Research").options::<Topic>().step("Read", async |cx| Ok(format!("{} read", cx.options.topic))).build()
}

/// Builds a brain with one loop `Work` whose tool `research` is a brain.
fn desk(about: impl Fn(Research) -> Research + Send + Sync + 'static) -> Brain<(), Board> {
    let state = Board { done: vec!["tea".to_owned()] };
    brain("Desk")
        .state(state)
        .r#loop("Work", move |cx| cx.system("").tool("research", |t| about(t.brain(research()))))
        .build()
}

fn asked(topics: [&str; 2]) -> Play {
    Play::new([Reply::calls(topics.map(|topic| ("research", json!({"topic": topic, "depth": topic.len()})))), done()])
}

fn gates<R>(run: &RunHandle<R>) -> Vec<Gate> {
    let gate = |pending: Pending| match pending.kind {
        PendingKind::Approval { gate, .. } => gate,
        PendingKind::Answer { .. } | PendingKind::Budget(_) => panic!("{} waits for no approval", pending.call),
    };
    run.pending().into_iter().map(gate).collect()
}

fn too_deep(topic: &Topic) -> Option<String> {
    (topic.depth > 3).then(|| format!("{} in depth {}", topic.topic, topic.depth))
}

#[tokio::test(start_paused = true)]
async fn approval_of_a_brain_sees_the_options_that_the_model_fills() {
    let play = asked(["oolong", "tea"]);

    let run = play.start(&desk(|b| b.approval(|topic, _| too_deep(topic))), ()).await;

    assert_eq!(waits(&run).await, ["Work/0.0"]);
    assert_eq!(gates(&run)[0].reason, "oolong in depth 6");
    run.approve(&path("Work/0.0"), "ann").await.unwrap();
    assert_eq!(results(&play.story(&run).await, "Work"), [success("oolong read"), success("tea read")]);
}

#[tokio::test(start_paused = true)]
async fn approval_of_a_brain_sees_mapped_options_wherever_the_map_is_set() {
    let deep = |board: &Board| Topic { topic: board.done[0].clone(), depth: 9 };
    let before = desk(move |b| {
        b.map_input(deep).approval(|topic, cx| {
            let known = cx.state.done.len();
            let reason = too_deep(topic).map(|reason| format!("{reason}, {known} known"));
            async move { reason }
        })
    });
    let behind = desk(move |b| b.approval(|topic, _| too_deep(topic)).map_input(deep));
    for (brain, reason) in [(before, "tea in depth 9, 1 known"), (behind, "tea in depth 9")] {
        let play = Play::new([Reply::call("research", json!({})), done()]);
        let run = play.start(&brain, ()).await;
        assert_eq!(waits(&run).await, ["Work/0.0"]);
        assert_eq!(gates(&run)[0].reason, reason);
    }
}

#[tokio::test(start_paused = true)]
async fn approval_of_a_brain_can_expire_and_forbid_edited_arguments() {
    let strict = desk(|b| {
        b.requires_approval("it is costly").approval_expires(Duration::from_secs(60)).not_editable().idempotent()
    });
    let play = asked(["oolong", "tea"]);
    let run = play.start(&strict, ()).await;
    waits(&run).await;

    let gate = Gate { reason: "it is costly".to_owned(), valid_for: Some(Duration::from_mins(1)), editable: false };
    assert_eq!(gates(&run), [gate.clone(), gate]);
    let edited = SignalKind::Approve { call: path("Work/0.0"), arguments: Some(json!({"topic": "milk"})) };
    let refused = run.signal(edited, Actor::default()).await.unwrap_err();
    assert_eq!(refused, SignalError::Refused(Refusal::NotEditable { call: path("Work/0.0") }));
    run.approve(&path("Work/0.0"), "ann").await.unwrap();

    assert!(run.result().await.is_ok());
    let story = play.story(&run).await;
    let reason = Some("the approval expired".to_owned());
    assert_eq!(
        results(&story, "Work"),
        [success("oolong read"), ToolResult::Denied { cause: Some(DenialCause::Expired), reason, by: None }]
    );
    let flags = CallFlags { brain: true, idempotent: true, ..CallFlags::default() };
    assert_eq!(play.last_request().tools.tools()[0].flags, flags);
}

#[tokio::test(start_paused = true)]
async fn panicking_approval_of_a_brain_fails_its_call() {
    let panics = desk(|b| b.approval(|topic, _| -> Option<String> { panic!("no {}", topic.topic) }));
    let play = asked(["oolong", "tea"]);

    let story = play.run(&panics, ()).await;

    let errors: Vec<_> = calls(&story, "Work").into_iter().map(|call| format!("{:?}", call.result)).collect();
    assert!(errors[0].contains("the code panicked: no oolong"), "{errors:?}");
    assert!(errors[1].contains("the code panicked: no tea"), "{errors:?}");
}

/// A clock that advances while the machine sleeps; tokio's clock does not.
#[derive(Debug, Clone, Default)]
struct Wall {
    awake: TestClock,
    slept: Arc<AtomicI64>,
}

impl Clock for Wall {
    fn now(&self) -> Timestamp {
        Timestamp(self.awake.now().0 + self.slept.load(Ordering::SeqCst))
    }
}

#[tokio::test(start_paused = true)]
async fn wait_that_expires_during_sleep_ends_a_minute_after_wake_up() {
    // Its worker lingers or has released the run.
    for linger in [Duration::MAX, Duration::ZERO] {
        let hour = Duration::from_secs(3600);
        let clock = Wall::default();
        let model = ScriptedModel::new([batch([("gated", "a")]), done()]);
        let runner = Runner::new(model).clock(clock.clone()).linger(linger);
        let gated = move || worker("gated", |t| t.requires_approval("quick!").approval_expires(hour));
        let brain = workshop(&Journal::default(), move |config| config.tools([gated()]));
        let run = runner.start(&brain, ()).await.unwrap();
        waits(&run).await;
        tokio::time::sleep(Duration::from_secs(10)).await;

        clock.slept.fetch_add(8 * 3600 * 1_000_000, Ordering::SeqCst);

        let result = tokio::time::timeout(Duration::from_secs(61), run.result()).await;
        assert!(matches!(result, Ok(Ok(_))), "{linger:?}: {result:?}");
    }
}

/// A tool whose condition asks about every depth and refuses forbidden depths.
fn diving() -> Brain<(), ()> {
    brain("Diving")
        .r#loop("Work", |cx| {
            cx.system("").tool("dive", |t| {
                t.approval(|topic: &Topic, _| {
                    assert!(topic.depth <= 40, "diving is forbidden at {}", topic.depth);
                    Some(format!("a dive to {}", topic.depth))
                })
                .execute(async |topic: Topic, _| Ok(topic.depth))
            })
        })
        .build()
}

#[tokio::test(start_paused = true)]
async fn approval_condition_checks_edited_arguments_too() {
    let batch = [9, 10].map(|depth| ("dive", json!({"topic": "reef", "depth": depth})));
    let play = Play::new([Reply::calls(batch), done()]);
    let run = play.start(&diving(), ()).await;
    assert_eq!(waits(&run).await, ["Work/0.0", "Work/0.1"]);

    for (call, depth) in [("Work/0.0", 20), ("Work/0.1", 400)] {
        let arguments = Some(json!({"topic": "reef", "depth": depth}));
        let edit = SignalKind::Approve { call: path(call), arguments };
        run.signal(edit, "ann").await.unwrap();
    }

    let results = results(&play.story(&run).await, "Work");
    assert_eq!(results[0], success(json!(20)), "the editor's decision also covers the condition");
    let error = crate::support::error_of(&results[1]);
    assert!(error.starts_with("the edited arguments are refused, and the tool did not run: "), "{error}");
    assert!(error.ends_with("diving is forbidden at 400"), "{error}");
}

/// A clock that notes the limits of time that the runner sets.
#[derive(Debug, Clone, Default)]
struct NotingClock {
    clock: TestClock,
    set: Arc<Mutex<Vec<Duration>>>,
}

impl Clock for NotingClock {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn limit<'a>(&'a self, limit: Duration, work: BoxFuture<'a, ()>) -> BoxFuture<'a, bool> {
        self.set.lock().unwrap().push(limit);
        self.clock.limit(limit, work)
    }
}

/// Asks about a depth up to ten, and never decides about others.
async fn asks_forever(Topic { topic, depth }: Topic) -> Option<String> {
    if depth > 10 {
        std::future::pending::<()>().await;
    }
    Some(topic)
}

#[tokio::test(start_paused = true)]
async fn approval_condition_that_never_ends_fails_its_call_on_the_runners_clock() {
    let brain = brain("Desk")
        .r#loop("Work", |cx| {
            cx.system("")
                .tool("dive", |t| {
                    t.timeout(Duration::from_secs(7))
                        .approval(|topic: &Topic, _| asks_forever(topic.clone()))
                        .execute(async |topic: Topic, _| Ok(topic.depth))
                })
                .tool("research", |t| t.brain(research()).approval(|topic, _| asks_forever(topic.clone())))
        })
        .build();
    let calls = [("dive", 1), ("dive", 11), ("research", 1), ("research", 11)];
    let batch = calls.map(|(tool, depth)| (tool, json!({"topic": "reef", "depth": depth})));
    let clock = NotingClock::default();
    let runner = Runner::new(ScriptedModel::new([Reply::calls(batch), done()])).clock(clock.clone());
    let run = runner.start(&brain, ()).await.unwrap();
    assert_eq!(waits(&run).await, ["Work/0.0", "Work/0.2"]);
    assert_eq!(std::mem::take(&mut *clock.set.lock().unwrap()), [7, 7, 60, 60].map(Duration::from_secs));

    for call in ["Work/0.0", "Work/0.2"] {
        let edit = SignalKind::Approve { call: path(call), arguments: Some(json!({"topic": "reef", "depth": 12})) };
        run.signal(edit, "ann").await.unwrap();
    }

    let story = Play::new([]).story(&run).await;
    let errors = results(&story, "Work").into_iter().map(|result| crate::support::error_of(&result).to_owned());
    let [dive, research] = ["7s", "60s"].map(|time| format!("the approval's condition took longer than {time}"));
    let unknown = "cannot determine whether the call needs an approval";
    let edited = "the edited arguments are refused, and the tool did not run";
    assert_eq!(
        errors.collect::<Vec<_>>(),
        [
            format!("{edited}: {dive}"),
            format!("{unknown}: {dive}"),
            format!("the brain failed to start: {edited}: {research}"),
            format!("{unknown}: {research}"),
        ]
    );
    assert_eq!(*clock.set.lock().unwrap(), [7, 60].map(Duration::from_secs));
}
