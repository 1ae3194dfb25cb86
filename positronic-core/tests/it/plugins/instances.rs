//! Several instances of a plugin, plugins in a list, plugins without state, and plugins that read each other.

use std::sync::Arc;

use positronic_core::dsl::{
    CallAround, CallReply, IntoBrain as _, LoopPlugin, Options, Plugin, PluginContext, Preparation, ResponseInspection,
    Services, State, plugin,
};
use positronic_core::machine::RunState;
use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_core::record::{Event, ModelResponse, SignalKind};
use positronic_core::runner::Settled;
use serde_json::{Value, json};

use super::{Line, Notebook, Notes, note};
use crate::support::boundaries::{Ledger, Tale};
use crate::support::{Journal, Play, contexts, done, error_of, results, success};

/// Shows the lines of the notebook, and has no state.
#[derive(Debug, Clone)]
struct Board(Journal);

impl<O: Options, S: State, V: Services> Plugin<O, S, V> for Board {
    type State = ();
    const NAME: &'static str = "board";

    fn initial(&self) {}

    async fn prepare(&self, cx: &mut Preparation<'_, O, S, V, ()>) -> Result<()> {
        let lines = cx.plugin_state::<Notes>()?.lines.len();
        cx.context("board", format!("{lines} lines"));
        cx.tool("clap", |t| t.read_only().execute(async |_: NoArgs, _| Ok("clapped")))
    }

    async fn response(&self, _: &mut ResponseInspection<'_, O, S, V, ()>, _: &ModelResponse) -> Result<()> {
        self.0.note("sees an answer");
        Ok(())
    }

    async fn call(&self, _: &PluginContext<O, S, V, ()>, around: CallAround<'_, ()>) -> Result<CallReply<()>> {
        self.0.note(format!("sees {}", around.call().tool));
        around.run().await
    }
}

fn states(log: &[Arc<Event>]) -> Value {
    let state = RunState::replay(log.iter().map(|event| &**event)).unwrap();
    serde_json::to_value(&state.root.unwrap().plugins).unwrap()
}

fn two_books() -> Brain<(), ()> {
    let secretary = brain("Two books").r#loop("Listen", |cx| {
        cx.system("Take notes.").plugins([
            plugin(Notebook).named("work"),
            plugin(Notebook).named("home"),
            plugin(Notebook),
        ])
    });
    secretary.build()
}

#[tokio::test(start_paused = true)]
async fn instances_have_states_tools_and_context_of_their_own() {
    let play = Play::new([
        Reply::calls([
            ("work.note", json!({"line": "call Ann"})),
            ("home.note", json!({"line": "milk"})),
            ("note", json!({"line": "nothing"})),
        ]),
        done(),
    ]);

    let story = play.run(&two_books(), ()).await;

    assert_eq!(contexts(&play.last_request()), ["work.notes: call Ann", "home.notes: milk", "notes: nothing"]);
    let tools: Vec<_> = play.last_request().tools.tools().iter().map(|tool| tool.id.to_string()).collect();
    assert_eq!(tools, ["work.note", "work.publish", "home.note", "home.publish", "note", "publish"]);
    assert_eq!(
        states(story.log()),
        json!({
            "work.notes": {"state": {"lines": ["call Ann"]}},
            "home.notes": {"state": {"lines": ["milk"]}},
            "notes": {"state": {"lines": ["nothing"]}},
        })
    );
}

#[tokio::test(start_paused = true)]
async fn tools_read_and_change_an_instance_by_its_name() {
    let tool: fn() -> Tool = || {
        Tool::new("copy", |t| {
            t.execute(async |_: NoArgs, cx| {
                let copied = cx.plugin_state_named::<Notes>("work")?.lines.join(", ");
                Ok(cx.result("copied").update_plugin_named("home", move |notes: &mut Notes| notes.lines.push(copied)))
            })
        })
    };
    let copier = brain("Copier").r#loop("Work", move |cx| {
        cx.system("Copy.").plugins(["work", "home"].map(|name| plugin(Notebook).named(name))).tools([tool()])
    });
    let play = Play::new([Reply::call("work.note", json!({"line": "tea"})), Reply::call("copy", json!({})), done()]);

    let story = play.run(&copier, ()).await;

    assert_eq!(contexts(&play.last_request()), ["work.notes: tea", "home.notes: tea"]);
    let Settled::Completed(_) = story.settled() else { panic!("{:?}", story.settled()) };
}

