//! The test's side: workers as processes, which it starts, kills, stops and asks.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path as FilePath;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use positronic_core::record::{Actor, Path, RunId, RunSummary, Status};
use positronic_core::runner::Client;
use positronic_core::store::PendingFilter;
use positronic_core::store::prelude::*;
use positronic_postgres::PostgresStore;

use crate::ledger::Ledger;
use crate::server::{self, Database};
use crate::worker::{SETUP, Setup};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(90);

/// Waits until a condition holds, which it looks at again and again: other processes make it true.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < deadline, "it does not happen: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A database, a ledger, and the setup of workers.
pub(crate) struct Cluster {
    pub(crate) setup: Setup,
    pub(crate) ledger: Ledger,
    pub(crate) store: PostgresStore,
    pub(crate) client: Client,
    _folder: tempfile::TempDir,
}

impl Cluster {
    /// Creates a cluster on the server of all tests; `None` if there is none.
    pub(crate) async fn new(ttl: Duration) -> Option<Self> {
        Some(Self::on(&server::database().await?, ttl).await)
    }

    pub(crate) async fn on(database: &Database, ttl: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (url, schema) = (database.url.clone(), database.schema.clone());
        let (path, version) = (folder.path().to_owned(), 1);
        let setup = Setup { url, schema, ttl, folder: path, version, only: false, serves: true, dialogues: None };
        let store = setup.open().await;
        let client = Client::new(setup.open().await);
        Self { ledger: Ledger::new(folder.path()), setup, store, client, _folder: folder }
    }

    pub(crate) async fn boot(&self) -> Process {
        Process::boot(&self.setup).await
    }

    pub(crate) async fn row(&self, run: &RunId) -> RunSummary {
        self.store.run(run).await.unwrap()
    }

    /// Waits until a run has a status.
    pub(crate) async fn reaches(&self, run: &RunId, status: Status) {
        let what = format!("`{run}` is {}", status.as_str());
        until(&what, async || (self.store.run(run).await.ok()?.status == status).then_some(())).await;
    }

    /// Waits until runs have completed, and approves what waits for a person. While the database is away, it tries
    /// again.
    pub(crate) async fn complete(&self, runs: &[RunId]) {
        for run in runs {
            until(&format!("`{run}` completes"), async || {
                self.approve(run).await;
                (self.store.run(run).await.ok()?.status == Status::Completed).then_some(())
            })
            .await;
        }
    }

    /// Approves what waits in a run now, and returns how many decisions were accepted.
    pub(crate) async fn approve(&self, run: &RunId) -> usize {
        let pending = self.store.pending(&PendingFilter::builder().run(run.clone()).person(true).build()).await;
        let mut accepted = 0;
        for item in pending.unwrap_or_default() {
            let decided = self.client.approve(run, &item.pending.call, Actor::default()).await;
            accepted += usize::from(decided.is_ok());
        }
        accepted
    }

    /// Waits until a call has begun, `times` times.
    pub(crate) async fn begins(&self, run: &RunId, call: &str, times: usize) {
        let begun = async || {
            let entries = self.ledger.of(run, call);
            let begun = entries.iter().filter(|entry| entry.what == crate::ledger::What::Begin).count();
            (begun >= times).then_some(())
        };
        until(&format!("`{run}` `{call}` begins {times} times"), begun).await;
    }
}

/// The process of a worker. It is killed on drop.
pub(crate) struct Process {
    child: Child,
    input: ChildStdin,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Process {
    /// Starts a process, and waits until it is ready.
    pub(crate) async fn boot(setup: &Setup) -> Self {
        let process = Self::start(setup);
        process.says("answer boot: ").await;
        process
    }

    fn start(setup: &Setup) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "worker::process", "--ignored", "--nocapture", "--test-threads=1"]);
        command.env(SETUP, serde_json::to_string(setup).unwrap()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let said = Arc::clone(&lines);
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                said.lock().unwrap().push(line);
            }
        });
        Self { child, input, lines }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a command.
    pub(crate) fn tell(&mut self, command: &str) {
        // The process may be dead.
        _ = writeln!(self.input, "{command}");
    }

    /// Sends a command and returns its answer.
    pub(crate) async fn ask(&mut self, command: &str) -> String {
        let answer = format!("answer {command}: ");
        let before = self.all(&answer).len();
        self.tell(command);
        until(&format!("process {} answers `{command}`", self.id()), async || self.all(&answer).into_iter().nth(before))
            .await
    }

    /// Waits for a line that contains a text, and returns what follows the text.
    pub(crate) async fn says(&self, text: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = self.all(text).pop() {
                return found;
            }
            let said = || self.lines.lock().unwrap().join("\n");
            assert!(Instant::now() < deadline, "process {} does not say `{text}`; it has said:\n{}", self.id(), said());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Returns what follows a text in the lines that contain it.
    fn all(&self, text: &str) -> Vec<String> {
        let lines = self.lines.lock().unwrap();
        lines.iter().filter_map(|line| line.split_once(text).map(|(_, rest)| rest.to_owned())).collect()
    }

    pub(crate) async fn start_run(&mut self, run: &str, brain: &str) -> RunId {
        assert_eq!(self.ask(&format!("start {run} {brain}")).await, "ok");
        RunId::from(run)
    }

    /// Kills the process at once, with SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Stops the process with SIGSTOP until the result is dropped, or until this process ends.
    pub(crate) fn stop(&self) -> Stopped {
        let script = "kill -STOP $0; echo; read -r _; kill -CONT $0 2>/dev/null";
        let mut command = Command::new("sh");
        command.args(["-c", script, &self.id().to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = command.spawn().unwrap();
        shell.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
        Stopped(shell)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// A stopped process. On drop it continues, with SIGCONT.
pub(crate) struct Stopped(Child);

impl Drop for Stopped {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        _ = self.0.wait();
    }
}

/// Returns a call's path.
pub(crate) fn call(text: &str) -> Path {
    Path::parse(text).unwrap()
}

/// Returns a file of the tests of the core.
pub(crate) fn dialogues_of_the_core() -> std::path::PathBuf {
    FilePath::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/data/bfcl/multi_turn.jsonl")
}
