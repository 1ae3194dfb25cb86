//! `work` for all runs: its output and its end.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use positronic_core::dsl::{Options, Plugin, PluginState, Preparation, Runnable, Services, State};
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Status, Tier, Usage};
use positronic_core::store::EventStore;
use positronic_store_suite::FaultyStore;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::*;
use crate::cli::ModelArgs;
use crate::commands::tests::paper_ui;

/// A plugin that answers the first time, and hangs when a run is resumed.
#[derive(Debug, Clone, Default)]
struct Once(Arc<AtomicUsize>);

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Nothing {}

impl PluginState for Nothing {
    const NAME: &'static str = "once";
}

impl<O: Options, S: State, V: Services> Plugin<O, S, V> for Once {
    type State = Nothing;

    fn initial(&self) -> Nothing {
        Nothing {}
    }

    async fn prepare(&self, _: &mut Preparation<'_, O, S, V, Nothing>) -> Result<()> {
        if self.0.fetch_add(1, Ordering::SeqCst) > 0 {
            std::future::pending::<()>().await;
        }
        Ok(())
    }
}

#[tokio::test]
async fn hanging_plugin_does_not_block_the_exit() {
    let store = ProjectStore::memory();
    let memory = Arc::clone(&store.backend);
    let silent = Once::default();
    let asked = Arc::clone(&silent.0);
    let asking = brain("Asking").r#loop("Work", move |cx| {
        let pay = Tool::new("pay", |t| t.requires_approval("it costs").execute(async |_: NoArgs, _| Ok("paid")));
        cx.system("Pay.").input("Begin.").plugin(silent.clone()).tools([pay])
    });
    let model = ScriptedModel::new([Reply::call("pay", json!({}))]);
    let first = Runner::new(model).store(memory.clone());
    let run = first.start(asking.clone(), ()).await.unwrap();
    run.settled().await;
    first.release().await;
    let [call] = &run.pending()[..] else { panic!("it asks") };
    run.approve(&call.call, "ann").await.unwrap();
    let row = memory.run(run.id()).await.unwrap();
    let project = Project::new().brain(asking).model(Tier::Normal, Arc::new(ScriptedModel::new([])));
    let args = WorkArgs {
        run: None,
        brain: Vec::new(),
        model: ModelArgs::default(),
        once: false,
        record: None,
        output: OutputArgs::default(),
    };
    let (mut ui, ..) = paper_ui(crate::app::Settings::default());
    let runners = Runners::new(&project, &args.model, &store, ui.settings.clone());
    let server = Server::new(store.client(), runners);
    let (told, interrupts) = tokio::sync::mpsc::unbounded_channel();
    let is_asked = async {
        while asked.load(Ordering::SeqCst) < 2 {
            tokio::task::yield_now().await;
        }
        told.send(Interrupt::System).unwrap();
    };

    let served = async {
        tokio::join!(Shown::new((args.once, args.output), &store, &mut ui).serve(&server, interrupts), is_asked).0
    };
    let left = tokio::time::timeout(Duration::from_secs(20), served).await;

    assert_eq!(left.expect("no call waits for the plugin").unwrap(), Exit::Done);
    let after = memory.run(run.id()).await.unwrap();
    assert!(after.claim.as_ref().is_some_and(|claim| claim.released), "others can claim it: {after:?}");
    assert_eq!((after.status, after.next.0), (row.status, row.next.0 + 2), "only a claim and a release were recorded");
}

#[tokio::test]
async fn released_run_is_shown_from_the_event_of_its_release() {
    let (store, args) = (
        ProjectStore::memory(),
        WorkArgs {
            brain: Vec::new(),
            run: None,
            model: ModelArgs::default(),
            once: true,
            record: None,
            output: OutputArgs { json: true, plain: false },
        },
    );
    let memory = Arc::clone(&store.backend);
    let asking = brain("Asking").r#loop("Work", |cx| {
        let pay = Tool::new("pay", |t| t.requires_approval("it costs").execute(async |_: NoArgs, _| Ok("paid")));
        cx.system("Pay.").input("Begin.").tools([pay])
    });
    let model = ScriptedModel::from_fn(|request| match request.messages.len() {
        1 => Reply::call("pay", json!({})),
        _ => Reply::text("Paid."),
    });
    let runner = Runner::new(model).store(memory).linger(Duration::ZERO);
    let run = runner.start(asking, ()).await.unwrap();
    run.settled().await;
    let (mut ui, out, _err) = paper_ui(crate::app::Settings::default());
    let mut shown = Shown::new((args.once, args.output), &store, &mut ui);
    let client = store.client();
    let is_released = async || client.store().run(run.id()).await.unwrap().claim.is_some_and(|claim| claim.released);
    while !is_released().await {
        tokio::task::yield_now().await;
    }

    shown.event(ServeEvent::Claimed { run: run.id().clone(), from: Seq(2) }).await;
    let settled = run.settled().await;
    shown.event(ServeEvent::Settled { run: run.id().clone(), settled }).await;
    shown.catch_up().await;
    assert!(shown.shown.is_empty(), "it is released");
    let [call] = &run.pending()[..] else { panic!("it asks") };
    run.approve(&call.call, "ann").await.unwrap();
    run.result().await.unwrap();
    let next = client.store().run(run.id()).await.unwrap().next;
    shown.event(ServeEvent::Claimed { run: run.id().clone(), from: next }).await;
    while let Some((run, update, updates)) = shown.updates.next().await {
        shown.show(run, update, updates);
    }

    let told: Vec<Value> = out.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<_> = told.iter().map(|line| line["event"]["seq"].as_u64().unwrap()).collect();
    assert_eq!(told, (2..next.0).collect::<Vec<_>>());
    assert!(shown.shown.is_empty() && shown.positions.is_empty(), "the run is over");
}

