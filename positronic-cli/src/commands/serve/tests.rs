//! The server of all runs: what it tells, and that it ends.

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
use crate::kept::Store;

/// A plugin that answers the first time, and not when a run is taken up.
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
async fn a_run_whose_plugin_never_answers_keeps_nobody_from_ending() {
    let kept = Kept::memory();
    let Store::Memory(store) = kept.store.clone() else { panic!("the store is in memory") };
    let silent = Once::default();
    let asked = Arc::clone(&silent.0);
    let asking = brain("Asking").r#loop("Work", move |cx| {
        let pay = Tool::new("pay", |t| t.requires_approval("it costs").execute(async |_: NoArgs, _| Ok("paid")));
        cx.system("Pay.").input("Begin.").plugin(silent.clone()).tools([pay])
    });
    let model = ScriptedModel::new([Reply::call("pay", json!({}))]);
    let first = Runner::builder().model(model).store(store.clone()).build();
    let run = first.start(asking.clone(), ()).await.unwrap();
    run.settled().await;
    first.release().await;
    let [call] = &run.pending()[..] else { panic!("it asks") };
    run.approve(&call.call, "ann").await.unwrap();
    let row = store.run(run.id()).await.unwrap();
    let project = Project::new().brain(asking).model(Tier::Normal, Arc::new(ScriptedModel::new([])));
    let args =
        WorkArgs { run: None, model: ModelArgs::default(), once: false, record: None, json: false, plain: false };
    let ((sink, stream), (done, ended)) = (ChannelSink::new(ROOM), mpsc::unbounded_channel());
    let mut server = Server::new(&project, &args, &kept, sink, done);
    let (mut ui, ..) = paper_ui(crate::settings::Settings::default());
    server.take(row.clone(), &mut kept.client().due(), &mut ui).await.unwrap();
    while asked.load(Ordering::SeqCst) < 2 {
        tokio::task::yield_now().await;
    }

    let (_told, interrupts) = mpsc::unbounded_channel();
    let left = tokio::time::timeout(Duration::from_secs(20), server.leave(stream, ended, interrupts, &mut ui)).await;

    assert_eq!(left.expect("nobody waits for the plugin").unwrap(), Exit::Done);
    assert_eq!(store.run(run.id()).await.unwrap(), row, "it is for others as it was");
}

#[tokio::test]
async fn each_event_is_told_once_and_in_order_however_often_it_comes() {
    let (project, kept) = (Project::new(), Kept::memory());
    let Store::Memory(store) = kept.store.clone() else { panic!("the store is in memory") };
    let failing = brain("Failing").step("One", async |_| Ok(())).step("Two", async |_| Err::<(), _>(Error::new("no")));
    let run = Runner::builder().model(ScriptedModel::new([])).store(store).build().start(failing, ()).await.unwrap();
    run.settled().await;
    let log = run.events(Seq(0)).await.unwrap();
    let model = ModelArgs::default();
    let args = WorkArgs { run: None, model, once: true, record: None, json: true, plain: false };
    let (sink, _stream) = ChannelSink::new(ROOM);
    let mut server = Server::new(&project, &args, &kept, sink, mpsc::unbounded_channel().0);
    let (mut ui, out, _err) = paper_ui(crate::settings::Settings::default());

    for place in [2, 2, 3, log.len() - 2, 3, log.len() - 1] {
        server.show(Live::Event(run.id().clone(), Arc::clone(&log[place])), &mut ui).await.unwrap();
    }

    let told: Vec<Value> = out.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<_> = told.iter().map(|line| line["event"]["seq"].as_u64().unwrap()).collect();
    assert_eq!(told, (2..log.len() as u64).collect::<Vec<_>>());
    assert!(server.told.is_empty(), "a run that has failed is over");
}
