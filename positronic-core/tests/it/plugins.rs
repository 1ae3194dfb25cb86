//! Plugins: what they add to a round, what they keep, the order of their hooks, and what an error in each does.

mod blueprints;
mod compaction;
mod memory;
mod modes;
mod skills;
mod triggers;

use positronic_core::dsl::{
    CallAround, CallReply, Options, Plugin, PluginContext, PluginState, Preparation, Provides, RequestEdit, Services,
    State, Tool,
};
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Body, ModelRequest, ModelResponse, PluginDocument, SignalKind, ToolResult};
use positronic_core::runner::Settled;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::boundaries::{Ledger, Tale, Whole};
use crate::support::{Journal, Play, done, events_named, results, success, tool_texts};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Notes {
    lines: Vec<String>,
}

impl PluginState for Notes {
    const NAME: &'static str = "notes";
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Line {
    line: String,
}

/// Keeps lines, shows them to the model, and lets it write more.
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

pub(crate) fn contexts(request: &ModelRequest) -> Vec<String> {
    request.context.iter().map(|item| format!("{}: {}", item.name, item.text)).collect()
}

/// Plays a tale from every moment at which its process could have died: it ends the same, and the plugin keeps the same.
pub(crate) async fn dies_everywhere(tale: &Tale, plugin: &str, kept: &Value) -> Whole {
    let whole = tale.undisturbed().await;
    assert!(whole.deaths.len() > 5);
    for death in &whole.deaths {
        let Some((end, log)) = tale.after(&whole, death).await else { continue };

        assert_eq!(end, whole.end, "after {}", death.until);
        let state = positronic_core::machine::RunState::replay(log.iter().map(|event| &**event)).unwrap();
        let document = state.root.as_ref().unwrap().plugins.get(plugin).cloned();
        assert_eq!(document.map(|kept| Value::clone(&kept.state)).as_ref(), Some(kept), "after {}", death.until);
    }
    whole
}

fn secretary() -> Brain<(), ()> {
    brain("Secretary")
        .r#loop("Listen", |cx| cx.system("Take notes.").context("house", "We meet at nine.").plugin(Notebook))
}

#[tokio::test(start_paused = true)]
async fn a_plugin_adds_tools_and_context_and_keeps_what_its_tools_change() {
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

/// Says what happens in which order.
#[derive(Debug, Clone)]
struct Spy<const N: usize>(Journal);

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Seen<const N: usize> {
    calls: u32,
}

impl PluginState for Seen<1> {
    const NAME: &'static str = "one";
}

impl PluginState for Seen<2> {
    const NAME: &'static str = "two";
}

impl<const N: usize, O: Options, S: State, V: Services> Plugin<O, S, V> for Spy<N>
where
    Seen<N>: PluginState,
{
    type State = Seen<N>;

    fn initial(&self) -> Seen<N> {
        Seen { calls: 0 }
    }

    async fn prepare(&self, cx: &mut Preparation<'_, O, S, V, Seen<N>>) -> Result<()> {
        let one = cx.plugin_state::<Seen<1>>().map_or(99, |seen| seen.calls);
        self.0.note(format!("{N} prepares, the first has seen {one}"));
        Ok(())
    }

    async fn request(&self, cx: &mut RequestEdit<'_, O, S, V, Seen<N>>) -> Result<()> {
        self.0.note(format!("{N} reads {} messages for {} tools", cx.messages().len(), cx.tools().count()));
        Ok(())
    }

    async fn response(&self, cx: &mut PluginContext<O, S, V, Seen<N>>, response: &ModelResponse) -> Result<()> {
        cx.state.calls += u32::try_from(response.calls.len()).unwrap();
        self.0.note(format!("{N} hears {} calls", response.calls.len()));
        Ok(())
    }

    async fn call(
        &self,
        _: &PluginContext<O, S, V, Seen<N>>,
        around: CallAround<'_, Seen<N>>,
    ) -> Result<CallReply<Seen<N>>> {
        self.0.note(format!("{N} before {}", around.call().tool));
        let reply = around.run().await?;
        self.0.note(format!("{N} after {}", reply.output()));
        let output = json!([N, reply.output()]);
        Ok(reply.with_output(output).update(|seen| seen.calls += 10))
    }
}

#[tokio::test(start_paused = true)]
async fn hooks_run_in_the_order_of_registration_and_nest_around_a_call() {
    let journal = Journal::default();
    let spied = {
        let journal = journal.clone();
        brain("Spied").r#loop("Work", move |cx| {
            cx.system("Work.")
                .input("Go.")
                .plugin(Spy::<1>(journal.clone()))
                .plugin(Spy::<2>(journal.clone()))
                .tool("ping", |t| t.execute(async |_: NoArgs, _| Ok("pong")))
        })
    };
    let play = Play::new([Reply::call("ping", json!({})), done()]);

