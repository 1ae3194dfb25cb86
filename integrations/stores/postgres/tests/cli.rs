//! The commands with a store in PostgreSQL.
//!
//! The program is both the test and the command: started by itself with [`COMMAND`], it is a project's own binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "in tests a panic is the message"
)]

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;

use positronic_cli::Project;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::Tier;
use serde::Deserialize;
use serde_json::{Value, json};

#[path = "it/server.rs"]
#[allow(dead_code, reason = "the other tests use the rest")]
mod server;

/// Says that this process is the command.
const COMMAND: &str = "POSITRONIC_TEST_COMMAND";

#[derive(Deserialize, schemars::JsonSchema)]
struct Amount {
    /// How much.
    amount: u32,
}

/// A clerk who pays after an approval, and two models: one that asks for it, and one that thanks.
fn project() -> Project {
    let clerk = brain("Clerk").r#loop("Work", |cx| {
        cx.system("You pay invoices.").input("Pay invoice 7.").tool("pay", |t| {
            t.description("Pays")
                .requires_approval("it costs")
                .execute(async |Amount { amount }, _| Ok(format!("paid {amount}")))
        })
    });
    let model = ScriptedModel::from_fn(|request| match request.messages.len() {
        1 => Reply::call("pay", json!({ "amount": 70 })),
        _ => Reply::text("Invoice 7 is paid."),
    });
    Project::new().brain(clerk).model(Tier::Normal, Arc::new(model))
}

fn main() -> ExitCode {
    if std::env::var_os(COMMAND).is_some() {
        return project().main();
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let Some(database) = runtime.block_on(server::database()) else { return ExitCode::SUCCESS };
    commands_share_runs_in_postgresql(&database);
    println!("test commands_share_runs_in_postgresql ... ok");
    ExitCode::SUCCESS
}

/// The output of a command.
struct Output {
    code: i32,
    out: String,
    err: String,
}

/// Runs a command with a store in a folder of its own.
fn call(store: &str, folder: &Path, words: &[&str]) -> Output {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(words)
        .current_dir(folder)
        .env(COMMAND, "1")
        .env("POSITRONIC_STORE", store)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let all = Output { code: output.status.code().unwrap_or(-1), out: text(&output.stdout), err: text(&output.stderr) };
    assert!(!all.out.contains("s3cret") && !all.err.contains("s3cret"), "{}{}", all.out, all.err);
    all
}

fn commands_share_runs_in_postgresql(database: &server::Database) {
    // Two folders are as two machines.
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (one, two) = (one.path(), two.path());
    let place = database.url.replace("tester@", "tester:s3cret@");
    let store = format!("{place}?schema={}", database.schema.replace(' ', "%20"));
    let ok = |folder: &Path, words: &[&str]| {
        let output = call(&store, folder, words);
        assert_eq!(output.code, 0, "{words:?}: {}{}", output.out, output.err);
        output.out
    };
    let json = |folder: &Path, words: &[&str]| -> Value {
        let out = ok(folder, &[words, &["--json"]].concat());
        serde_json::from_str(out.lines().next().unwrap_or("null")).unwrap()
    };

    // A store that does not exist is not created by reading.
    let absent = call(&store, one, &["runs"]);
    assert_eq!(absent.code, 6, "{}", absent.err);
    assert!(absent.err.contains("no store found at postgres://tester@127.0.0.1"), "{}", absent.err);
    let wrong = call("postgres://tester:s3cret@127.0.0.1:1/x", one, &["runs"]);
    assert!(wrong.code != 0 && wrong.err.contains("cannot connect to"), "{}", wrong.err);

    // It waits for an approval, which the other machine gives while no worker is alive.
    let asked = call(&store, one, &["run", "clerk", "--id", "inv-7"]);
    assert!(asked.out.contains("pay") || asked.err.contains("pay"), "{} {}", asked.out, asked.err);
    let listed = json(two, &["runs"]);
    assert_eq!((&listed["run"], &listed["status"]), (&json!("inv-7"), &json!("waiting")));
    assert_eq!(json(two, &["inbox"])["run"], "inv-7");
    assert!(ok(two, &["show", "inv-7"]).contains("Clerk"));
    let call_path = json(two, &["inbox"])["pending"]["call"].as_str().unwrap().to_owned();
    ok(two, &["approve", "inv-7", &call_path]);
    let worked = call(&store, two, &["work", "--once"]);
    assert_eq!(json(one, &["runs"])["status"], "completed", "{}{}", worked.out, worked.err);
    assert!(ok(one, &["show", "inv-7"]).contains("Invoice 7 is paid."));

    // The log moves through a file to a store of the other kind and back.
    ok(one, &["export", "inv-7", "run.jsonl"]);
    let file = one.join("runs.db");
    let imported = call(file.to_str().unwrap(), one, &["import", "run.jsonl"]);
    assert_eq!(imported.code, 0, "{}", imported.err);
    assert_eq!(json(one, &["prune", "--before", "0s"])["removed"], 1);
    assert_eq!(ok(one, &["runs", "--json"]), "");
    ok(two, &["import", one.join("run.jsonl").to_str().unwrap()]);
    assert_eq!(json(one, &["runs"])["run"], "inv-7");
}
