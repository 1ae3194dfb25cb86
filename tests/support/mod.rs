//! Shared support for stories: a workshop whose tools record their work; [`checks`] has what every log must pass.

pub(crate) mod boundaries;
pub(crate) mod checks;
pub(crate) mod dialogues;
pub(crate) mod disturbances;
pub(crate) mod watchdog;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use positronic_core::dsl::{Loop, Runnable, ToolBuilder};
use positronic_core::model::Model as _;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::prices::PriceTable;
use positronic_core::projection::Prompts;
use positronic_core::record::{Message, ModelRequest, OutputKind, Path, Pending, Prompt, ToolOutput, ToolResult};
use positronic_core::runner::{RunHandle, Settled};
use positronic_core::testing::{CountedIds, Lockstep as _, Story, Test, TestClock};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use checks::{check_log, check_requests};

/// A test with its scripted model, whose stories are checked.
pub(crate) struct Play {
    pub(crate) model: Arc<ScriptedModel>,
    pub(crate) test: Test,
    asked: Mutex<Vec<ModelRequest>>,
}

impl Play {
    /// Awaits all effects in flight and records them in path order.
    pub(crate) fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::of(ScriptedModel::new(replies), true)
    }

    /// Records outcomes in the order of their arrival.
    pub(crate) fn free(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::of(ScriptedModel::new(replies), false)
    }

    pub(crate) fn of(model: ScriptedModel, lockstep: bool) -> Self {
        watchdog::watch();
        let model = Arc::new(model);
        let runner = Runner::new(Arc::clone(&model))
            .clock(TestClock::default())
            .ids(CountedIds::default())
            .lockstep(lockstep)
            .linger(Duration::MAX);
        Self { model, test: Test::with(runner), asked: Mutex::default() }
    }

    /// Prices the answers with this table.
    pub(crate) fn priced(model: ScriptedModel, lockstep: bool, prices: &Value) -> Self {
        let model = Arc::new(model);
        let table = json!({"as_of": "2026-01-01", "currency": "EUR", "prices": prices});
        let runner = Runner::new(Arc::clone(&model))
            .clock(TestClock::default())
            .ids(CountedIds::default())
            .lockstep(lockstep)
            .linger(Duration::MAX)
            .prices(serde_json::from_value::<PriceTable>(table).unwrap());
        Self { model, test: Test::with(runner), asked: Mutex::default() }
    }

    pub(crate) fn map(self, change: impl FnOnce(Runner) -> Runner) -> Self {
        Self { test: self.test.map(change), ..self }
    }

    pub(crate) async fn start<B: Runnable>(&self, brain: B, options: B::Options) -> RunHandle<B::Result> {
        self.test.start(brain, options).await
    }

    /// Runs a brain until it has ended or waits, and checks its log.
    pub(crate) async fn run<B: Runnable>(&self, brain: B, options: B::Options) -> Story {
        let run = self.start(brain, options).await;
        self.story(&run).await
    }

    /// Reads a run that has ended or waits, and checks its log.
    pub(crate) async fn story<R: DeserializeOwned>(&self, run: &RunHandle<R>) -> Story {
        let story = Story::of(run).await;
        check_log(&story, &run.state());
        check_requests(story.log(), &self.requests());
        match story.settled() {
            Settled::Waiting(pending) => assert!(!pending.is_empty(), "the run hangs:\n{}", story.events()),
            Settled::Completed(_) => {
                self.asked.lock().unwrap().extend(self.model.requests());
                self.model.assert_used();
            }
            _ => {}
        }
        story
    }

    /// Returns all requests.
    pub(crate) fn requests(&self) -> Vec<ModelRequest> {
        let mut requests = self.asked.lock().unwrap().clone();
        requests.extend(self.model.requests());
        requests
    }

    /// Returns whether any request contains a text.
    pub(crate) fn model_read(&self, text: &str) -> bool {
        self.requests().iter().any(|request| self.model.wire(request).contains(text))
    }

    /// Returns the last request.
    pub(crate) fn last_request(&self) -> ModelRequest {
        self.requests().pop().expect("the model was asked")
    }

    /// Returns the tool messages of the last request.
    pub(crate) fn last_results(&self) -> Vec<String> {
        tool_texts(&self.last_request())
    }
}

/// Returns the context items of a request as `name: text`.
pub(crate) fn contexts(request: &ModelRequest) -> Vec<String> {
    request.context.iter().map(|item| format!("{}: {}", item.name, item.text)).collect()
}

/// Returns the texts of a request's tool messages.
pub(crate) fn tool_texts(request: &ModelRequest) -> Vec<String> {
    let messages = request.messages.messages();
    messages
        .into_iter()
        .filter_map(|message| match message {
            Message::Tool { text, .. } => Some(text),
            Message::User { .. } | Message::Assistant { .. } => None,
        })
        .collect()
}

/// The recorded work of a workshop's tools, in order. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Journal(Arc<Mutex<Vec<String>>>, Arc<AtomicU32>);

impl Journal {
    pub(crate) fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    /// Counts, from 1.
    pub(crate) fn count(&self) -> u32 {
        self.1.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Returns the entries since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

/// The state of a workshop.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Board {
    pub(crate) done: Vec<String>,
}

/// The arguments of a workshop's tools.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Job {
    pub(crate) id: String,
    /// Duration in milliseconds.
    #[serde(default)]
    pub(crate) takes: u64,
    /// Whether it fails.
    #[serde(default)]
    pub(crate) fails: bool,
}