    let story = play.run(&spied, ()).await;

    assert_eq!(
        journal.take(),
        [
            "1 prepares, the first has seen 99",
            "2 prepares, the first has seen 0",
            "1 reads 1 messages for 1 tools",
            "2 reads 1 messages for 1 tools",
            "1 hears 1 calls",
            "2 hears 1 calls",
            "1 before ping",
            "2 before ping",
            "2 after \"pong\"",
            "1 after [2,\"pong\"]",
            "1 prepares, the first has seen 11",
            "2 prepares, the first has seen 11",
            "1 reads 3 messages for 1 tools",
            "2 reads 3 messages for 1 tools",
            "1 hears 0 calls",
            "2 hears 0 calls",
        ]
    );
    assert_eq!(results(&story, "Work"), [success(json!([1, [2, "pong"]]))]);
}

/// Fails in the hook that it is told.
#[derive(Debug, Clone, Copy)]
struct Broken(&'static str);

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
struct Nothing {}

impl PluginState for Nothing {
    const NAME: &'static str = "broken";
}

impl Broken {
    fn at(self, hook: &str) -> Result<()> {
        assert!(self.0 != format!("{hook} panics"), "it is too much");
        if self.0 == hook { Err(Error::new("it is too late")) } else { Ok(()) }
    }
}

impl<O: Options, S: State, V: Services> Plugin<O, S, V> for Broken {
    type State = Nothing;

    fn initial(&self) -> Nothing {
        Nothing {}
    }

    async fn prepare(&self, _: &mut Preparation<'_, O, S, V, Nothing>) -> Result<()> {
        self.at("prepare")
    }

    async fn request(&self, _: &mut RequestEdit<'_, O, S, V, Nothing>) -> Result<()> {
        self.at("request")
    }

    async fn response(&self, _: &mut PluginContext<O, S, V, Nothing>, _: &ModelResponse) -> Result<()> {
        self.at("response")
    }

    async fn call(
        &self,
        _: &PluginContext<O, S, V, Nothing>,
        around: CallAround<'_, Nothing>,
    ) -> Result<CallReply<Nothing>> {
        self.at("call")?;
        around.run().await
    }
}

async fn broken(hook: &'static str) -> positronic_core::testing::Story {
    let brain = brain("Broken").r#loop("Work", move |cx| {
        cx.system("Work.").plugin(Broken(hook)).tool("ping", |t| t.execute(async |_: NoArgs, _| Ok("pong")))
    });
    let asked = !hook.starts_with("prepare") && !hook.starts_with("request");
    let replies = [Reply::call("ping", json!({})), done()];
    Play::new(replies.into_iter().filter(|_| asked)).run(&brain, ()).await
}

