//! A Restate server in a folder, on free ports that it keeps after a restart.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

/// The path of the server's binary, set by `.ci/restate`.
const BINARY: &str = "POSITRONIC_RESTATE_SERVER";

/// How long a server or service may take to answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Returns the path of the server; `None` if the tests are skipped.
#[expect(clippy::disallowed_methods, reason = "the script that installs the server says here where it is")]
pub(crate) fn binary() -> Option<PathBuf> {
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let binary = set(BINARY).map(PathBuf::from);
    if binary.is_none() {
        assert!(set("CI").is_none(), "{BINARY} does not name the server; run these tests by `.ci/restate`");
        eprintln!("skipped: {BINARY} does not name a Restate server; `.ci/restate` installs one and runs the tests");
    }
    binary
}

/// A server, which is killed when it is dropped.
pub(crate) struct Server {
    binary: PathBuf,
    folder: PathBuf,
    ports: [u16; 3],
    process: Option<Child>,
    http: reqwest::Client,
}

/// Sends a signal to a process.
pub(crate) fn send(signal: &str, process: &Child) {
    let id = process.id().to_string();
    assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
}

pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Returns three different ports. Another process may take one before the server does.
fn free_ports() -> [u16; 3] {
    let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

impl Server {
    pub(crate) async fn start(binary: PathBuf, folder: &Path) -> Self {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let mut server = Self { binary, folder: folder.to_owned(), ports: [0; 3], process: None, http };
        for _ in 0..5 {
            server.ports = free_ports();
            server.configure();
            if server.launch().await {
                return server;
            }
        }
        panic!("the server ends at once; see {}", folder.join("restate.log").display());
    }

    fn configure(&self) {
        let [node, admin, ingress] = self.ports;
        let config = format!(
            r#"
bind-ip = "127.0.0.1"
bind-port = {node}
advertised-host = "127.0.0.1"
listen-mode = "tcp"
disable-telemetry = true
default-num-partitions = 2
rocksdb-total-memory-size = "256 MB"
base-dir = {data:?}
[admin]
bind-port = {admin}
[ingress]
bind-port = {ingress}
[worker.invoker]
inactivity-timeout = "1s"
"#,
            data = self.folder.join("restate")
        );
        std::fs::write(self.folder.join("restate.toml"), config).unwrap();
    }

    pub(crate) fn ingress(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports[2])
    }

    fn admin(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.ports[1])
    }

    /// Starts the server with its ports again, and waits until it answers.
    pub(crate) async fn restart(&mut self) {
        assert!(self.launch().await, "the server ends at once; see {}", self.folder.join("restate.log").display());
    }

    /// Starts the server and waits until it answers. Returns `false` if it ends, such as for a port that is taken.
    async fn launch(&mut self) -> bool {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.folder.join("restate.log")).unwrap();
        let mut command = Command::new(&self.binary);
        command.arg("--no-logo").arg("-c").arg(self.folder.join("restate.toml")).current_dir(&self.folder);
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let urls = [self.admin("/health"), format!("{}/restate/health", self.ingress())];
        let (http, process) = (&self.http, self.process.insert(command.spawn().unwrap()));
        let mut has_ended = false;
        for url in urls {
            let healthy_or_over = async || {
                has_ended = process.try_wait().unwrap().is_some();
                has_ended || http.get(&url).send().await.is_ok_and(|answer| answer.status().is_success())
            };
            until(&url, healthy_or_over).await;
        }
        !has_ended
    }

    /// Ends the server without warning.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            // It may have ended by itself.
            _ = process.kill();
            process.wait().unwrap();
        }
    }

    /// Stops the server's process (`STOP`) or continues it (`CONT`).
    pub(crate) fn signal(&self, name: &str) {
        send(name, self.process.as_ref().unwrap());
    }

    /// Registers a deployment.
    pub(crate) async fn register(&self, uri: &str) {
        let request = self.http.post(self.admin("/deployments")).json(&json!({"uri": uri, "force": true}));
        let answer = request.send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert!(status.is_success(), "{status}: {text}");
    }

    /// Returns the rows of a query about invocations.
    pub(crate) async fn query(&self, sql: &str) -> Vec<Value> {
        let request = self.http.post(self.admin("/query")).header("accept", "application/json");
        let answer = request.json(&json!({ "query": sql })).send().await.unwrap();
        answer.json::<Value>().await.unwrap()["rows"].as_array().cloned().unwrap_or_default()
    }

    /// Waits until the workflow of a run is suspended.
    pub(crate) async fn suspended(&self, run: &str) {
        let sql = format!(
            "SELECT status FROM sys_invocation WHERE target_service_key = '{run}' AND target_handler_name = 'run'"
        );
        let is_suspended = async || self.query(&sql).await.iter().any(|row| row["status"] == "suspended");
        until("the workflow is suspended", is_suspended).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Polls a condition on the outside world until it holds.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let polled = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, polled).await.is_ok(), "never happened: {what}");
}
