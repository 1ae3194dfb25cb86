//! Guards of loops and hooks of plugins that never end: the runner limits their time.

use std::future::pending;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::BoxFuture;
use positronic_core::dsl::{
    CallAround, CallReply, Loop, Options, Plugin, PluginContext, Preparation, RequestEdit, ResponseInspection,
    Services, State, Verdict,
};
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::model::{DeltaSink, Model};
use positronic_core::prelude::*;
use positronic_core::record::{
    EndReason, EventKind, Failure, Message, ModelError, ModelRequest, ModelResponse, Seq, ToolResult,
};
use positronic_core::runner::detached::{DetachedCall, DetachedOutcome, ToolExecutor};
use positronic_core::runner::{RunHandle, Settled};
use positronic_core::store::MemoryStore;
use serde_json::json;
use tokio::time::sleep;

const LIMIT: Duration = Duration::from_secs(7);

/// Adds a guard or a plugin to a loop.
type Guarded = fn(Loop) -> Loop;

fn desk(guarded: Guarded) -> Brain<(), ()> {
    brain("Desk")
        .r#loop("Chat", move |cx| {
            let chat = cx.system("Help.").input("Hello");
            guarded(chat.tool("look", |t| t.execute(async |_: NoArgs, _| Ok("seen"))))
        })
        .build()
}

async fn start(desk: Brain<(), ()>) -> RunHandle<()> {
    let model = ScriptedModel::from_fn(|request| match request.messages.messages().pop() {
        Some(Message::Tool { .. }) => Reply::text("Nothing."),
        _ => Reply::call("look", json!({})),
    });
    Runner::new(model).hook_timeout(LIMIT).start(desk, ()).await.unwrap()
}

async fn failure_of(run: &RunHandle<()>) -> Failure {
    match run.settled().await {
        Settled::Failed(failure) => failure,
        settled => panic!("it has not failed: {settled:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn guard_that_never_ends_stops_its_loop() {
    let guards: [Guarded; 4] = [
        |chat| chat.guard_input("Slow", async |_, _| pending::<Verdict>().await),
        |chat| chat.guard_answer("Slow", async |_, _| pending::<Verdict>().await),
        |chat| chat.guard_call("Slow", async |_, _, _| pending::<Verdict>().await),
        |chat| chat.guard_result("Slow", async |_, _, _| pending::<Verdict>().await),
    ];
    for guarded in guards {
        let failure = failure_of(&start(desk(guarded)).await).await;

        assert_eq!(failure.code, EndReason::Guard);
        let (names, says) = (failure.message.contains("`Slow`"), "the guard failed: it took longer than 7s");
        assert!(names && failure.message.ends_with(says), "{failure}");
    }
}

/// A plugin with a hook that never ends.
#[derive(PartialEq)]
enum Stuck {
    Prepare,
    Request,
    Response,
    Call,
}

impl<O: Options, S: State, V: Services> Plugin<O, S, V> for Stuck {
    type State = ();
    const NAME: &'static str = "stuck";

    fn initial(&self) {}

    async fn prepare(&self, _: &mut Preparation<'_, O, S, V, ()>) -> Result<()> {
        if *self == Self::Prepare { pending().await } else { Ok(()) }
    }

    async fn request(&self, _: &mut RequestEdit<'_, O, S, V, ()>) -> Result<()> {
        if *self == Self::Request { pending().await } else { Ok(()) }
    }

    async fn response(&self, _: &mut ResponseInspection<'_, O, S, V, ()>, _: &ModelResponse) -> Result<()> {
        if *self == Self::Response { pending().await } else { Ok(()) }
    }

    async fn call(&self, _: &PluginContext<O, S, V, ()>, around: CallAround<'_, ()>) -> Result<CallReply<()>> {
        if *self == Self::Call { pending().await } else { around.run().await }
    }
}

#[tokio::test(start_paused = true)]
async fn plugin_that_never_prepares_an_iteration_fails_its_loop_with_the_code_timeout() {
    let hooks: [(_, Guarded); 2] =
        [("prepare", |chat| chat.plugin(Stuck::Prepare)), ("request", |chat| chat.plugin(Stuck::Request))];
    for (hook, stuck) in hooks {
        let failure = failure_of(&start(desk(stuck)).await).await;

        assert_eq!((failure.code, failure.retryable), (EndReason::Timeout, true));
        let says = format!(
            "the loop `Chat` cannot be configured: the plugin `stuck` failed: its hook `{hook}` took longer than 7s"
        );
        assert_eq!(failure.message, says);
    }
}

#[tokio::test(start_paused = true)]
async fn loop_continues_without_a_plugin_that_never_inspects_an_answer() {
    let run = start(desk(|chat| chat.plugin(Stuck::Response))).await;

    run.result().await.unwrap();

    assert_eq!(run.answer().as_deref(), Some("Nothing."));
    let log = run.events(Seq(0)).await.unwrap();
    let failed = log.iter().filter_map(|event| match &event.kind {
        EventKind::LoopPluginFailed { plugin, message, .. } => Some((plugin.as_str(), message.as_str())),
        _ => None,
    });
    let late = ("stuck", "its hook `response` took longer than 7s");
    assert_eq!(failed.collect::<Vec<_>>(), [late, late]);
}

#[tokio::test(start_paused = true)]
async fn hook_around_a_call_has_the_time_of_the_tool() {
    let run = start(desk(|chat| chat.plugin(Stuck::Call))).await;

    run.result().await.unwrap();

    let log = run.events(Seq(0)).await.unwrap();
    let results = log.iter().filter_map(|event| match &event.kind {
        EventKind::LoopToolResult { result: ToolResult::Error { message, .. }, .. } => Some(message.as_str()),
        _ => None,
    });
    let late = "the tool took longer than 60s; whether it had its effect is unknown";
    assert_eq!(results.collect::<Vec<_>>(), [late]);
}

/// Performs each call in a process of its own, which takes an hour to get to it.
#[derive(Clone, Default)]
struct Elsewhere {
    process: Arc<OnceLock<Runner>>,
    performed: Arc<AtomicU32>,
}

impl ToolExecutor for Elsewhere {
    fn execute(&self, call: DetachedCall) -> BoxFuture<'static, DetachedOutcome> {
        let Self { process, performed } = self.clone();
        Box::pin(async move {
            sleep(Duration::from_hours(1)).await;
            performed.fetch_add(1, Ordering::Relaxed);
            process.get().unwrap().prepare_call(call).await.unwrap().perform().await
        })
    }
}

/// A plugin that takes time before and after each call.
#[derive(Clone, Copy)]
struct Around {
    before: Duration,
    after: Duration,
}

impl<O: Options, S: State, V: Services> Plugin<O, S, V> for Around {
    type State = ();
    const NAME: &'static str = "around";

    fn initial(&self) {}

    async fn call(&self, _: &PluginContext<O, S, V, ()>, around: CallAround<'_, ()>) -> Result<CallReply<()>> {
        sleep(self.before).await;
        let reply = around.run().await;
        sleep(self.after).await;
        reply
    }
}

/// Returns the result of a call that runs apart from its worker, and how often it was performed.
async fn detached_call(plugin: Around) -> (ToolResult, u32) {
    let desk = brain("Desk")
        .r#loop("Chat", move |cx| {
            let chat = cx.system("Help.").input("Hello").plugin(plugin);
            chat.tool("look", |t| t.execute(async |_: NoArgs, _| Ok("seen")))
        })
        .build();
    let model = || {
        ScriptedModel::from_fn(|request| match request.messages.messages().pop() {
            Some(Message::Tool { .. }) => Reply::text("Nothing."),
            _ => Reply::call("look", json!({})),
        })
    };
    let (store, elsewhere) = (MemoryStore::new(), Elsewhere::default());
    elsewhere.process.get_or_init(|| Runner::new(model()).store(store.clone()).brain(&desk));
    let worker = Runner::new(model()).store(store).tool_executor(elsewhere.clone()).hook_timeout(LIMIT);
    let run = worker.start(&desk, ()).await.unwrap();
    run.result().await.unwrap();
    let log = run.events(Seq(0)).await.unwrap();
    let result = log.iter().find_map(|event| match &event.kind {
        EventKind::LoopToolResult { result, .. } => Some(result.clone()),
        _ => None,
    });
    (result.unwrap(), elsewhere.performed.load(Ordering::Relaxed))
}

