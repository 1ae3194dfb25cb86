//! Two processes that decide on the same call at once.

use std::path::PathBuf;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Actor, Path, RunId, SignalId, Start};
use positronic_core::runner::{Client, Settled, SignalError};
use positronic_sqlite::SqliteStore;
use serde_json::json;

use super::children::Children;
use super::{FOLDER, effect};

const TIMES: usize = 100;

fn call() -> Path {
    Path::parse("Pay/0.0").unwrap()
}

#[tokio::test]
#[ignore = "helper process that sends decisions"]
async fn approver_process() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let client = Client::new(SqliteStore::open(folder.join("runs.db")).unwrap());
    let by = format!("{}", std::process::id());
    println!("answer ready");
    for run in std::io::stdin().lines() {
        let run = RunId::new(run.unwrap());
        match client.approve(&run, &call(), Actor::builder().by(by.as_str()).build()).await {
            Ok(_) => println!("answer accepted"),
            Err(SignalError::Refused(refusal)) => println!("answer {refusal}"),
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn promise_04_two_processes_approving_a_call_a_hundred_times_run_it_once() {
    let folder = tempfile::tempdir().unwrap();
    let paid = folder.path().to_owned();
    let desk = brain("Desk").r#loop("Pay", move |cx| {
        let paid = paid.clone();
        cx.system("Pay.").input("begin").tool("pay", move |t| {
            t.description("Pays").requires_approval("it is money").execute(move |_: NoArgs, cx| {
                let paid = paid.clone();
                async move {
                    effect(&paid, cx.idempotency_key());
                    Ok("paid")
                }
            })
        })
    });
    let model = ScriptedModel::from_fn(|request| match request.path.as_str() {
        "Pay/0" => Reply::call("pay", json!({})),
        _ => Reply::text("Paid."),
    });
    let runner = Runner::new(model).store(SqliteStore::open(folder.path().join("runs.db")).unwrap());
    let mut approvers = Children::start("approvers::approver_process", folder.path());
    for time in 0..TIMES {
        let start = Start { id: Some(SignalId::new(format!("run-{time}"))), ..Start::default() };
        let run = runner.start_with(&desk, (), start).await.unwrap();
        assert!(matches!(run.settled().await, Settled::Waiting(_)));

        let mut answers = approvers.answer(&format!("run-{time}"));

        answers.sort();
        let [accepted, other] = answers;
        assert_eq!(accepted, "accepted", "and {other}");
        assert!(other.starts_with(&format!("the call `{}` is already decided: it was approved", call())), "{other}");
        run.result().await.unwrap();
    }
    let effects = std::fs::read_to_string(folder.path().join("effects")).unwrap();
    let mut effects: Vec<_> = effects.lines().collect();
    assert_eq!(effects.len(), TIMES);
    effects.sort_unstable();
    effects.dedup();
    assert_eq!(effects.len(), TIMES, "each once");
}
