//! A folder with a store and a ledger, a server, and a service that can be killed and started again.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use positronic_core::machine::RunState;
use positronic_core::record::{Actor, Event, EventKind, Path, RunId, Seq, SignalId, Start, Status, ToolResult};
use positronic_core::runner::{self, RunHandle, Runner};
use positronic_core::store::PendingFilter;
use positronic_core::store::prelude::*;
use positronic_restate::{Client, RunOutcome};
use positronic_sqlite::SqliteStore;
use tempfile::TempDir;

use crate::errands::{ADDRESS, Board, FOLDER, INGRESS, Plan, TITLE, errands, model};
use crate::server::{PATIENCE, Server, binary, free_port, send, until};

/// A test's world.
pub(crate) struct Bench {
    // Killed before the folder is removed.
    service: Option<Service>,
    other: Option<Service>,
    pub(crate) server: Server,
    port: u16,
    pub(crate) store: SqliteStore,
    pub(crate) client: Client,
    folder: TempDir,
}

/// The process that serves the brain.
struct Service(Child);

impl Drop for Service {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Bench {
    /// Starts a server and a service; `None` if there is no server.
    pub(crate) async fn start() -> Option<Self> {
        let binary = binary()?;
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(binary, folder.path()).await;
        let store = SqliteStore::open(folder.path().join("runs.db")).unwrap();
        let client = Client::new(&server.ingress());
        let mut bench = Self { service: None, other: None, server, port: free_port(), store, client, folder };
        bench.serve().await;
        bench.server.register(&format!("http://127.0.0.1:{}", bench.port)).await;
        Some(bench)
    }

    /// Starts the service.
    pub(crate) async fn serve(&mut self) {
        self.service = Some(self.process(self.port).await);
    }

    /// Starts another process and registers it: it gets the new invocations.
    pub(crate) async fn serve_elsewhere(&mut self) {
        let port = free_port();
        self.other = Some(self.process(port).await);
        self.server.register(&format!("http://127.0.0.1:{port}")).await;
    }

