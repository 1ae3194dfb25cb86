//! The brain of the tests, and the process that serves it: another instance of this test program.

use std::io::Write as _;
use std::path::{Path as File, PathBuf};
use std::time::Duration;

use positronic_core::dsl::ToolBuilder;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::ModelRequest;
use positronic_restate::Endpoint;
use positronic_sqlite::SqliteStore;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

/// The folder of the store, the ledger and the marks; the address to serve; the ingress.
pub(crate) const FOLDER: &str = "POSITRONIC_TEST_FOLDER";
pub(crate) const ADDRESS: &str = "POSITRONIC_TEST_ADDRESS";
pub(crate) const INGRESS: &str = "POSITRONIC_TEST_INGRESS";

/// The title of the brain.
pub(crate) const TITLE: &str = "Errands";

/// What the model asks for, by iteration: the tool and the id of each call.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Plan {
    pub(crate) batches: Vec<Vec<(String, String)>>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Board {
    pub(crate) done: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Job {
    id: String,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct News {
    text: String,
}

/// Appends a line to the ledger in one write, as an effect outside the process.
fn effect(folder: &File, line: &str) {
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(folder.join("ledger")).unwrap();
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// Does a job. While the mark `hold-ID` exists, it does not end.
async fn work(folder: &File, id: &str) {
    effect(folder, &format!("{id} begins"));
    while folder.join(format!("hold-{id}")).exists() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    effect(folder, &format!("{id} done"));
}

fn job(
    name: &str,
    folder: &File,
    flags: impl FnOnce(ToolBuilder<Plan, Board>) -> ToolBuilder<Plan, Board>,
) -> Tool<Plan, Board> {
    let folder = folder.to_owned();
    Tool::new(name, |t| {
        flags(t).execute(move |Job { id }, cx: ToolContext<Plan, Board>| {
            let folder = folder.clone();
            async move {
                work(&folder, &id).await;
                let reply = cx.result(format!("{id} done"));
                Ok(reply.update(move |board: &mut Board| board.done.push(id)))
            }
        })
    })
}

/// Returns the brain, over a folder.
pub(crate) fn errands(folder: PathBuf) -> Brain<Plan, Board> {
    brain(TITLE)
        .options::<Plan>()
        .state(Board::default())
        .r#loop("Work", move |cx| {
            let plan = serde_json::to_string(&cx.options.batches).unwrap();
            let hooked = |t: ToolBuilder<Plan, Board>| {
                t.execute(async |Job { id }, cx: ToolContext<Plan, Board>| {
                    let hook = webhook::<News>("news").on(id).otherwise("no news").timeout(Duration::from_secs(2));
                    Ok(cx.result("asked").wait_for([hook]))
                })
            };
            let large = |t: ToolBuilder<Plan, Board>| {
                t.execute(async |Job { .. }, _: ToolContext<Plan, Board>| Ok(vec!["x".repeat(1 << 20); 34]))
            };
            let slow = |t: ToolBuilder<Plan, Board>| {
                t.execute(async |Job { .. }, cx: ToolContext<Plan, Board>| {
                    tokio::time::sleep(Duration::from_millis(2500)).await;
                    Ok(cx.idempotency_key().to_owned())
                })
            };
            cx.system(plan)
                .input("begin")
                .tools([
                    job("pay", &folder, |t| t),
                    job("look", &folder, ToolBuilder::read_only),
                    job("gated", &folder, |t| t.requires_approval("sure?")),
                    job("near", &folder, |t| t),
                ])
                .tool("ask", hooked)
                .tool("large", large)
                .tool("slow", slow)
        })
        .build()
}

pub(crate) fn model() -> ScriptedModel {
    ScriptedModel::from_fn(|request: &ModelRequest| {
        let plan: Vec<Vec<(String, String)>> = serde_json::from_str(&request.system).unwrap();
        let iteration: usize = request.path.as_str().rsplit_once('/').unwrap().1.parse().unwrap();
        match plan.get(iteration) {
            Some(batch) => Reply::calls(batch.iter().map(|(tool, id)| (tool.as_str(), json!({ "id": id })))),
            None => Reply::text("Done."),
        }
    })
}

#[tokio::test]
#[ignore = "a process of other tests"]
#[expect(clippy::disallowed_methods, reason = "its test tells it here what to serve")]
async fn service_process() {
    let set = |name| std::env::var(name).unwrap();
    let folder = PathBuf::from(set(FOLDER));
    let store = SqliteStore::open(folder.join("runs.db")).unwrap();
    let runner = Runner::new(model()).store(store).max_document_bytes(64 << 20);
    let listener = tokio::net::TcpListener::bind(set(ADDRESS)).await.unwrap();
    let endpoint = Endpoint::new(runner, &set(INGRESS)).brain(errands(folder)).local("near");
    let mut stop = signal(SignalKind::terminate()).unwrap();
    endpoint.serve_until(listener, async { _ = stop.recv().await }).await.unwrap();
}
