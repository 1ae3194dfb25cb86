//! Serving runs concurrently: a run whose plugin waits for its server blocks no other run.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use positronic_core::dsl::{Options, Plugin, PluginState, Preparation, Services, State};
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Actor, RunId, Seq, SignalId, SignalKind, Start, Status};
use positronic_core::runner::RunError;
use positronic_core::store::prelude::*;
use positronic_core::store::{Append, EventStore, MemoryStore, RunFilter};
use positronic_core::testing::TestClock;
use positronic_store_suite::{Fault, FaultyStore};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::support::{Journal, ShopLoop, batch, done, path, tools, waits, workshop};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Nothing {}

impl PluginState for Nothing {
    const NAME: &'static str = "server";
}

/// A plugin whose server never answers some runs. It records who asks, and when a request is dropped.
#[derive(Debug, Clone)]
struct Server {
    silent: Arc<watch::Sender<Vec<String>>>,
    journal: Journal,
}

impl Server {
    fn silent_for(runs: &[String]) -> Self {
        Self { silent: Arc::new(watch::Sender::new(runs.to_vec())), journal: Journal::default() }
    }

    fn answers_all(&self) {
        self.silent.send_replace(Vec::new());
    }
}

struct Asks<'a>(&'a Journal);

impl Drop for Asks<'_> {
    fn drop(&mut self) {
        self.0.note("over");
    }
}

impl<O: Options, S: State, V: Services> Plugin<O, S, V> for Server {
    type State = Nothing;

    fn initial(&self) -> Nothing {
        Nothing {}
    }

    async fn prepare(&self, cx: &mut Preparation<'_, O, S, V, Nothing>) -> Result<()> {
        self.journal.note("asked");
        let _asks = Asks(&self.journal);
        let run = cx.run_id().to_string();
        self.silent.subscribe().wait_for(|silent| !silent.contains(&run)).await?;
        Ok(())
    }
}

/// A plugin that asks a model and then never finishes.
struct Curious;

impl<O: Options, S: State, V: Services> Plugin<O, S, V> for Curious {
    type State = Nothing;

    fn initial(&self) -> Nothing {
        Nothing {}
    }

    async fn prepare(&self, cx: &mut Preparation<'_, O, S, V, Nothing>) -> Result<()> {
        cx.model().ask("Who is there?").await?;
        std::future::pending().await
    }
}

/// A store with runs that only need a process to continue them.
struct Desk {
    store: MemoryStore,
    clock: TestClock,
}

impl Desk {
    async fn with(ids: &[String]) -> Self {
        let desk = Self { store: MemoryStore::new(), clock: TestClock::default() };
        let (first, server) = (desk.process(), Server::silent_for(&[]));
        for id in ids {
            let start = Start { id: Some(SignalId::from(id.as_str())), ..Start::default() };
            let shop = workshop(&Journal::default(), with(&server));
            waits(&first.start_with(shop, (), start).await.unwrap()).await;
        }
        first.release().await;
        for id in ids {
            let ann = Actor::builder().by("ann").build();
            first.client().approve(&RunId::new(id.as_str()), &path("Work/0.0"), ann).await.unwrap();
        }
        desk
    }

    fn process(&self) -> Runner {
        self.process_on(self.store.clone())
    }

    fn process_on(&self, store: impl EventStore) -> Runner {
        let model = ScriptedModel::from_fn(|request| match request.path.as_str() {
            "Work/0" => batch([("gated", "a")]),
            _ => done(),
        });
        Runner::new(model).store(store).clock(self.clock.clone())
    }

    /// A process that asks a server before it continues the open iteration of a run.
    fn asks(&self, server: &Server) -> Runner {
        self.process().brain(workshop(&Journal::default(), with(server)))
    }

    async fn completed(&self) -> usize {
        let rows = self.store.runs(&RunFilter::default()).await.unwrap();
        rows.iter().filter(|row| row.status == Status::Completed).count()
    }
}

fn with(server: &Server) -> impl Fn(ShopLoop) -> ShopLoop + Send + Sync + 'static {
    let server = server.clone();
    move |cx| tools(cx).plugin(server.clone())
}

