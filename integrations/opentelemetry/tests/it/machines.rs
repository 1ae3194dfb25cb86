//! Machines that work on one store and export to a receiver, and the brain of most tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use positronic_core::model::Model;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Event, Path, RunId};
use positronic_core::sink::{EventSink, SinkError};
use positronic_core::store::MemoryStore;
use positronic_core::testing::{CountedIds, Lockstep as _, Test, TestClock};
use positronic_opentelemetry::Monitor;
use positronic_opentelemetry::traces::{SpanContexts, Traces};
use serde_json::json;

use crate::receiver::Receiver;
use crate::tree::tree;

/// A store, and the machines that work on it and export to a receiver.
pub(crate) struct Bench {
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) clock: TestClock,
    pub(crate) receiver: Receiver,
}

/// A machine.
pub(crate) struct Machine {
    pub(crate) test: Test,
    pub(crate) monitor: Monitor,
    pub(crate) traces: Arc<Traces>,
    is_dead: Arc<AtomicBool>,
}

/// A monitor that gets nothing more when its machine has died.
struct Mortal {
    monitor: Monitor,
    is_dead: Arc<AtomicBool>,
}

impl EventSink for Mortal {
    fn name(&self) -> &str {
        self.monitor.name()
    }

    fn is_durable(&self) -> bool {
        self.monitor.is_durable()
    }

    fn event<'a>(&'a self, run: &'a RunId, event: &'a Arc<Event>) -> BoxFuture<'a, Result<(), SinkError>> {
        match self.is_dead.load(Ordering::Relaxed) {
            true => Box::pin(std::future::pending()),
            false => self.monitor.event(run, event),
        }
    }
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self { store: Arc::default(), clock: TestClock::default().without_timers(), receiver: Receiver::start() }
    }

    pub(crate) fn machine(&self, model: impl Model) -> Machine {
        self.machine_with(model, |traces| traces)
    }

    pub(crate) fn machine_with(&self, model: impl Model, change: impl FnOnce(Traces) -> Traces) -> Machine {
        let traces = Arc::new(change(Traces::new(self.receiver.spans_exporter())));
        let monitor = Monitor::new(Arc::clone(&self.store)).observer(Arc::clone(&traces));
        let runner = Runner::new(model)
            .store(Arc::clone(&self.store))
            .clock(self.clock.clone())
            .ids(CountedIds::default())
            .lockstep(true)
            .linger(Duration::ZERO);
        let is_dead = Arc::<AtomicBool>::default();
        let runner = runner.sink(Mortal { monitor: monitor.clone(), is_dead: Arc::clone(&is_dead) });
        Machine { test: Test::with(runner), monitor, traces, is_dead }
    }

    /// Renders what arrived.
    pub(crate) fn tree(&self) -> String {
        tree(&self.receiver.spans())
    }
}

impl Machine {
    /// Exports what has ended.
    pub(crate) async fn flush(&self) {
        let traces = Arc::clone(&self.traces);
        tokio::task::spawn_blocking(move || traces.flush()).await.unwrap().unwrap();
    }

    /// The machine dies, after it has exported what has ended.
    pub(crate) async fn die(&self, bench: &Bench) {
        self.flush().await;
        self.is_dead.store(true, Ordering::Relaxed);
        bench.store.declare_dead("worker-1");
    }

    pub(crate) fn contexts(&self) -> SpanContexts {
        SpanContexts::new(self.monitor.clone(), Arc::clone(&self.traces))
    }
}

pub(crate) fn path(text: &str) -> Path {
    Path::parse(text).unwrap()
}

pub(crate) fn gated() -> Brain<(), ()> {
    brain("Shop")
        .r#loop("Work", |cx| {
            let config = cx.system("Sell.").input("Pay the bill.");
            config.tool("pay", |t| t.requires_approval("it costs").execute(async |_: NoArgs, _| Ok("paid by card")))
        })
        .build()
}

pub(crate) fn pays() -> ScriptedModel {
    ScriptedModel::from_fn(|request| match request.path.as_str() {
        "Work/0" => Reply::call("pay", json!({})),
        _ => Reply::text("It is paid."),
    })
}
