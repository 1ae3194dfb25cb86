//! Serves the brains that the conformance suite of MCP calls by name, to any caller, for `.ci/bridges`:
//! `cargo run -p positronic-bridges --example conformance`. The first line of the output is the URL.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "it serves tests")]

use std::time::Duration;

use axum::http::request::Parts;
use futures::future::BoxFuture;
use positronic_bridges::{Bridges, Protocol};
use positronic_core::dsl::{each, form};
use positronic_core::model::scripted::ScriptedModel;
use positronic_core::prelude::*;
use positronic_core::store::MemoryStore;
use positronic_server::{Authenticate, Caller, Options, Problem, Scope, router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The suite sends no token.
struct Anyone;

impl Authenticate for Anyone {
    fn authenticate<'a>(&'a self, _: &'a Parts) -> BoxFuture<'a, Result<Option<Caller>, Problem>> {
        Box::pin(std::future::ready(Ok(Some(Caller::service("suite", Scope::ALL)))))
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct Name {
    name: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct Work {
    seconds: u64,
    label: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct Deletion {
    filename: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct Confirmation {
    confirm: bool,
}

fn greet() -> Brain<Name, String> {
    brain("greet")
        .options::<Name>()
        .step("Greet", async |cx| Ok(format!("Hello, {}!", cx.options.name)))
        .build()
        .with_result_schema()
}

fn slow_compute() -> Brain<Work, String> {
    brain("slow_compute")
        .options::<Work>()
        .step("Compute", async |cx| {
            tokio::time::sleep(Duration::from_secs(cx.options.seconds)).await;
            Ok(format!("computed {}", cx.options.label))
        })
        .build()
        .with_result_schema()
}

fn failing_job() -> Brain<(), String> {
    brain("failing_job")
        .step("Fail", async |_| {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Err::<String, _>("the job has failed".into())
        })
        .build()
}

fn confirm_delete() -> Brain<Deletion, String> {
    brain("confirm_delete")
        .options::<Deletion>()
        .step("Begin", async |cx| Ok(cx.options.filename.clone()))
        .ask_person(
            "Confirm",
            |file| form::<Confirmation>(format!("Delete {file}?")),
            |file, answer| if answer.confirm { format!("deleted {file}") } else { format!("kept {file}") },
        )
        .build()
        .with_result_schema()
}

fn multi_input() -> Brain<(), Vec<String>> {
    let ask = brain("Ask").options::<String>().step("Begin", async |cx| Ok(cx.options.to_string())).ask_person(
        "Name",
        |what| form::<Name>(format!("Which {what}?")),
        |_, answer| answer.name,
    );
    brain("multi_input")
        .state(vec!["name".to_owned(), "colour".to_owned()])
        .map("Each", |what: &Vec<String>| what.clone(), each(ask), |_, answers| answers)
        .build()
        .with_result_schema()
}

fn simple_text() -> Brain<(), String> {
    let text = "This is a simple text response for testing.";
    brain("test_simple_text").step("Say", async move |_| Ok(text.to_owned())).build().with_result_schema()
}

fn error_handling() -> Brain<(), String> {
    brain("test_error_handling").step("Fail", async |_| Err::<String, _>("This fails on purpose".into())).build()
}

fn with_progress() -> Brain<(), u32> {
    brain("test_tool_with_progress")
        .step("First", async |_| Ok(0_u32))
        .step("Second", async |_| Ok(50_u32))
        .step("Third", async |_| Ok(100_u32))
        .build()
        .with_result_schema()
}

#[tokio::main]
async fn main() {
    let no_model = ScriptedModel::from_fn(|_| positronic_core::model::scripted::Reply::text("unused"));
    let runner = Runner::new(no_model)
        .store(MemoryStore::new())
        .brain(greet())
        .brain(slow_compute())
        .brain(failing_job())
        .brain(confirm_delete())
        .brain(multi_input())
        .brain(simple_text())
        .brain(error_handling())
        .brain(with_progress());
    let bridges = Bridges::builder().protocols([Protocol::Mcp]).build();
    let options = Options::builder()
        .brains(runner.clone())
        .authenticate(Anyone)
        .routes(bridges.routes())
        .max_streams(1000)
        .requests_per_minute(100_000)
        .build();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("http://{}/api/v1/mcp", listener.local_addr().unwrap());
    axum::serve(listener, router(runner.client(), options)).await.unwrap();
}
