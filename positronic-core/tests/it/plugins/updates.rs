//! Updates of plugins' states that applications send.

use std::sync::Arc;
use std::time::Duration;

use positronic_core::dsl::{
    IntoBrain as _, Options, Plugin, PluginUpdate, Preparation, ResponseInspection, Services, State, plugin,
};
use positronic_core::machine::{Refusal, RunState};
use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_core::projection::timeline::{Node, NodeKind, Timeline};
use positronic_core::record::{EventKind, ModelResponse, Seq, SignalKind};
use positronic_core::runner::{Fork, RunHandle, Settled, SignalError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Notebook, Notes, note, secretary};
use crate::support::boundaries::{Ledger, Tale};
use crate::support::{Play, contexts, done, events_named, path, settled, waits};

/// What an application can do with the notes.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum NotesUpdate {
    /// Writes a line, which must not be empty.
    Write(String),
    /// Forgets all lines.
    Clear,
}

impl PluginUpdate for NotesUpdate {
    type State = Notes;
}

impl Notes {
    pub(super) fn take(&mut self, update: NotesUpdate) -> Result<()> {
        match update {
            NotesUpdate::Write(line) if line.is_empty() => return Err(Error::new("the line is empty")),
            NotesUpdate::Write(line) => self.lines.push(line),
            NotesUpdate::Clear => self.lines.clear(),
        }
        Ok(())
    }
}

fn write(line: &str) -> NotesUpdate {
    NotesUpdate::Write(line.to_owned())
}

fn publish() -> Reply {
    Reply::call("publish", json!({"line": "milk"}))
}

fn notes<R>(run: &RunHandle<R>) -> Value {
    Value::clone(&run.state().root.unwrap().plugins.get("notes").unwrap().state)
}

#[tokio::test(start_paused = true)]
async fn plugin_takes_an_update_of_an_application_before_the_next_iteration() {
    let play = Play::new([publish(), done()]);
    let run = play.start(&secretary(), ()).await;
    assert_eq!(waits(&run).await, ["Listen/0.0"]);

    run.update_plugin(&write("tea"), "ann").await.unwrap();
    assert_eq!(waits(&run).await, ["Listen/0.0"], "an update decides nothing");
    run.approve(&path("Listen/0.0"), "ann").await.unwrap();

    let story = play.story(&run).await;
    assert!(contexts(&play.last_request()).contains(&"notes: published milk; tea".to_owned()));
    let lines = story.events();
    let lines: Vec<_> = lines.lines().filter(|line| line.contains("PLUGIN")).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
     8 Listen LOOP_PLUGIN_UPDATE {"actor":{"by":"ann"},"plugin":"notes","signal":"signal-1","update":{"write":"tea"}}
    11 Listen/0.0 LOOP_PLUGIN_CHANGED {"plugin":"notes","state":{"lines":["published milk"]}}
    13 Listen/1 LOOP_PLUGIN_CHANGED {"plugin":"notes","state":{"lines":["published milk","tea"]},"update":8}
    "#);
}