#[tokio::test(start_paused = true)]
async fn an_error_in_prepare_or_request_fails_the_loop_before_the_model_is_asked() {
    for (hook, sentence) in [
        ("prepare", "the loop `Work` cannot be configured: the plugin `broken` failed: it is too late"),
        (
            "prepare panics",
            "the loop `Work` cannot be configured: the plugin `broken` failed: it panicked: it is too much",
        ),
        ("request", "the loop `Work` cannot be configured: the plugin `broken` refused the request: it is too late"),
    ] {
        let story = broken(hook).await;

        let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
        assert_eq!(failure.message, sentence);
        assert!(events_named(&story, "LOOP_MODEL_CALL").is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_after_an_answer_is_recorded_and_the_loop_goes_on() {
    let story = broken("response").await;

    assert!(matches!(story.settled(), Settled::Completed(_)));
    let failed: Vec<_> = story.log().iter().filter(|event| event.body.name() == "LOOP_PLUGIN_FAILED").collect();
    assert_eq!(failed.len(), 2);
    assert_eq!(
        failed[0].body,
        Body::LoopPluginFailed { plugin: "broken".to_owned(), message: "it is too late".to_owned() }
    );
    assert_eq!(results(&story, "Work"), [success("pong")]);
}

#[tokio::test(start_paused = true)]
async fn an_error_around_a_call_is_its_result() {
    assert_eq!(results(&broken("call").await, "Work"), [ToolResult::error("it is too late")]);
    assert_eq!(results(&broken("call panics").await, "Work"), [ToolResult::error("it panicked: it is too much")]);
}

/// Takes the tools out of a round that a person has not unlocked, and answers dangerous calls itself.
#[derive(Debug, Clone)]
struct Guard<S: 'static> {
    extra: Tool<(), S, ()>,
}

impl<S: State> Plugin<(), S, ()> for Guard<S> {
    type State = Nothing;

    fn initial(&self) -> Nothing {
        Nothing {}
    }

    async fn prepare(&self, cx: &mut Preparation<'_, (), S, (), Nothing>) -> Result<()> {
        cx.brain_tools([&self.extra])
    }

    async fn request(&self, cx: &mut RequestEdit<'_, (), S, (), Nothing>) -> Result<()> {
        cx.retain_tools(|tool| !tool.flags.destructive);
        cx.context().retain(|item| item.name != "secret");
        cx.settings().temperature = Some(0.0);
        let system = format!("{} Be careful.", cx.system());
        cx.set_system(system);
        Ok(())
    }

    async fn call(
        &self,
        _: &PluginContext<(), S, (), Nothing>,
        around: CallAround<'_, Nothing>,
    ) -> Result<CallReply<Nothing>> {
        if around.call().arguments["by"] == 0 { CallReply::instead(&"nothing to add") } else { around.run().await }
    }
}

#[derive(Deserialize, JsonSchema)]
struct By {
    by: u32,
}

#[tokio::test(start_paused = true)]
async fn a_plugin_edits_the_request_and_adds_tools_of_the_brain() {
    let counter = brain("Counter").state(1_u32).r#loop("Count", |cx| {
        let add = Tool::new("add", |t| {
            t.execute(async |By { by }, cx| Ok(cx.result("added").update(move |count: &mut u32| *count += by)))
        });
        cx.system("Count.")
            .context("secret", "4711")
            .tool("wipe", |t| t.destructive().execute(async |_: NoArgs, _| Ok(())))
            .plugin(Guard { extra: add })
    });
    let calls = Reply::calls([("add", json!({"by": 2})), ("add", json!({"by": 0})), ("wipe", json!({}))]);
    let play = Play::new([calls, done()]);

    let story = play.run(&counter, ()).await;

    let request = play.last_request();
    assert_eq!((&*request.system, contexts(&request)), ("Count. Be careful.", vec![]));
    assert_eq!(request.settings.temperature, Some(0.0));
    assert_eq!(*story.state(), json!(3));
    let refused = ToolResult::error("there is no tool `wipe`; the tools are `add`");
    assert_eq!(results(&story, "Count"), [success("added"), success("nothing to add"), refused]);
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Renamed {
    entries: Vec<String>,
}

impl PluginState for Renamed {
    const NAME: &'static str = "notes";
    const VERSION: u32 = 1;

    fn migrate(version: u32, kept: Value) -> Result<Self> {
        if version != 0 {
            return Err(Error::new(format!("nobody knows version {version}")));
        }
        let before: Notes = serde_json::from_value(kept)?;
        Ok(Self { entries: before.lines })
    }
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Careless {
    entries: Vec<String>,
}

impl PluginState for Careless {
    const NAME: &'static str = "notes";
}

/// Shows what is kept under `notes`.
#[derive(Debug, Clone, Copy)]
struct Reader<P>(std::marker::PhantomData<P>);

trait Entries: PluginState {
    fn entries(&self) -> &[String];
}

impl Entries for Renamed {
    fn entries(&self) -> &[String] {
        &self.entries
    }
}

impl Entries for Careless {
    fn entries(&self) -> &[String] {
        &self.entries
    }
}

impl<P: Entries, O: Options, S: State, V: Services> Plugin<O, S, V> for Reader<P> {
    type State = P;

    fn initial(&self) -> P {
        unreachable!("there is something")
    }

    async fn prepare(&self, cx: &mut Preparation<'_, O, S, V, P>) -> Result<()> {
        let entries = cx.state.entries().join("; ");
        cx.context("entries", entries);
        Ok(())
    }
}

fn reading<P: Entries>() -> Brain<(), ()> {
    secretary().r#loop("Read", |cx| cx.system("Read.").plugin(Reader::<P>(std::marker::PhantomData)))
}

#[tokio::test(start_paused = true)]
async fn what_another_version_has_kept_is_migrated() {
    let play = Play::new([note("milk"), done(), done()]);

    let story = play.run(&reading::<Renamed>(), ()).await;

    assert!(matches!(story.settled(), Settled::Completed(_)));
    assert_eq!(contexts(&play.last_request()), ["entries: milk"]);
    let kept = story.log().iter().rev().find_map(|event| match &event.body {
        Body::LoopIteration(iteration) => iteration.plugins.get("notes").cloned(),
        _ => None,
    });
    assert_eq!(serde_json::to_value(kept).unwrap(), json!({"version": 1, "state": {"entries": ["milk"]}}));
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_any_more_is_refused_with_a_sentence() {
    let story = Play::new([note("milk"), done()]).run(&reading::<Careless>(), ()).await;

    let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
    assert_eq!(
        failure.message,
        "the loop `Read` cannot be configured: the plugin `notes` failed: what the plugin `notes` has kept does not fit \
         `it::plugins::Careless`: \"entries\" is a required property; raise its `VERSION` and write `migrate`"
    );
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Summary {
    rounds: u32,
    last: String,
}

impl PluginState for Summary {
    const NAME: &'static str = "summary";
}

/// Asks a model about every second round.
#[derive(Debug, Clone, Copy)]
struct Asking;

impl<O: Options, S: State, V: Services> Plugin<O, S, V> for Asking {
    type State = Summary;

    fn initial(&self) -> Summary {
        Summary { rounds: 0, last: String::new() }
    }

    async fn prepare(&self, cx: &mut Preparation<'_, O, S, V, Summary>) -> Result<()> {
        if cx.state.rounds % 2 == 1 {
            let (one, other) = futures::join!(
                cx.model().system("Sum up.").ask(format!("{} messages", cx.messages().len())),
                cx.model().ask("Anything else?"),
            );
            cx.state.last = format!("{} / {}", one?, other?);
        }
        cx.state.rounds += 1;
        let last = cx.state.last.clone();
        cx.context("summary", last);
        Ok(())
    }
}

/// Asks a slow model, gives up on it, and asks something else instead.
#[derive(Debug, Clone, Copy)]
struct Impatient;

impl<O: Options, S: State, V: Services> Plugin<O, S, V> for Impatient {
    type State = Summary;

    fn initial(&self) -> Summary {
        Summary { rounds: 0, last: String::new() }
    }

    async fn prepare(&self, cx: &mut Preparation<'_, O, S, V, Summary>) -> Result<()> {
        let patience = std::time::Duration::from_secs(1);
        assert!(tokio::time::timeout(patience, cx.model().ask("long")).await.is_err());
        cx.state.last = cx.model().ask("short").await?;
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn the_answer_to_a_question_that_a_plugin_gave_up_is_not_taken_for_another_ones() {
    let says = |request: &ModelRequest| {
        let asked = serde_json::to_string(&request.messages.messages()).unwrap();
        if asked.contains("long") {
            Reply::text("the long answer").after(std::time::Duration::from_secs(5))
        } else if asked.contains("short") {
            Reply::text("the short answer").after(std::time::Duration::from_secs(10))
        } else {
            done()
        }
    };
    for lockstep in [true, false] {
        let hasty = brain("Hasty").r#loop("Work", |cx| cx.system("Work.").input("Go").plugin(Impatient));

        let story = Play::of(ScriptedModel::from_fn(says), lockstep).run(&hasty, ()).await;

        assert!(matches!(story.settled(), Settled::Completed(_)), "{:?}", story.settled());
        let kept = story.log().iter().find_map(|event| match &event.body {
            Body::LoopIteration(iteration) => Some(format!("{:?}", iteration.plugins)),
            _ => None,
        });
        assert!(kept.as_ref().is_some_and(|kept| kept.contains("the short answer")), "{kept:?}");
    }
}

/// Asks a model when it is no longer its turn: the round has begun, and the model is answering.
#[derive(Debug, Clone)]
struct Late(std::sync::Arc<std::sync::Mutex<Option<tokio::task::JoinHandle<Result<String>>>>>);

impl<O: Options, S: State, V: Services> Plugin<O, S, V> for Late {
    type State = Summary;

    fn initial(&self) -> Summary {
        Summary { rounds: 0, last: String::new() }
    }

    async fn prepare(&self, cx: &mut Preparation<'_, O, S, V, Summary>) -> Result<()> {
        let question = cx.model();
        *self.0.lock().unwrap() = Some(tokio::spawn(async move {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            question.ask("Too late?").await
        }));
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_plugin_that_asks_after_its_round_has_begun_gets_an_error_and_the_run_goes_on() {
    let late = Late(std::sync::Arc::default());
    let plugin = late.clone();
    let brain = brain("Late").r#loop("Work", move |cx| cx.system("Work.").input("Go").plugin(plugin.clone()));

    let story = Play::new([Reply::text("Done.").after(std::time::Duration::from_secs(5))]).run(&brain, ()).await;

    assert!(matches!(story.settled(), Settled::Completed(_)), "{:?}", story.settled());
    let late = late.0.lock().unwrap().take().unwrap();
    let asked = late.await.unwrap();
    assert!(asked.unwrap_err().to_string().contains("while it prepares a round"));
}

/// A brain whose loop has plugins that ask, that need approvals, and that stand around calls.
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
        plan: positronic_core::dsl::Runnable::plan(&plugged),
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
    let whole = tale.undisturbed().await;
    let notes = |log: &[std::sync::Arc<positronic_core::record::Event>]| {
        let state = positronic_core::machine::RunState::replay(log.iter().map(|event| &**event)).unwrap();
        state.root.unwrap().plugins.get("notes").cloned()
    };
    assert_eq!(
        notes(&whole.log),
        Some(PluginDocument {
            version: 0,
            state: std::sync::Arc::new(json!({"lines": ["a", "published edited", "c", "d"]}))
        })
    );
    for death in &whole.deaths {
        let Some((end, log)) = tale.after(&whole, death).await else { continue };

        assert_eq!(notes(&log), notes(&whole.log), "after {}", death.until);
        assert_eq!(end, whole.end, "after {}", death.until);
    }
}

#[tokio::test(start_paused = true)]
async fn a_plugins_question_is_recorded_and_no_part_of_the_conversation() {
    let asking = brain("Asking").r#loop("Work", |cx| {
        cx.system("Work.").input("Go.").plugin(Asking).tool("ping", |t| t.execute(async |_: NoArgs, _| Ok("pong")))
    });
    let ping = || Reply::call("ping", json!({}));
    let play = Play::new([ping(), Reply::text("short"), Reply::text("no"), ping(), done()]);

    let story = play.run(&asking, ()).await;

    let requests = play.requests();
    assert_eq!(contexts(&requests[3]), ["summary: short / no"]);
    assert_eq!(contexts(&requests[4]), ["summary: short / no"], "it asks in every second round alone");
    assert_eq!(tool_texts(&requests[4]), ["pong", "pong"]);
    assert!(!story.transcript().contains("short"), "{}", story.transcript());
    assert_eq!(story.state(), &Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_comes_while_a_round_is_prepared_is_read_in_it() {
    let slow = brain("Slow").r#loop("Work", |cx| cx.system("Work.").input("Go.").plugin(Slow));
    let play = Play::new([done()]);
    let run = play.start(&slow, ()).await;
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;

    run.message("Stop!", "ann").await.unwrap();

    assert!(matches!(run.settled().await, Settled::Completed(_)));
    let [request] = &*play.requests() else { panic!("one request") };
    assert_eq!(request.messages.len(), 2);
    assert_eq!(contexts(request), ["slow: 2 messages"]);
}

/// Takes a second to read the messages.
#[derive(Debug, Clone, Copy)]
struct Slow;

impl<O: Options, S: State, V: Services> Plugin<O, S, V> for Slow {
    type State = Nothing;

    fn initial(&self) -> Nothing {
        Nothing {}
    }

    async fn prepare(&self, cx: &mut Preparation<'_, O, S, V, Nothing>) -> Result<()> {
        let messages = cx.messages().len();
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        cx.context("slow", format!("{messages} messages"));
        Ok(())
    }
}

/// A service that a plugin asks for.
#[derive(Debug)]
struct Greeting(&'static str);

struct House {
    greeting: Greeting,
}

impl Provides<Greeting> for House {
    fn provided(&self) -> &Greeting {
        &self.greeting
    }
}

#[derive(Debug, Clone, Copy)]
struct Polite;

impl<O: Options, S: State, V: Provides<Greeting>> Plugin<O, S, V> for Polite {
    type State = Nothing;

    fn initial(&self) -> Nothing {
        Nothing {}
    }

    async fn prepare(&self, cx: &mut Preparation<'_, O, S, V, Nothing>) -> Result<()> {
        let greeting = cx.service::<Greeting>().0;
        cx.context("greeting", greeting);
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_plugin_takes_its_services_from_those_of_the_brain() {
    let house = brain("House").services::<House>().r#loop("Greet", |cx| cx.system("Greet.").plugin(Polite));
    let bare = brain("Bare").services::<Greeting>().r#loop("Greet", |cx| cx.system("Greet.").plugin(Polite));
    let (one, other) = (Play::new([done()]), Play::new([done()]));

    one.run(&house.bind(House { greeting: Greeting("Good day") }), ()).await;
    other.run(&bare.bind(Greeting("Hello")), ()).await;

    assert_eq!(contexts(&one.last_request()), ["greeting: Good day"]);
    assert_eq!(contexts(&other.last_request()), ["greeting: Hello"]);
}

#[tokio::test(start_paused = true)]
async fn tools_read_what_plugins_keep() {
    let reading = brain("Reading").r#loop("Work", |cx| {
        cx.system("Work.")
            .plugin(Notebook)
            .tool("last", |t| t.execute(async |_: NoArgs, cx| Ok(cx.plugin_state::<Notes>()?.lines.last().cloned())))
    });
    let play = Play::new([note("milk"), Reply::call("last", json!({})), done()]);

    let story = play.run(&reading, ()).await;

    assert_eq!(results(&story, "Work"), [success("noted"), success("milk")]);
    let unknown = brain("Unknown").step("Look", async |cx| cx.plugin_state::<Notes>().map(|notes| notes.lines.len()));
    let Settled::Failed(failure) = Play::new([]).run(&unknown, ()).await.settled().clone() else { panic!("it fails") };
    assert_eq!(failure.message, "the step `Look` failed: no plugin `notes` has been prepared in this brain");
}

#[tokio::test(start_paused = true)]
async fn two_plugins_of_one_name_are_a_mistake() {
    let twice = brain("Twice").r#loop("Work", |cx| cx.system("Work.").plugin(Notebook).plugin(Notebook));

    let story = Play::new([]).run(&twice, ()).await;

    let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
    assert!(failure.message.ends_with("it panicked: the loop has two plugins named `notes`"), "{}", failure.message);
}
