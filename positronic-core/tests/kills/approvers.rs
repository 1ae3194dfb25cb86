//! Two processes that decide about the same call at once.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path as File, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Actor, Path, RunId, SignalId, Start};
use positronic_core::runner::{Control, Runner, Settled, SignalError};
use positronic_core::store::SqliteStore;
use serde_json::json;

use super::{FOLDER, effect};

const TIMES: usize = 100;

fn call() -> Path {
    Path::parse("Pay/0.0").unwrap()
}

#[tokio::test]
#[ignore = "a process that decides"]
async fn the_approver() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let control = Control::new(SqliteStore::open(folder.join("runs.db")).unwrap());
    let by = format!("{}", std::process::id());
    println!("answer ready");
    for run in std::io::stdin().lines() {
        let run = RunId::new(run.unwrap());
        match control.approve(&run, &call(), Actor::builder().by(by.as_str()).build()).await {
            Ok(_) => println!("answer accepted"),
            Err(SignalError::Refused(refusal)) => println!("answer {refusal}"),
            Err(error) => panic!("{error}"),
        }
    }
}

struct Approver {
    child: Child,
    told: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Approver {
    fn start(folder: &File) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "approvers::the_approver", "--ignored", "--nocapture", "--test-threads=1"]);
        command.env(FOLDER, folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (told, answers) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut approver = Self { child, told, answers };
        assert_eq!(approver.answer(), "ready");
        approver
    }

    fn answer(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.answers.read_line(&mut line).unwrap(), 0, "the other process has ended");
            if let Some((_, answer)) = line.trim().split_once("answer ") {
                return answer.to_owned();
            }
        }
    }
}

impl Drop for Approver {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

#[tokio::test]
async fn promise_04_two_processes_that_approve_a_call_at_once_a_hundred_times_run_it_once() {
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
    let runner =
        Runner::builder().model(model).store(SqliteStore::open(folder.path().join("runs.db")).unwrap()).build();
    let mut approvers = [Approver::start(folder.path()), Approver::start(folder.path())];
    for time in 0..TIMES {
        let start = Start { id: Some(SignalId::new(format!("run-{time}"))), ..Start::default() };
        let run = runner.start_with(&desk, (), start).await.unwrap();
        assert!(matches!(run.settled().await, Settled::Waiting(_)));

        for approver in &mut approvers {
            writeln!(approver.told, "run-{time}").unwrap();
        }
        let mut answers: Vec<_> = approvers.iter_mut().map(Approver::answer).collect();

        answers.sort();
        let other = answers.pop().unwrap();
        assert_eq!(answers, ["accepted"], "and {other}");
        assert!(other.starts_with(&format!("the call `{}` was decided already: it was approved", call())), "{other}");
        run.result().await.unwrap();
    }
    let effects = std::fs::read_to_string(folder.path().join("effects")).unwrap();
    let mut effects: Vec<_> = effects.lines().collect();
    assert_eq!(effects.len(), TIMES);
    effects.sort_unstable();
    effects.dedup();
    assert_eq!(effects.len(), TIMES, "each once");
}