#[tokio::test(start_paused = true)]
async fn time_of_a_detached_call_does_not_count_for_the_hook_around_it() {
    let plugin = Around { before: LIMIT - Duration::from_secs(1), after: LIMIT - Duration::from_secs(1) };

    let (result, performed) = detached_call(plugin).await;

    assert!(matches!(result, ToolResult::Success { .. }), "{result:?}");
    assert_eq!(performed, 1);
}

#[tokio::test(start_paused = true)]
async fn hook_that_never_ends_around_a_detached_call_makes_the_call_an_error() {
    let (now, never) = (Duration::ZERO, Duration::from_hours(1000));
    for (plugin, is_performed) in [(Around { before: never, after: now }, 0), (Around { before: now, after: never }, 1)]
    {
        let (result, performed) = detached_call(plugin).await;

        let ToolResult::Error { message, .. } = result else { panic!("{result:?}") };
        assert_eq!(message, "a plugin around the tool took longer than 7s; whether it had its effect is unknown");
        assert_eq!(performed, is_performed);
    }
}

/// A model that thinks for an hour about each question of a guard.
struct Slow(ScriptedModel);

impl Model for Slow {
    fn name(&self) -> String {
        self.0.name()
    }

    fn call<'a>(
        &'a self,
        request: &'a ModelRequest,
        deltas: &'a dyn DeltaSink,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        Box::pin(async move {
            if &*request.system != "Help." {
                sleep(Duration::from_hours(1)).await;
            }
            self.0.call(request, deltas).await
        })
    }

    fn wire(&self, request: &ModelRequest) -> String {
        self.0.wire(request)
    }
}

#[tokio::test(start_paused = true)]
async fn time_of_a_model_that_a_guard_asks_does_not_count() {
    let judged = desk(|chat| {
        chat.guard_answer("Judge", async |cx, answer: Arc<ModelResponse>| {
            for question in ["Is it polite?", "Is it true?"] {
                sleep(LIMIT / 2).await;
                cx.model().system(question).ask(answer.text()).await?;
            }
            Ok(Verdict::Pass)
        })
    });
    let run = Runner::new(Slow(ScriptedModel::from_fn(|_| Reply::text("yes"))))
        .hook_timeout(LIMIT)
        .start(judged, ())
        .await
        .unwrap();

    run.result().await.unwrap();

    assert_eq!(run.answer().as_deref(), Some("yes"));
}
