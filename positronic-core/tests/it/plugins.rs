//! Plugins: their additions to an iteration, their state, and crashes.

mod hooks;
mod instances;
mod plugin_state;
mod questions;
mod services;
mod updates;

use positronic_core::dsl::{
    BrainBuilder, NoServices, Options, Plugin, PluginState, Preparation, ReceivedUpdate, Services, Staged, State, Timed,
};
use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_core::record::{PluginDocument, SignalKind};
use positronic_core::runner::Settled;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::hooks::Spy;
use self::questions::Asking;
use crate::support::boundaries::{Ledger, Tale};
use crate::support::{Journal, Play, contexts, done};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Notes {
    lines: Vec<String>,
}

impl PluginState for Notes {
    const NAME: &'static str = "notes";

    fn update(&mut self, update: &ReceivedUpdate<'_>) -> Result<()> {
        self.take(update.read()?)
    }
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Line {
    line: String,
}

/// Stores lines, shows them to the model, and offers a tool that adds more.
#[derive(Debug, Clone, Copy)]
struct Notebook;

impl<O: Options, S: State, V: Services> Plugin<O, S, V> for Notebook {
    type State = Notes;

    fn initial(&self) -> Notes {
        Notes::default()
    }

    async fn prepare(&self, cx: &mut Preparation<'_, O, S, V, Notes>) -> Result<()> {
        let lines = cx.state.lines.join("; ");
        cx.context("notes", lines);
        cx.tool("note", |t| {
            t.description("Writes a line down")
                .idempotent()
                .execute(async |Line { line }, cx| Ok(cx.result("noted").update(move |notes| notes.lines.push(line))))
        })?;
        cx.tool("publish", |t| {
            t.requires_approval("it is seen by all").idempotent().execute(async |Line { line }, cx| {
                Ok(cx.result("published").update(move |notes| notes.lines.push(format!("published {line}"))))
            })
        })
    }
}

fn note(line: &str) -> Reply {
    Reply::call("note", json!({ "line": line }))
}

fn secretary() -> BrainBuilder<(), (), NoServices, Staged<Timed>> {
    brain("Secretary")
        .r#loop("Listen", |cx| cx.system("Take notes.").context("house", "We meet at nine.").plugin(Notebook))
}

#[tokio::test(start_paused = true)]
async fn plugin_adds_tools_and_context_and_stores_changes_of_its_tools() {
    let play = Play::new([
        note("milk"),
        Reply::calls([("note", json!({"line": "bread"})), ("note", json!({"line": "tea"}))]),
        done(),
    ]);

    let story = play.run(&secretary(), ()).await;

    let contexts: Vec<_> = play.requests().iter().map(contexts).collect();
    assert_eq!(
        contexts,
        [
            ["house: We meet at nine.", "notes: "],
            ["house: We meet at nine.", "notes: milk"],
            ["house: We meet at nine.", "notes: milk; bread; tea"],
        ]
    );
    let lines = story.events();
    let kept: Vec<_> = lines.lines().filter(|line| line.contains("PLUGIN") || line.contains("TOOL_RESULT")).collect();
    insta::assert_snapshot!(kept.join("\n"), @r#"
      8 Listen/0.0 LOOP_PLUGIN_CHANGED {"plugin":"notes","state":{"lines":["milk"]}}
      9 Listen/0.0 LOOP_TOOL_RESULT {"duration":0,"result":{"output":"noted","type":"success"}}
     17 Listen/1.0 LOOP_PLUGIN_CHANGED {"plugin":"notes","state":{"lines":["milk","bread"]}}
     18 Listen/1.0 LOOP_TOOL_RESULT {"duration":0,"result":{"output":"noted","type":"success"}}
     19 Listen/1.1 LOOP_PLUGIN_CHANGED {"plugin":"notes","state":{"lines":["milk","bread","tea"]}}
     20 Listen/1.1 LOOP_TOOL_RESULT {"duration":0,"result":{"output":"noted","type":"success"}}
    "#);
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
struct Nothing {}

impl PluginState for Nothing {
    const NAME: &'static str = "broken";
}

/// A brain whose loop has plugins that ask, need approvals, and wrap calls.
fn tale() -> Tale {
    let ledger = Ledger::default();
    let deeds = ledger.clone();
    let journal = Journal::default();
    let plugged = brain("Plugged").state(0_u32).r#loop("Work", move |cx| {
        let deeds = deeds.clone();
        cx.system("Work.").plugin(Notebook).plugin(Asking).plugin(Spy::<1>(journal.clone())).tool("act", |t| {
            t.idempotent().execute(move |Line { line }, cx| {
                deeds.act_once(cx.idempotency_key(), &line);
                async move { Ok(cx.result("done").update(|count| *count += 1)) }
            })
        })
    });
    Tale {
        definition: positronic_core::dsl::IntoBrain::definition(&plugged),
        options: Value::Null,
        ledger,
        says: std::sync::Arc::new(|request| match (request.path.as_str(), request.tools.tools().is_empty()) {
            (_, true) => Reply::text(format!("{} words", request.system.len())),
            ("Work/0", _) => Reply::calls([("note", json!({"line": "a"})), ("act", json!({"line": "x"}))]),
            ("Work/1", _) => Reply::calls([("publish", json!({"line": "b"})), ("note", json!({"line": "c"}))]),
            ("Work/2", _) => note("d"),
            _ => done(),
        }),
        answers: std::sync::Arc::new(|pending| {
            vec![SignalKind::Approve { call: pending.call.clone(), arguments: Some(json!({"line": "edited"})) }]
        }),
    }
}

#[tokio::test(start_paused = true)]
async fn promise_14_and_21_hold_with_plugins() {
    let tale = tale();
    let baseline = tale.undisturbed().await;
    let notes = |log: &[std::sync::Arc<positronic_core::record::Event>]| {
        let state = positronic_core::machine::RunState::replay(log.iter().map(|event| &**event)).unwrap();
        state.root.unwrap().plugins.get("notes").cloned()
    };
    assert_eq!(
        notes(&baseline.log),
        Some(PluginDocument {
            version: 0,
            state: std::sync::Arc::new(json!({"lines": ["a", "published edited", "c", "d"]}))
        })
    );
    for death in &baseline.deaths {
        let Some((end, log)) = tale.after(&baseline, death).await else { continue };

        assert_eq!(notes(&log), notes(&baseline.log), "after {}", death.until);
        assert_eq!(end, baseline.end, "after {}", death.until);
    }
}

#[tokio::test(start_paused = true)]
async fn duplicate_plugin_names_are_a_usage_error() {
    let twice = brain("Twice").r#loop("Work", |cx| cx.system("Work.").plugin(Notebook).plugin(Notebook));

    let story = Play::new([]).run(&twice, ()).await;

    let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
    assert!(
        failure.message.ends_with(
            "the code panicked: the loop has two plugins named `notes`; name one of them with `plugin(…).named(\"…\")`"
        ),
        "{}",
        failure.message
    );
}
