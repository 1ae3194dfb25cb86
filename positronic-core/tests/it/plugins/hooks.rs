//! Hooks: their order, errors in each, their edits, and tools of other programs.

use std::sync::Arc;

use positronic_core::dsl::{
    CallAround, CallReply, Options, Plugin, PluginContext, PluginState, Preparation, RequestEdit, ResponseInspection,
    Services, State,
};
use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_core::record::{EventKind, ModelResponse, RunId, Seq, ToolResult};
use positronic_core::runner::{RunHandle, Settled};
use positronic_core::testing::Story;
use positronic_core::tools::Schema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Nothing;
use crate::support::contexts;
use crate::support::{Journal, Play, done, events_named, path, results, settled, success, waits};

/// Records the order of hooks.
#[derive(Debug, Clone)]
pub(super) struct Spy<const N: usize>(pub(super) Journal);

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct Seen<const N: usize> {
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

    async fn response(
        &self,
        cx: &mut ResponseInspection<'_, O, S, V, Seen<N>>,
        response: &ModelResponse,
    ) -> Result<()> {
        cx.state.calls += u32::try_from(response.calls.len()).unwrap();
        self.0.note(format!("{N} sees {} calls", response.calls.len()));
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
async fn hooks_run_in_registration_order_and_nest_around_a_call() {
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
            "1 prepares, the first has seen 0",
            "2 prepares, the first has seen 0",
            "1 reads 1 messages for 1 tools",
            "2 reads 1 messages for 1 tools",
            "1 sees 1 calls",
            "2 sees 1 calls",
            "1 before ping",
            "2 before ping",
            "2 after \"pong\"",
            "1 after [2,\"pong\"]",
            "1 prepares, the first has seen 11",
            "2 prepares, the first has seen 11",
            "1 reads 3 messages for 1 tools",
            "2 reads 3 messages for 1 tools",
            "1 sees 0 calls",
            "2 sees 0 calls",
        ]
    );
    assert_eq!(results(&story, "Work"), [success(json!([1, [2, "pong"]]))]);
}

