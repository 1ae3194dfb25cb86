//! Two processes that resume the same run at once.

use std::path::{Path as File, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Actor, Path, RunId, SignalId, Start};
use positronic_core::runner::{Client, ResumeError, RunHandle};
use positronic_sqlite::SqliteStore;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::children::Children;
use super::{FOLDER, effect};

const TIMES: usize = 25;

/// Pays once approved, and finishes on command.
fn desk(folder: &File, paid: &Arc<Notify>) -> Brain<()> {
    let (folder, paid) = (folder.to_owned(), Arc::clone(paid));
    brain("Desk")
        .r#loop("Pay", move |cx| {
            let (folder, paid) = (folder.clone(), Arc::clone(&paid));
            cx.system("Pay.").input("begin").tool("pay", move |t| {
                t.requires_approval("it is money").execute(move |_: NoArgs, cx| {
                    let (folder, paid) = (folder.clone(), Arc::clone(&paid));
                    async move {
                        effect(&folder, cx.idempotency_key());
                        paid.notified().await;
                        Ok("paid")
                    }
                })
            })
        })
        .build()
}

fn runner(folder: &File) -> Runner {
    let model = ScriptedModel::from_fn(|request| match request.path.as_str() {
        "Pay/0" => Reply::call("pay", json!({})),
        _ => Reply::text("Paid."),
    });
    let store = SqliteStore::open(folder.join("runs.db")).unwrap();
    Runner::new(model).store(store).linger(Duration::ZERO)
}

#[tokio::test]
#[ignore = "helper process that resumes runs"]
async fn resumer_process() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let paid = Arc::new(Notify::new());
    let runner = runner(&folder).brain(desk(&folder, &paid));
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || std::io::stdin().lines().try_for_each(|line| tell.send(line.unwrap())));
    println!("answer ready");
    let mut here: Option<RunHandle<Value>> = None;
    while let Some(line) = told.recv().await {
        match (line.as_str(), here.take()) {
            ("paid", None) => println!("answer there is nothing here"),
            ("paid", Some(run)) => {
                paid.notify_one();
                run.result().await.unwrap();
                println!("answer the run is over");
            }
            (run, _) => match runner.resume(&RunId::new(run)).await {
                Ok(run) => {
                    println!("answer it goes on here");
                    here = Some(run);
                }
                Err(ResumeError::Claimed { by }) => println!("answer {by} has it"),
                Err(error) => panic!("{error}"),
            },
        }
    }
}

#[tokio::test]
async fn promise_04_two_processes_resuming_a_run_run_its_call_once() {
    let folder = tempfile::tempdir().unwrap();
    let (first, brain) = (runner(folder.path()), desk(folder.path(), &Arc::default()));
    let mut runs = Vec::new();
    for time in 0..TIMES {
        let start = Start { id: Some(SignalId::new(format!("run-{time}"))), ..Start::default() };
        let run = first.start_with(&brain, (), start).await.unwrap();
        run.settled().await;
        runs.push(run.id().clone());
    }
    first.release().await;
    let client = Client::new(SqliteStore::open(folder.path().join("runs.db")).unwrap());
    let mut both = Children::start("resumers::resumer_process", folder.path());
    for run in &runs {
        client.approve(run, &Path::parse("Pay/0.0").unwrap(), Actor::default()).await.unwrap();

        let mut answers = both.answer(run.as_str());

        let owner = client.store().run(run).await.unwrap().claim.unwrap().owner;
        answers.sort();
        let mut expected = ["it goes on here".to_owned(), format!("{owner} has it")];
        expected.sort();
        assert_eq!(answers, expected);
        let mut over = both.answer("paid");
        over.sort();
        assert_eq!(over, ["the run is over", "there is nothing here"]);
    }
    let effects = std::fs::read_to_string(folder.path().join("effects")).unwrap();
    let paid: Vec<_> = effects.lines().map(str::to_owned).collect();
    assert_eq!(paid, runs.iter().map(|run| format!("{run}:Pay/0.0")).collect::<Vec<_>>(), "each once");
}