    async fn process(&self, port: u16) -> Service {
        let log = self.folder.path().join("service.log");
        let log = std::fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "errands::service_process", "--ignored", "--nocapture", "--test-threads=1"]);
        command.env(FOLDER, self.folder.path()).env(INGRESS, self.server.ingress());
        command.env(ADDRESS, format!("127.0.0.1:{port}")).env("NO_PROXY", "127.0.0.1");
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let service = Service(command.spawn().unwrap());
        until("the service listens", async || tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok()).await;
        service
    }

    /// Ends the service without warning.
    pub(crate) fn kill_service(&mut self) {
        self.service = None;
    }

    /// Asks the service to stop; [`Bench::stopped`] waits until it has.
    pub(crate) fn stop_service(&self) {
        send("TERM", &self.service.as_ref().unwrap().0);
    }

    pub(crate) async fn stopped(&mut self) {
        let service = self.service.as_mut().unwrap();
        until("the service ends", async || service.0.try_wait().unwrap().is_some()).await;
    }

    /// Starts a run in which the model asks for these batches of calls.
    pub(crate) async fn run(&self, run: &str, batches: &[&[(&str, &str)]]) {
        self.client.start(errands(PathBuf::new()), plan(batches), run).await.unwrap();
    }

    /// Starts a run in this process, which stops working on it at the first wait.
    pub(crate) async fn start_without_restate(&self, run: &str, batches: &[&[(&str, &str)]]) -> RunHandle<Board> {
        let runner = Runner::new(model()).store(self.store.clone()).linger(Duration::ZERO);
        let start = Start { id: Some(SignalId::new(run)), ..Start::default() };
        runner.start_with(errands(PathBuf::new()), plan(batches), start).await.unwrap()
    }

    /// Returns whether a call waits for a decision.
    pub(crate) async fn is_pending(&self, run: &str, call: &str) -> bool {
        let filter = PendingFilter::builder().run(RunId::new(run)).build();
        self.store.pending(&filter).await.unwrap().iter().any(|item| item.pending.call.as_str() == call)
    }

    /// Keeps a job from ending until [`Bench::let_end`].
    pub(crate) fn hold(&self, id: &str) {
        std::fs::write(self.folder.path().join(format!("hold-{id}")), "").unwrap();
    }

    pub(crate) fn let_end(&self, id: &str) {
        std::fs::remove_file(self.folder.path().join(format!("hold-{id}"))).unwrap();
    }

    /// Returns the lines of the ledger.
    pub(crate) fn ledger(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.path().join("ledger")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Waits until the ledger has a line.
    pub(crate) async fn noted(&self, line: &str) {
        until(line, async || self.ledger().iter().any(|known| known == line)).await;
    }

    /// Returns how often the ledger has a line.
    pub(crate) fn count(&self, line: &str) -> usize {
        self.ledger().iter().filter(|known| *known == line).count()
    }

    /// Waits until the run has pending items, and its worker has released it.
    pub(crate) async fn waits(&self, run: &str) {
        let waits = async || {
            let Ok(row) = self.store.run(&RunId::new(run)).await else { return false };
            row.status == Status::Waiting && row.claim.is_none_or(|claim| claim.released)
        };
        until("the run waits", waits).await;
    }

    /// Returns a client of the store, without Restate.
    pub(crate) fn elsewhere(&self) -> runner::Client {
        runner::Client::new(self.store.clone())
    }

    pub(crate) async fn outcome(&self, run: &str) -> RunOutcome {
        let attached = async {
            loop {
                match self.client.outcome(TITLE, run).await {
                    Ok(outcome) => return outcome,
                    Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                }
            }
        };
        let ended = tokio::time::timeout(PATIENCE, attached).await;
        ended.unwrap_or_else(|_| panic!("the run does not end:\n{}", self.logs()))
    }

    /// Waits until a run has completed, checks its log, and returns it.
    pub(crate) async fn completed(&self, run: &str) -> Log {
        let outcome = self.outcome(run).await;
        assert!(matches!(outcome, RunOutcome::Completed(_)), "{outcome:?}\n{}", self.logs());
        let log = self.log(run).await;
        RunState::replay(log.0.iter().map(|event| &**event)).unwrap();
        log
    }

    pub(crate) async fn log(&self, run: &str) -> Log {
        Log(self.store.read(&RunId::new(run), Seq(0), usize::MAX).await.unwrap())
    }

    fn logs(&self) -> String {
        let read = |name: &str| std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
        let last = |text: String| {
            text.lines()
                .rev()
                .take(40)
                .map(str::to_owned)
                .collect::<Vec<_>>()
                .into_iter()
                .rev()
                .collect::<Vec<_>>()
                .join("\n")
        };
        format!("{}\n{}\n{:?}", last(read("restate.log")), last(read("service.log")), self.ledger())
    }
}

/// A run's log.
pub(crate) struct Log(pub(crate) Vec<Arc<Event>>);

impl Log {
    /// Returns the result of a call.
    pub(crate) fn result(&self, call: &str) -> &ToolResult {
        let of_call = self.0.iter().filter(|event| event.path.as_str() == call);
        of_call
            .filter_map(|event| match &event.kind {
                EventKind::LoopToolResult { result, .. } => Some(result),
                _ => None,
            })
            .next()
            .unwrap_or_else(|| panic!("no result of {call}"))
    }

    pub(crate) fn succeeded(&self, call: &str) -> bool {
        matches!(self.result(call), ToolResult::Success { .. })
    }

    /// Returns how often an event with a name is in the log.
    pub(crate) fn count(&self, name: &str) -> usize {
        self.0.iter().filter(|event| event.kind.name() == name).count()
    }

    /// Returns the jobs in the final state without the order of parallel ones.
    pub(crate) fn sorted(&self) -> Vec<String> {
        let mut done = self.done();
        done.sort();
        done
    }

    /// Returns the jobs in the final state.
    pub(crate) fn done(&self) -> Vec<String> {
        let state = RunState::replay(self.0.iter().map(|event| &**event)).unwrap();
        serde_json::from_value(state.root.unwrap().state["done"].clone()).unwrap()
    }
}

fn plan(batches: &[&[(&str, &str)]]) -> Plan {
    let batch = |calls: &&[(&str, &str)]| calls.iter().map(|(tool, id)| (tool.to_string(), id.to_string())).collect();
    Plan { batches: batches.iter().map(batch).collect() }
}

pub(crate) fn ann() -> Actor {
    Actor::builder().by("ann").channel("test").build()
}

pub(crate) fn path(text: &str) -> Path {
    Path::parse(text).unwrap()
}
