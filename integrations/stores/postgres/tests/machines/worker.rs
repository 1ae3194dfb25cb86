//! The process of a worker: this test program again, with a setup in its environment.
//!
//! It serves the runs of the store, executes the commands of its input, and writes answers and events to its output. It
//! ends when its input ends, so that it does not outlive the test.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use positronic_core::prelude::*;
use positronic_core::record::{ClaimRefusal, RunId, RunSummary, SignalId, Start, Timer};
use positronic_core::runner::{FindRunner, NoRunner, RunHandle, ServeEvent, Server, Settled};
use positronic_postgres::{PostgresOptions, PostgresStore};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::brains;
use crate::dialogues::read;
use crate::ledger::Ledger;

/// The environment variable with the setup.
pub(crate) const SETUP: &str = "POSITRONIC_TEST_WORKER";

/// What a worker needs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(crate) url: String,
    pub(crate) schema: String,
    pub(crate) ttl: Duration,
    pub(crate) folder: PathBuf,
    /// The version of its brain `Shop`.
    pub(crate) version: u32,
    /// Whether it serves only this version, as with `--brain Shop@1`.
    pub(crate) only: bool,
    /// Whether it looks for runs by itself.
    pub(crate) serves: bool,
    /// The file with the dialogues that it knows.
    pub(crate) dialogues: Option<PathBuf>,
}

impl Setup {
    pub(crate) async fn open(&self) -> PostgresStore {
        let options = PostgresOptions::builder().url(&self.url).schema(&self.schema).connections(4);
        let options = options.lease_ttl(self.ttl).connect_timeout(self.ttl).statement_timeout(self.ttl);
        PostgresStore::with(options.build()).await.unwrap()
    }
}

/// Finds the runner for the runs of one version.
struct Only {
    runner: Runner,
    version: Option<u32>,
}

impl FindRunner for Only {
    fn for_run<'a>(&'a self, run: &'a RunSummary) -> BoxFuture<'a, Result<Runner, NoRunner>> {
        let found = match self.version {
            Some(version) if version != run.version => Err(NoRunner {
                message: format!("the worker serves only version {version}"),
                refusal: Some(ClaimRefusal::NoBrain),
            }),
            _ => Ok(self.runner.clone()),
        };
        Box::pin(std::future::ready(found))
    }

    fn for_trigger<'a>(&'a self, timer: &'a Timer) -> BoxFuture<'a, Result<Runner, NoRunner>> {
        self.runner.for_trigger(timer)
    }

    fn code(&self) -> Option<String> {
        Some(format!("{:?} {:?}", self.runner.code(), self.version))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the process of a worker"]
async fn process() {
    let Some(setup) = std::env::var_os(SETUP) else { return };
    let setup: Setup = serde_json::from_str(setup.to_str().unwrap()).unwrap();
    let (send, mut commands) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            _ = send.send(line);
        }
        std::process::exit(0);
    });
    let ledger = Ledger::new(&setup.folder);
    let known = setup.dialogues.as_ref().map(|file| read(&std::fs::read_to_string(file).unwrap())).unwrap_or_default();
    let mut brains = vec![brains::shop(&ledger, setup.version), brains::counter(&ledger)];
    brains.extend(known.iter().map(|dialogue| brains::dialogue(dialogue, &ledger)));
    let mut runner = Runner::new(brains::model(&known)).store(setup.open().await);
    let mut titles = HashMap::new();
    for brain in brains {
        titles.insert(positronic_core::dsl::IntoBrain::definition(&brain).title.clone(), brain.clone());
        runner = runner.brain(brain);
    }
    let only = Only { runner: runner.clone(), version: setup.only.then_some(setup.version) };
    let server = Server::new(runner.client(), only);
    let serving = async {
        if setup.serves {
            server.events().for_each(async |event| report(&event)).await;
        }
        std::future::pending::<()>().await;
    };
    let obeying = async {
        println!("answer boot: ready");
        while let Some(line) = commands.recv().await {
            let words: Vec<_> = line.split(' ').collect();
            let answer = match words[..] {
                ["start", run, brain] => {
                    let start = Start { id: Some(SignalId::from(run)), ..Start::default() };
                    let run = runner.start_with(titles[brain].clone(), (), start).await;
                    run.map(|run| drop(tokio::spawn(attend(run)))).map_err(|error| error.to_string())
                }
                ["resume", run] => {
                    let run: Result<RunHandle<Value>, _> = runner.resume(&RunId::from(run)).await;
                    run.map(|run| drop(tokio::spawn(attend(run)))).map_err(|error| error.to_string())
                }
                ["worker"] => Err(runner.worker().await.unwrap_or_default()),
                ["release"] => {
                    server.release().await;
                    runner.release().await;
                    Ok(())
                }
                _ => panic!("{line}"),
            };
            println!("answer {line}: {}", answer.err().unwrap_or_else(|| "ok".to_owned()));
        }
    };
    tokio::join!(serving, obeying);
}

async fn attend<R>(run: RunHandle<R>) {
    let settled = run.settled().await;
    say(run.id(), &settled);
}

fn say(run: &RunId, settled: &Settled) {
    match settled {
        Settled::Stopped(reason) => println!("event stopped {run}: {reason}"),
        other => println!("event settled {run}: {other:?}"),
    }
}

fn report(event: &ServeEvent) {
    match event {
        ServeEvent::Claimed { run, .. } => println!("event claimed {run}"),
        ServeEvent::Settled { run, settled } => say(run, settled),
        ServeEvent::Refused { run, error } => println!("event refused {run}: {error}"),
        other => println!("event other {other:?}"),
    }
}