pub(crate) type Shop = ToolContext<(), Board, Journal>;
pub(crate) type ShopTool = Tool<(), Board, Journal>;
pub(crate) type ShopBuilder = ToolBuilder<(), Board, Journal>;
pub(crate) type ShopLoop = Loop<(), Board, Journal>;

/// Records `id`, sleeps, and records `id-`.
pub(crate) async fn work(job: Job, cx: Shop) -> Result<ToolReply<Board>> {
    cx.services.note(&job.id);
    if job.takes > 0 {
        tokio::time::sleep(Duration::from_millis(job.takes)).await;
        cx.services.note(format!("{}-", job.id));
    }
    if job.fails {
        return Err(Error::new(format!("{} broke", job.id)));
    }
    let reply = cx.result(format!("{} done", job.id));
    Ok(reply.update(move |board| board.done.push(job.id)))
}

/// Creates a tool of the workshop, with flags.
pub(crate) fn worker(name: &str, flags: impl FnOnce(ShopBuilder) -> ShopBuilder) -> ShopTool {
    Tool::new(name, |t| flags(t).description(format!("Does a {name} job")).execute(work))
}

/// Adds the tools `safe`, `read` (read-only), `alone` (sequential) and `gated` (needs an approval).
pub(crate) fn tools(config: ShopLoop) -> ShopLoop {
    config.tools([
        worker("safe", |t| t),
        worker("read", ShopBuilder::read_only),
        worker("alone", ShopBuilder::sequential),
        worker("gated", |t| t.requires_approval("it is dangerous")),
    ])
}

/// Builds a brain with one loop `Work`, over the journal.
pub(crate) fn workshop(
    journal: &Journal,
    configure: impl Fn(ShopLoop) -> ShopLoop + Send + Sync + 'static,
) -> Brain<(), Board> {
    brain("Workshop")
        .services::<Journal>()
        .state(Board::default())
        .r#loop("Work", move |cx| configure(cx.system("Do the jobs.").input("begin")))
        .bind(journal.clone())
}

/// A batch of jobs, each `(tool, id)`.
pub(crate) fn batch<const N: usize>(jobs: [(&str, &str); N]) -> Reply {
    Reply::calls(jobs.map(|(tool, id)| (tool, json!({ "id": id }))))
}

/// A batch of slow jobs, each `(tool, id, milliseconds)`.
pub(crate) fn slow_batch<const N: usize>(jobs: [(&str, &str, u64); N]) -> Reply {
    Reply::calls(jobs.map(|(tool, id, takes)| (tool, json!({ "id": id, "takes": takes }))))
}

pub(crate) fn done() -> Reply {
    Reply::text("Done.")
}

pub(crate) fn path(text: &str) -> Path {
    Path::parse(text).unwrap()
}

/// Returns the paths of pending items.
pub(crate) fn paths(pending: &[Pending]) -> Vec<String> {
    pending.iter().map(|pending| pending.call.to_string()).collect()
}

/// Timeout of tests, in the paused time of their clock: a hang fails its test. `serve` polls once a second, so the
/// timeout is not longer than necessary.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);

/// Waits until a run has settled.
pub(crate) async fn settled<R>(run: &RunHandle<R>) -> Settled {
    watchdog::watch();
    tokio::time::timeout(PATIENCE, run.settled()).await.unwrap_or_else(|_| panic!("the run hangs: {:?}", run.state()))
}

/// Waits until a run has completed, and returns its result.
pub(crate) async fn result<R: DeserializeOwned>(run: &RunHandle<R>) -> R {
    watchdog::watch();
    match tokio::time::timeout(PATIENCE, run.result()).await {
        Ok(result) => result.unwrap(),
        Err(_) => panic!("the run hangs: {:?}", run.state()),
    }
}

/// Waits until the run waits for a person, and returns the paths of the pending calls.
pub(crate) async fn waits<R>(run: &RunHandle<R>) -> Vec<String> {
    match settled(run).await {
        Settled::Waiting(pending) => paths(&pending),
        other => panic!("the run does not wait: {other:?}"),
    }
}

/// Returns a loop's record.
pub(crate) fn prompt(story: &Story, at: &str) -> Prompt {
    Prompts::of(story.log().iter().map(|event| &**event)).get(&path(at)).cloned().unwrap()
}

/// Returns the calls of a loop's record.
pub(crate) fn calls(story: &Story, at: &str) -> Vec<ToolOutput> {
    let output = prompt(story, at).output;
    output
        .into_iter()
        .filter_map(|output| match output.kind {
            OutputKind::Tool(tool) => Some(*tool),
            _ => None,
        })
        .collect()
}

/// Returns the results of a loop's calls.
pub(crate) fn results(story: &Story, at: &str) -> Vec<ToolResult> {
    calls(story, at).into_iter().map(|call| call.result.expect("the call has a result")).collect()
}

/// Returns the paths of the events of one name.
pub(crate) fn events_named(story: &Story, name: &str) -> Vec<String> {
    story.log().iter().filter(|event| event.kind.name() == name).map(|event| event.path.to_string()).collect()
}

/// Returns the message of an error result.
pub(crate) fn error_of(result: &ToolResult) -> &str {
    match result {
        ToolResult::Error { message } => message,
        other => panic!("expected an error: {other:?}"),
    }
}

pub(crate) fn success(output: impl Into<Value>) -> ToolResult {
    ToolResult::success(output)
}