#[tokio::test(start_paused = true)]
async fn change_of_a_plugin_that_the_loop_does_not_have_is_an_error() {
    let lost = brain("Lost").r#loop("Work", |cx| {
        cx.system("Copy.").plugin(plugin(Notebook).named("work")).tool("copy", |t| {
            t.execute(async |_: NoArgs, cx| {
                Ok(cx.result("copied").update_plugin_named("hme", |notes: &mut Notes| notes.lines.clear()))
            })
        })
    });
    let play = Play::new([Reply::call("copy", json!({})), done()]);

    let story = play.run(&lost, ()).await;

    let error = error_of(&results(&story, "Work")[0]).to_owned();
    assert!(error.ends_with("the state is as before: the plugin `hme.notes` has not been prepared"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn plugin_reads_the_state_of_a_later_one_from_the_first_iteration_on() {
    let journal = Journal::default();
    let noted = journal.clone();
    let desk = brain("Desk")
        .r#loop("Listen", move |cx| cx.system("Help.").plugins([plugin(Board(noted.clone())), plugin(Notebook)]));
    let play = Play::new([Reply::calls([("note", json!({"line": "milk"})), ("clap", json!({}))]), done()]);

    let story = play.run(&desk, ()).await;

    let contexts: Vec<_> = play.requests().iter().map(contexts).collect();
    assert_eq!(contexts, [["board: 0 lines", "notes: "], ["board: 1 lines", "notes: milk"]]);
    assert_eq!(results(&story, "Listen"), [success("noted"), success("clapped")]);
    assert_eq!(journal.take(), ["sees an answer", "sees note", "sees clap", "sees an answer"]);
    // Nothing is recorded of a plugin without state.
    assert!(!story.events().contains("board\":"), "{}", story.events());
    assert_eq!(states(story.log()), json!({"notes": {"state": {"lines": ["milk"]}}}));
}

#[test]
fn names_that_cannot_be_parts_of_a_tool_are_usage_errors() {
    let named = |name: &'static str| {
        let panic = std::panic::catch_unwind(|| plugin::<(), (), ()>(Notebook).named(name)).unwrap_err();
        panic.downcast_ref::<String>().cloned().unwrap_or_default()
    };
    for name in ["", "two words", "a.b", "über"] {
        assert!(named(name).starts_with(&format!("`{name}` cannot name a plugin")), "{}", named(name));
    }
    let twice = std::panic::catch_unwind(|| plugin::<(), (), ()>(Notebook).named("work").named("home")).unwrap_err();
    let twice = twice.downcast_ref::<String>().unwrap();
    assert_eq!(twice, "the plugin `notes` has the name `work` already; name it once");
}

/// A brain with two instances of a plugin that needs approvals, and a plugin without state around them.
fn tale() -> Tale {
    let ledger = Ledger::default();
    let deeds = ledger.clone();
    let journal = Journal::default();
    let books = brain("Books").state(0_u32).r#loop("Work", move |cx| {
        let deeds = deeds.clone();
        let list: Vec<LoopPlugin<(), u32>> =
            vec![plugin(Board(journal.clone())), plugin(Notebook), plugin(Notebook).named("work")];
        cx.system("Work.").plugins(list).tool("act", |t| {
            t.idempotent().execute(move |Line { line }, cx| {
                deeds.act_once(cx.idempotency_key(), &line);
                async move {
                    let reply = cx.result("done").update(|count| *count += 1);
                    Ok(reply.update_plugin_named("work", move |notes: &mut Notes| notes.lines.push(line)))
                }
            })
        })
    });
    Tale {
        definition: books.definition(),
        options: Value::Null,
        ledger,
        says: Arc::new(|request| match request.path.as_str() {
            "Work/0" => {
                Reply::calls([("work.note", json!({"line": "a"})), ("act", json!({"line": "x"})), ("clap", json!({}))])
            }
            "Work/1" => Reply::calls([("work.publish", json!({"line": "b"})), ("note", json!({"line": "c"}))]),
            "Work/2" => note("d"),
            _ => done(),
        }),
        answers: Arc::new(|pending| vec![SignalKind::Approve { call: pending.call.clone(), arguments: None }]),
    }
}

#[tokio::test(start_paused = true)]
async fn instances_keep_their_states_after_a_crash_at_any_append() {
    let tale = tale();
    let baseline = tale.undisturbed().await;
    let expected = json!({
        "notes": {"state": {"lines": ["c", "d"]}},
        "work.notes": {"state": {"lines": ["a", "x", "published b"]}},
    });
    assert_eq!(states(&baseline.log), expected);
    assert!(baseline.deaths.len() > 10, "{}", baseline.deaths.len());
    for death in &baseline.deaths {
        let Some((end, log)) = tale.after(&baseline, death).await else { continue };

        assert_eq!(states(&log), expected, "after {}", death.until);
        assert_eq!(end, baseline.end, "after {}", death.until);
    }
}
