//! `work` for all runs: its output and its end.

use std::sync::atomic::{AtomicUsize, Ordering};

use positronic_core::dsl::{Options, Plugin, PluginState, Preparation, Services, State};
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::Tier;
use positronic_core::store::EventStore as _;
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
    let first = Runner::builder().model(model).store(memory.clone()).build();
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
    assert_eq!(memory.run(run.id()).await.unwrap(), row, "it is for others as it was");
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
    let runner = Runner::builder().model(model).store(memory).linger(Duration::ZERO).build();
    let run = runner.start(asking, ()).await.unwrap();
    run.settled().await;
    let (mut ui, out, _err) = paper_ui(crate::app::Settings::default());
    let mut shown = Shown::new((args.once, args.output), &store, &mut ui);
    let client = store.client();
    let is_released = async || client.store().run(run.id()).await.unwrap().claim.is_some_and(|claim| claim.released);
    while !is_released().await {
        tokio::task::yield_now().await;
    }

    shown.event(ServeEvent::Claimed { run: run.id().clone(), from: Seq(2) }).await.unwrap();
    let settled = run.settled().await;
    shown.event(ServeEvent::Settled { run: run.id().clone(), settled }).await.unwrap();
    shown.catch_up().await.unwrap();
    assert!(shown.shown.is_empty(), "it is released");
    let [call] = &run.pending()[..] else { panic!("it asks") };
    run.approve(&call.call, "ann").await.unwrap();
    run.result().await.unwrap();
    let next = client.store().run(run.id()).await.unwrap().next;
    shown.event(ServeEvent::Claimed { run: run.id().clone(), from: next }).await.unwrap();
    while let Some((run, update, updates)) = shown.updates.next().await {
        shown.show(run, update, updates).unwrap();
    }

    let told: Vec<Value> = out.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<_> = told.iter().map(|line| line["event"]["seq"].as_u64().unwrap()).collect();
    assert_eq!(told, (2..next.0).collect::<Vec<_>>());
    assert!(shown.shown.is_empty() && shown.positions.is_empty(), "the run is over");
}