#[tokio::test(start_paused = true)]
async fn timeline_has_each_update_with_what_became_of_it() {
    let play = Play::new([publish(), done()]);
    let run = play.start(&secretary(), ()).await;
    waits(&run).await;
    run.update_plugin(&write("tea"), "ann").await.unwrap();
    run.update_plugin(&write(""), "lee").await.unwrap();
    let updates = async || {
        let log = run.events(Seq(0)).await.unwrap();
        let timeline = Timeline::of(log.iter().map(|event| &**event));
        let update = |node: &Node| match &node.kind {
            NodeKind::PluginUpdate { plugin, update, actor, refused } => {
                let by = actor.by.as_deref().unwrap();
                Some(format!("{by} {plugin} {update} {:?} {}", node.status, refused.as_deref().unwrap_or_default()))
            }
            NodeKind::PluginFailure { .. } => Some("failure".to_owned()),
            _ => None,
        };
        timeline.nodes().filter_map(update).collect::<Vec<_>>()
    };

    let open = updates().await;
    run.approve(&path("Listen/0.0"), "ann").await.unwrap();
    settled(&run).await;

    assert_eq!(open, [r#"ann notes {"write":"tea"} Running "#, r#"lee notes {"write":""} Running "#]);
    assert_eq!(
        updates().await,
        [
            r#"ann notes {"write":"tea"} Done "#,
            r#"lee notes {"write":""} Failed the plugin notes refused an update: the line is empty"#
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn repeated_update_counts_once() {
    let play = Play::new([publish(), done()]);
    let run = play.start(&secretary(), ()).await;
    waits(&run).await;
    let kind = SignalKind::UpdatePlugin { to: None, plugin: "notes".to_owned(), update: json!({"write": "tea"}) };
    let signal = positronic_core::record::Signal {
        id: positronic_core::record::SignalId::new("delivery-1"),
        actor: "ann".into(),
        kind,
    };

    let first = run.send(signal.clone()).await.unwrap();
    assert_eq!(run.send(signal).await.unwrap(), first);
    run.approve(&path("Listen/0.0"), "ann").await.unwrap();

    settled(&run).await;
    assert_eq!(notes(&run), json!({"lines": ["published milk", "tea"]}));
}

#[tokio::test(start_paused = true)]
async fn update_while_the_last_answer_is_under_way_is_taken_before_the_loop_ends() {
    let play = Play::free([note("milk"), done().after(Duration::from_secs(5))]);
    let run = play.start(&secretary(), ()).await;
    tokio::time::sleep(Duration::from_secs(1)).await;

    run.update_plugin(&write("tea"), "ann").await.unwrap();

    assert!(matches!(settled(&run).await, Settled::Completed(_)));
    assert_eq!(notes(&run), json!({"lines": ["milk", "tea"]}));
    let story = play.story(&run).await;
    assert_eq!(events_named(&story, "LOOP_PLUGIN_CHANGED"), ["Listen/0.0", "Listen/1"]);
}

/// Takes a second to prepare an iteration, and to look at an answer; each adds a line.
#[derive(Debug, Clone, Copy)]
struct Slow;

impl<O: Options, S: State, V: Services> Plugin<O, S, V> for Slow {
    type State = Notes;

    fn initial(&self) -> Notes {
        Notes::default()
    }

    async fn prepare(&self, cx: &mut Preparation<'_, O, S, V, Notes>) -> Result<()> {
        tokio::time::sleep(Duration::from_secs(1)).await;
        cx.state.lines.push("prepared".to_owned());
        let lines = cx.state.lines.join("; ");
        cx.context("notes", lines);
        Ok(())
    }

    async fn response(&self, cx: &mut ResponseInspection<'_, O, S, V, Notes>, _: &ModelResponse) -> Result<()> {
        tokio::time::sleep(Duration::from_secs(1)).await;
        cx.state.lines.push("inspected".to_owned());
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn update_is_kept_while_hooks_of_its_plugin_run() {
    let slow = brain("Slow").r#loop("Work", |cx| {
        cx.system("Work.").input("Go.").plugin(Slow).tool("ping", |t| t.execute(async |_: NoArgs, _| Ok("pong")))
    });
    let play = Play::free([Reply::call("ping", json!({})), done()]);
    let run = play.start(&slow, ()).await;
    // The first iteration is prepared until the first second, its answer inspected until the second one, and so on.
    for (pause, line) in [(1500, "while inspected"), (1000, "while prepared"), (2000, "while inspected again")] {
        tokio::time::sleep(Duration::from_millis(pause)).await;
        run.update_plugin(&write(line), "ann").await.unwrap();
    }

    assert!(matches!(settled(&run).await, Settled::Completed(_)));
    assert_eq!(
        notes(&run)["lines"],
        json!([
            "prepared",
            "inspected",
            "while inspected",
            "while prepared",
            "prepared",
            "inspected",
            "while inspected again"
        ])
    );
    assert_eq!(
        contexts(&play.last_request()),
        ["notes: prepared; inspected; while inspected; while prepared; prepared"],
        "an iteration is prepared again if an update arrives meanwhile"
    );
}

#[tokio::test(start_paused = true)]
async fn refused_update_is_recorded_and_the_loop_continues() {
    let play = Play::new([publish(), done()]);
    let run = play.start(&secretary(), ()).await;
    waits(&run).await;

    run.update_plugin(&write(""), "ann").await.unwrap();
    let nonsense = SignalKind::UpdatePlugin { to: None, plugin: "notes".to_owned(), update: json!({"sing": 1}) };
    run.signal(nonsense, "ann").await.unwrap();
    run.update_plugin(&NotesUpdate::Clear, "ann").await.unwrap();
    run.approve(&path("Listen/0.0"), "ann").await.unwrap();

    let story = play.story(&run).await;
    assert!(matches!(story.settled(), Settled::Completed(_)));
    assert_eq!(notes(&run), json!({"lines": []}));
    let failed = story.log().iter().filter_map(|event| match &event.kind {
        EventKind::LoopPluginFailed { message, update: Some(_), .. } => Some(message.as_str()),
        _ => None,
    });
    let failed: Vec<_> = failed.collect();
    assert_eq!(
        failed,
        [
            "the plugin notes refused an update: the line is empty",
            "the plugin notes refused an update: the update is not a `it::plugins::updates::NotesUpdate`: unknown variant `sing`, expected `write` or `clear`",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn update_names_the_instance_of_its_plugin() {
    let two = brain("Two")
        .r#loop("Listen", |cx| cx.system("Take notes.").plugins([plugin(Notebook), plugin(Notebook).named("home")]));
    let play = Play::new([publish(), done()]);
    let run = play.start(&two, ()).await;
    waits(&run).await;

    run.update_plugin_named("home", &write("soap"), "ann").await.unwrap();
    let refused = run.update_plugin_named("office", &write("ink"), "ann").await.unwrap_err();
    run.approve(&path("Listen/0.0"), "ann").await.unwrap();

    settled(&run).await;
    assert_eq!(
        serde_json::to_value(&run.state().root.unwrap().plugins).unwrap(),
        json!({"home.notes": {"state": {"lines": ["soap"]}}, "notes": {"state": {"lines": ["published milk"]}}})
    );
    let SignalError::Refused(refusal @ Refusal::NoListener(_)) = refused else { panic!("{refused:?}") };
    assert_eq!(refusal.to_string(), "no open loop of the run has a state of the plugin `office.notes`");
}

#[tokio::test(start_paused = true)]
async fn update_is_refused_by_a_run_that_has_ended_and_between_loops() {
    let play = Play::free([note("milk"), done()]);
    let working = secretary().step("Work", async |_| {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(())
    });
    let run = play.start(&working, ()).await;
    tokio::time::sleep(Duration::from_millis(500)).await;

    let between = run.update_plugin(&write("tea"), "ann").await.unwrap_err();
    settled(&run).await;
    let late = run.update_plugin(&write("tea"), "ann").await.unwrap_err();

    assert!(matches!(between, SignalError::Refused(Refusal::NoListener(_))), "{between:?}");
    assert_eq!(late, SignalError::Refused(Refusal::Ended));
    assert_eq!(notes(&run), json!({"lines": ["milk"]}));
}

#[tokio::test(start_paused = true)]
async fn update_holds_over_a_crash_at_any_append() {
    let tale = Tale {
        definition: secretary().definition(),
        options: Value::Null,
        ledger: Ledger::default(),
        says: Arc::new(|request| match request.path.as_str() {
            "Listen/0" => Reply::calls([("note", json!({"line": "a"})), ("publish", json!({"line": "b"}))]),
            "Listen/1" => publish(),
            _ => done(),
        }),
        answers: Arc::new(|pending| {
            let update = json!({"write": format!("update at {}", pending.call)});
            vec![
                SignalKind::UpdatePlugin { to: None, plugin: "notes".to_owned(), update },
                SignalKind::Approve { call: pending.call.clone(), arguments: None },
            ]
        }),
    };

    let baseline = crate::support::boundaries::crash_everywhere(
        &tale,
        "notes",
        &json!({"lines": [
            "a", "published b", "update at Listen/0.1", "published milk", "update at Listen/1.0"
        ]}),
    )
    .await;

    let state = RunState::replay(baseline.log.iter().map(|event| &**event)).unwrap();
    assert!(state.has_ended());
}

#[tokio::test(start_paused = true)]
async fn fork_takes_the_updates_that_its_origin_had_received() {
    let play = Play::new([publish(), done(), done()]);
    let run = play.start(&secretary(), ()).await;
    waits(&run).await;
    let update = run.update_plugin(&write("tea"), "ann").await.unwrap();
    run.approve(&path("Listen/0.0"), "ann").await.unwrap();
    settled(&run).await;

    let fork = play.test.runner().fork(run.id(), update, Fork::default()).await.unwrap();
    waits(&fork).await;
    fork.approve(&path("Listen/0.0"), "ann").await.unwrap();

    settled(&fork).await;
    assert_eq!(notes(&fork), json!({"lines": ["published milk", "tea"]}));
}