/// Fails in the configured hook.
#[derive(Debug, Clone, Copy)]
struct Broken(&'static str);

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

    async fn response(&self, _: &mut ResponseInspection<'_, O, S, V, Nothing>, _: &ModelResponse) -> Result<()> {
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
async fn error_in_prepare_or_request_fails_the_loop_before_the_model_call() {
    for (hook, sentence) in [
        ("prepare", "the loop `Work` cannot be configured: the plugin `broken` failed: it is too late"),
        (
            "prepare panics",
            "the loop `Work` cannot be configured: the plugin `broken` failed: the code panicked: it is too much",
        ),
        ("request", "the loop `Work` was stopped: the plugin `broken` refused the request: it is too late"),
    ] {
        let story = broken(hook).await;

        let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
        assert_eq!(failure.message, sentence);
        assert!(events_named(&story, "LOOP_MODEL_CALL").is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn error_after_an_answer_is_recorded_and_the_loop_continues() {
    let story = broken("response").await;

    assert!(matches!(story.settled(), Settled::Completed(_)));
    let failed: Vec<_> = story.log().iter().filter(|event| event.kind.name() == "LOOP_PLUGIN_FAILED").collect();
    assert_eq!(failed.len(), 2);
    assert_eq!(
        failed[0].kind,
        EventKind::LoopPluginFailed { plugin: "broken".to_owned(), message: "it is too late".to_owned(), update: None }
    );
    assert_eq!(results(&story, "Work"), [success("pong")]);
}

#[tokio::test(start_paused = true)]
async fn error_around_a_call_is_its_result() {
    assert_eq!(results(&broken("call").await, "Work"), [ToolResult::error("it is too late")]);
    assert_eq!(results(&broken("call panics").await, "Work"), [ToolResult::error("the code panicked: it is too much")]);
}

/// Removes the tools from an iteration until a person unlocks them, and answers dangerous calls itself.
#[derive(Debug, Clone)]
struct Guard<S: 'static> {
    extra: Tool<(), S>,
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
async fn plugin_edits_the_request_and_adds_tools_of_the_brain() {
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

/// Adds the tool of another program, whose list of tools may have changed since a call was begun.
#[derive(Debug, Clone)]
struct Bridge {
    listed: (&'static str, &'static str),
}

fn object_with(field: &str) -> Value {
    json!({"type": "object", "properties": {field: {"type": "string"}}, "required": [field]})
}

fn bridged(name: &str, schema: Value) -> Tool<(), Value> {
    Tool::new(name, |t| {
        let t = t.requires_approval("it is another program's");
        t.execute_foreign(Arc::new(Schema::new(schema)), async |arguments: Value, _| Ok(arguments))
    })
}

impl Plugin<(), Value, ()> for Bridge {
    type State = Nothing;

    fn initial(&self) -> Nothing {
        Nothing {}
    }

    async fn prepare(&self, cx: &mut Preparation<'_, (), Value, (), Nothing>) -> Result<()> {
        let tools: Vec<_> = match cx.missing_tools() {
            Some(missing) => {
                missing.iter().map(|tool| bridged(tool.id.as_str(), Value::clone(&tool.parameters))).collect()
            }
            None => {
                let (name, field) = self.listed;
                vec![bridged(name, object_with(field))]
            }
        };
        cx.brain_tools(&tools)
    }
}

/// Continues a run of the agent in another process, with other code.
async fn continue_run(run: &RunHandle<Value>, play: Play, agent: Brain<(), Value>) -> (Play, RunHandle<Value>) {
    let log = run.events(Seq(0)).await.unwrap();
    let play = play.map(|runner| runner.brain(agent));
    let (runner, id) = (play.test.runner(), RunId::new("run-1"));
    runner.client().import(&id, &log).await.unwrap();
    let run = runner.resume(&id).await.unwrap();
    (play, run)
}

#[tokio::test(start_paused = true)]
async fn open_call_finds_its_tool_after_a_restart_though_the_plugin_lists_others() {
    let agent = |listed| {
        let bridge = Bridge { listed };
        brain("Agent").state(Value::Null).r#loop("Work", move |cx| cx.system("Work.").plugin(bridge.clone()))
    };
    let play = Play::new([Reply::call("look", json!({"at": "the sky"}))]);
    let run = play.start(agent(("look", "at")), ()).await;
    waits(&run).await;

    let after = Play::new([Reply::call("find", json!({"what": "a star"})), done()]);
    let (_after, run) = continue_run(&run, after, agent(("find", "what")).build()).await;
    for call in ["Work/0.0", "Work/1.0"] {
        assert_eq!(waits(&run).await, [call]);
        run.approve(&path(call), "ann").await.unwrap();
    }
    settled(&run).await;

    let found = [success(json!({"at": "the sky"})), success(json!({"what": "a star"}))];
    assert_eq!(results(&Story::of(&run).await, "Work"), found);
}

#[tokio::test(start_paused = true)]
async fn open_call_of_another_programs_tool_keeps_its_arguments_if_the_schema_changes() {
    let agent = |field| {
        let look = bridged("look", object_with(field));
        brain("Agent").state(Value::Null).r#loop("Work", move |cx| cx.system("Work.").tools([look.clone()]))
    };
    let play = Play::new([Reply::call("look", json!({"at": "the sky"}))]);
    let run = play.start(agent("at"), ()).await;
    waits(&run).await;

    let (_after, run) = continue_run(&run, Play::new([done()]), agent("where").build()).await;
    assert_eq!(waits(&run).await, ["Work/0.0"]);
    run.approve(&path("Work/0.0"), "ann").await.unwrap();
    settled(&run).await;

    assert_eq!(results(&Story::of(&run).await, "Work"), [success(json!({"at": "the sky"}))]);
}

#[test]
#[should_panic = "the schema of the tool `look` does not describe an object"]
fn schema_of_another_program_must_describe_an_object() {
    bridged("look", json!({"type": "string"}));
}