fn ids(count: usize) -> Vec<String> {
    (0..count).map(|index| format!("run-{index}")).collect()
}

async fn a_while(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

#[tokio::test(start_paused = true)]
async fn run_with_an_unanswered_plugin_question_blocks_no_other_run() {
    let ids = ids(2);
    for silent in &ids {
        let desk = Desk::with(&ids).await;
        let server = Server::silent_for(std::slice::from_ref(silent));
        let _served = desk.asks(&server).serve();
        a_while(500).await;

        assert_eq!(desk.completed().await, 1, "the other one continues");
        server.answers_all();
        a_while(500).await;
        assert_eq!(desk.completed().await, 2);
    }
}

#[tokio::test(start_paused = true)]
async fn sixteen_runs_load_at_once_and_runs_waiting_for_plugins_use_no_slot() {
    let ids = ids(20);
    let desk = Desk::with(&ids).await;
    let server = Server::silent_for(&ids);
    let loads = Journal::default();
    let slow = FaultyStore::new(desk.store.clone(), |_, _| None).slowly({
        let loads = loads.clone();
        move |method| {
            (method == "snapshot").then(|| {
                loads.note("load");
                Duration::from_secs(10)
            })
        }
    });
    let _service = desk.process_on(slow).brain(workshop(&Journal::default(), with(&server))).serve();

    a_while(9000).await;
    assert_eq!(loads.take().len(), 16, "however long it takes");
    a_while(9000).await;
    assert_eq!((loads.take().len(), server.journal.take()), (4, vec!["asked".to_owned(); 16]));
    a_while(9000).await;
    assert_eq!((loads.take().len(), server.journal.take()), (0, vec!["asked".to_owned(); 4]), "each is claimed once");

    server.answers_all();
    a_while(500).await;
    assert_eq!(desk.completed().await, 20);
    for id in &ids {
        let log = desk.store.read(&RunId::new(id.as_str()), Seq(0), usize::MAX).await.unwrap();
        let claims = log.iter().filter(|event| event.kind.name() == "RUN_CLAIMED").count();
        assert_eq!(claims, 2, "one of each process");
    }
}

#[tokio::test(start_paused = true)]
async fn run_with_an_unanswered_plugin_question_is_released_at_once() {
    let ids = ids(1);
    let desk = Desk::with(&ids).await;
    let server = Server::silent_for(&ids);
    let process = desk.asks(&server);
    let _service = process.serve();
    a_while(10).await;
    let run = RunId::new("run-0");

    process.release().await;

    a_while(10).await;
    assert_eq!(server.journal.take(), ["asked", "over"]);
    assert!(desk.store.run(&run).await.unwrap().claim.unwrap().released);
    server.answers_all();
    let other = desk.asks(&server).resume(&run).await.unwrap();
    other.result().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn cancel_ends_a_run_with_an_unanswered_plugin_question() {
    let ids = ids(1);
    let desk = Desk::with(&ids).await;
    let server = Server::silent_for(&ids);
    let process = desk.asks(&server);
    let _service = process.serve();
    a_while(10).await;
    let run = RunId::new("run-0");

    let cancel = SignalKind::Cancel { reason: None };
    process.client().signal(&run, cancel, Actor::default()).await.unwrap();

    a_while(10).await;
    assert_eq!(desk.store.run(&run).await.unwrap().status, Status::Cancelled);
    assert_eq!(server.journal.take(), ["asked", "over"]);
    process.release().await;
}

#[tokio::test(start_paused = true)]
async fn handle_of_a_cancelled_run_with_an_unanswered_plugin_question_returns() {
    let desk = Desk { store: MemoryStore::new(), clock: TestClock::default() };
    let server = Server::silent_for(&[]);
    let run = desk.process().start(workshop(&Journal::default(), with(&server)), ()).await.unwrap();
    waits(&run).await;
    a_while(6000).await;
    assert!(desk.store.run(run.id()).await.unwrap().claim.is_some_and(|claim| claim.released), "it is released");
    server.silent.send_replace(vec![run.id().to_string()]);
    run.approve(&path("Work/0.0"), "ann").await.unwrap();
    a_while(10).await;
    assert_eq!(server.journal.take(), ["asked", "over", "asked"]);

    run.cancel("no more").await.unwrap();

    let result = tokio::time::timeout(Duration::from_secs(1), run.result()).await;
    assert!(matches!(result, Ok(Err(RunError::Cancelled))), "{result:?}");
}

#[tokio::test(start_paused = true)]
async fn run_with_a_stuck_preparation_is_released_at_once() {
    let desk = Desk { store: MemoryStore::new(), clock: TestClock::default() };
    let server = Server::silent_for(&["run".to_owned()]);
    let process = desk.process();
    let start = Start { id: Some(SignalId::from("run")), ..Start::default() };
    let run = process.start_with(workshop(&Journal::default(), with(&server)), (), start).await.unwrap();
    a_while(10).await;

    tokio::time::timeout(Duration::from_secs(1), process.release()).await.unwrap();

    a_while(10).await;
    assert_eq!(server.journal.take(), ["asked", "over"]);
    server.answers_all();
    let other = desk.asks(&server).resume(run.id()).await.unwrap();
    assert_eq!(waits(&other).await, ["Work/0.0"]);
}

#[tokio::test(start_paused = true)]
async fn plugin_answer_is_recorded_before_its_iteration_is_abandoned() {
    let store = MemoryStore::new();
    let model = ScriptedModel::new([Reply::text("Ann.").after(Duration::from_millis(500))]);
    let process = Runner::new(model).store(store.clone()).clock(TestClock::default());
    let run = process.start(workshop(&Journal::default(), |cx| tools(cx).plugin(Curious)), ()).await.unwrap();
    a_while(10).await;

    tokio::time::timeout(Duration::from_secs(1), process.release()).await.unwrap();

    let log = store.read(run.id(), Seq(2), usize::MAX).await.unwrap();
    let names: Vec<_> = log.iter().map(|event| event.kind.name()).collect();
    assert_eq!(names, ["LOOP_START", "LOOP_MODEL_CALL", "LOOP_MODEL_RESULT", "RUN_RELEASED"]);
}

#[tokio::test(start_paused = true)]
async fn slow_triggers_block_no_run() {
    let desk = Desk::with(&ids(20)).await;
    let slow = FaultyStore::new(desk.store.clone(), |_, _| None)
        .slowly(|method| (method == "timers").then_some(Duration::from_secs(3600)));
    let server = Server::silent_for(&[]);
    let _service = desk.process_on(slow).brain(workshop(&Journal::default(), with(&server))).serve();

    a_while(5000).await;

    assert_eq!(desk.completed().await, 20);
}

#[tokio::test(start_paused = true)]
async fn run_in_progress_asks_no_queue() {
    let (questions, appends) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (asked, appended) = (Arc::clone(&questions), Arc::clone(&appends));
    // The server gets time between two appends.
    let slow = move |_: &RunId, _: &Append| {
        appended.fetch_add(1, Ordering::Relaxed);
        Some(Fault::Slow(Duration::from_millis(1)))
    };
    let store = FaultyStore::new(MemoryStore::new(), slow).reading(move |method| {
        asked.fetch_add(usize::from(method == "due"), Ordering::Relaxed);
        None
    });
    let model = ScriptedModel::from_fn(|request| match request.messages.len() / 2 {
        iteration if iteration < 20 => batch([("safe", "a")]),
        _ => done(),
    });
    let runner = Runner::new(model).store(store).clock(TestClock::default());
    let _service = runner.serve();
    a_while(10).await;
    let before = questions.load(Ordering::Relaxed);

    let run = runner.start(workshop(&Journal::default(), |cx| tools(cx).max_iterations(100)), ()).await.unwrap();
    run.result().await.unwrap();

    assert!(appends.load(Ordering::Relaxed) > 40, "{appends:?}");
    assert_eq!(questions.load(Ordering::Relaxed), before);
}
