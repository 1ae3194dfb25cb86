//! A shop whose tools record when they begin and end.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{ModelRequest, RunId};
use positronic_core::runner::Clock;
use positronic_core::store::EventStore;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

/// What the tools of all machines did to the world, by run and call.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger(Arc<Mutex<Effects>>);

type Effects = BTreeMap<(RunId, String), Vec<Effect>>;

/// An execution of a tool.
#[derive(Debug, Clone)]
pub(crate) struct Effect {
    pub(crate) begun: Instant,
    /// When it ended or was aborted.
    pub(crate) over: Option<Instant>,
    pub(crate) completed: bool,
}

/// An effect that is in progress; its drop ends it.
struct Open {
    ledger: Ledger,
    key: (RunId, String),
    index: usize,
}

impl Ledger {
    fn begin(&self, key: (RunId, String)) -> Open {
        let mut all = self.0.lock().unwrap();
        let effects = all.entry(key.clone()).or_default();
        effects.push(Effect { begun: Instant::now(), over: None, completed: false });
        Open { ledger: self.clone(), key, index: effects.len() - 1 }
    }

    pub(crate) fn all(&self) -> Effects {
        self.0.lock().unwrap().clone()
    }

    /// Returns how often the tool of a call was executed.
    pub(crate) fn count(&self, run: &RunId, call: &str) -> usize {
        self.0.lock().unwrap().get(&(run.clone(), call.to_owned())).map_or(0, Vec::len)
    }
}

impl Open {
    fn with(&self, change: impl FnOnce(&mut Effect)) {
        change(&mut self.ledger.0.lock().unwrap().get_mut(&self.key).unwrap()[self.index]);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.with(|effect| effect.over = Some(Instant::now()));
    }
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
struct Job {
    /// How long it takes, in milliseconds.
    takes: u64,
}

type ShopTool = Tool<(), (), Ledger>;

async fn work(Job { takes }: Job, cx: ToolContext<(), (), Ledger>) -> Result<&'static str> {
    let effect = cx.services.begin((cx.run_id().clone(), cx.path().to_string()));
    tokio::time::sleep(Duration::from_millis(takes)).await;
    effect.with(|effect| effect.completed = true);
    Ok("done")
}

/// A brain whose loop calls `note` (repeatable), `pay` (not repeatable) and, with an approval, `ship`.
pub(crate) fn shop(ledger: &Ledger) -> Brain {
    let brain = brain("Shop").services::<Ledger>().r#loop("Work", |cx| {
        let tools: [ShopTool; 3] = [
            Tool::new("note", |t| t.idempotent().execute(work)),
            Tool::new("pay", |t| t.execute(work)),
            Tool::new("ship", |t| t.requires_approval("it leaves the house").execute(work)),
        ];
        cx.system("Serve the customer.").input("Begin.").tools(tools)
    });
    brain.bind(ledger.clone())
}

/// Creates the runner of a machine. Its model calls tools that take up to `longest` milliseconds each.
pub(crate) fn machine(store: impl EventStore, clock: impl Clock, ledger: &Ledger, longest: u64) -> Runner {
    let model = ScriptedModel::from_fn(move |request: &ModelRequest| {
        let long = |part: u64| json!({ "takes": longest / part });
        match request.path.as_str() {
            "Work/0" => Reply::calls([("note", long(3)), ("pay", long(1))]),
            "Work/1" => Reply::calls([("ship", long(2)), ("note", long(1))]),
            "Work/2" => Reply::call("pay", long(2)),
            _ => Reply::text("Done."),
        }
    });
    Runner::new(model).store(store).clock(clock).brain(shop(ledger))
}