/// The failure of a store that is away for a while.
fn away() -> StoreError {
    StoreError::Failed { message: "the database is away".to_owned() }
}

/// A store of a display, which can be read only while it is not away; it says whether it has refused to be read.
fn readable_unless(
    is_away: &Arc<AtomicBool>,
    has_refused: &Arc<AtomicBool>,
    memory: &Arc<dyn EventStore>,
) -> ProjectStore {
    let (is_away, has_refused) = (Arc::clone(is_away), Arc::clone(has_refused));
    let store = FaultyStore::new(Arc::clone(memory), |_, _| None).reading(move |_| {
        let refuses = is_away.load(Ordering::SeqCst);
        has_refused.fetch_or(refuses, Ordering::SeqCst);
        refuses.then(away)
    });
    ProjectStore { backend: Arc::new(store), ..ProjectStore::memory() }
}

/// Starts a run for the workers of a store.
async fn submit<S: EventStore>(store: S, brain: &impl Runnable<Options = (), Result = String>) -> RunId {
    let starter = Runner::new(ScriptedModel::new([])).store(store).submit_only();
    starter.start(brain, ()).await.unwrap().id().clone()
}

async fn status(store: &ProjectStore, run: &RunId) -> Status {
    store.client().store().run(run).await.unwrap().status
}

#[tokio::test]
async fn store_that_the_display_cannot_read_ends_no_work_and_is_shown_later() {
    let (store, is_away) = (ProjectStore::memory(), Arc::new(AtomicBool::new(true)));
    let has_refused = Arc::new(AtomicBool::new(false));
    let display = readable_unless(&is_away, &has_refused, &store.backend);
    let greeting = brain("Greeting").step("Greet", async |_| Ok("hello".to_owned()));
    let run = submit(Arc::clone(&store.backend), &greeting).await;
    let project = Project::new().brain(greeting);
    let (mut ui, _out, err) = paper_ui(crate::app::Settings::default());
    let args = ModelArgs::default();
    let runners = Runners::new(&project, &args, &store, ui.settings.clone());
    let server = Server::new(store.client(), runners);
    let (told, interrupts) = tokio::sync::mpsc::unbounded_channel();
    let outage = async {
        while status(&store, &run).await != Status::Completed || !has_refused.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
        is_away.store(false, Ordering::SeqCst);
        while !err.text().contains("completed") {
            tokio::task::yield_now().await;
        }
        // The last look at the store fails, too.
        is_away.store(true, Ordering::SeqCst);
        told.send(Interrupt::System).unwrap();
    };

    let shown = Shown::new((false, OutputArgs::default()), &display, &mut ui);
    let (left, ()) = tokio::join!(shown.serve(&server, interrupts), outage);

    assert_eq!(left.unwrap(), Exit::Done);
    assert!(err.text().contains(&format!("{run}  ")), "its short id is not known: {}", err.text());
}

#[tokio::test]
async fn last_line_of_a_run_says_its_cost_by_the_given_prices() {
    let store = ProjectStore::memory();
    let usage = Usage { input: 1_000_000, ..Usage::default() };
    let model = ScriptedModel::from_fn(move |_| Reply::text("Hello.").usage(usage));
    let greeting = brain("Greeting").r#loop("Chat", |cx| cx.system("Greet.").input("Hello."));
    let run = Runner::new(model).store(Arc::clone(&store.backend)).start(greeting, ()).await.unwrap();
    run.result().await.unwrap();
    let prices =
        json!({ "as_of": "2026-01-01", "currency": "EUR", "prices": { "scripted/*": { "input": 2, "output": 2 } } });
    let (mut ui, _out, err) = paper_ui(crate::app::Settings::default());
    ui.prices = Some(serde_json::from_value(prices).unwrap());
    let mut shown = Shown::new((false, OutputArgs::default()), &store, &mut ui);

    shown.event(ServeEvent::Claimed { run: run.id().clone(), from: Seq(0) }).await;
    shown.catch_up().await;

    let text = err.text();
    assert!(text.contains("completed, 1 model answer, 1,000,000 tokens in, 0 out, cost 2 EUR"), "{text}");
}

#[tokio::test]
async fn run_whose_log_cannot_be_read_is_shown_again_from_where_it_was() {
    let store = ProjectStore::memory();
    let greeting = brain("Greeting").step("Greet", async |_| Ok("hello".to_owned()));
    let run = submit(Arc::clone(&store.backend), &greeting).await;
    let (mut ui, _out, err) = paper_ui(crate::app::Settings::default());
    let mut shown = Shown::new((false, OutputArgs::default()), &store, &mut ui);
    shown.event(ServeEvent::Claimed { run: run.clone(), from: Seq(0) }).await;
    shown.updates.clear();

    for _ in 0..2 {
        shown.show(run.clone(), Some(Err(away())), futures::stream::pending().boxed());
        shown.updates.clear();
    }
    shown.show(run.clone(), Some(Err(away())), futures::stream::pending().boxed());
    let (run, update, updates) = shown.updates.next().await.unwrap();
    shown.show(run, update, updates);

    let text = err.text();
    assert_eq!(text.matches("trying again: ").count(), 1, "it is said once: {text}");
    assert!(text.contains("Greeting starts"), "{text}");
}

#[tokio::test]
async fn work_once_lets_effects_end_when_the_store_cannot_be_listed() {
    let (memory, is_away) = (ProjectStore::memory(), Arc::new(AtomicBool::new(false)));
    let lists = Arc::clone(&is_away);
    let faulty = FaultyStore::new(Arc::clone(&memory.backend), |_, _| None)
        .reading(move |method| (!matches!(method, "read" | "run") && lists.load(Ordering::SeqCst)).then(away));
    let store = ProjectStore { backend: Arc::new(faulty), ..ProjectStore::memory() };
    let (begins, (release, released)) = (Arc::clone(&is_away), tokio::sync::watch::channel(false));
    let slow = brain("Slow").step("Wait", move |_| {
        begins.store(true, Ordering::SeqCst);
        let mut released = released.clone();
        async move {
            _ = released.wait_for(|released| *released).await;
            Ok("done".to_owned())
        }
    });
    let run = submit(Arc::clone(&memory.backend), &slow).await;
    let project = Project::new().brain(slow);
    let (mut ui, _out, err) = paper_ui(crate::app::Settings::default());
    let args = ModelArgs::default();
    let runners = Runners::new(&project, &args, &store, ui.settings.clone());
    let server = Server::new(store.client(), runners).once(true);
    let (_told, interrupts) = tokio::sync::mpsc::unbounded_channel();
    let end_step = async {
        while !err.text().contains("cannot list the work of the store, releasing the runs: ") {
            tokio::task::yield_now().await;
        }
        release.send_replace(true);
    };

    let shown = Shown::new((true, OutputArgs::default()), &store, &mut ui);
    let (left, ()) = tokio::join!(shown.serve(&server, interrupts), end_step);

    assert_eq!(left.unwrap_err().exit, Exit::Environment);
    let events = memory.client().events(&run, Seq(0)).await.unwrap();
    assert!(events.iter().any(|event| event.kind.name() == "STEP_COMPLETE"), "the step has ended");
}

#[tokio::test]
async fn release_names_the_runs_that_it_could_not_release() {
    let store = ProjectStore::memory();
    let (mut ui, _out, _err) = paper_ui(crate::app::Settings::default());
    let shown = Shown::new((false, OutputArgs { json: false, plain: false }), &store, &mut ui);
    let runs = |names: &[&str]| names.iter().map(|name| RunId::new(*name)).collect::<Vec<_>>();
    let mut release = Release::default();

    (release.released, release.kept) = (runs(&["a", "b"]), vec![]);
    assert_eq!(shown.released(&release).await, "released all runs; another `work` can continue them");
    (release.released, release.kept) = (runs(&["a", "b"]), runs(&["c", "d"]));
    assert_eq!(
        shown.released(&release).await,
        "released 2 of 4 runs; the others (c, d) did not stop in time or could not be recorded as released: another `work` can continue them when this process has ended"
    );
}
