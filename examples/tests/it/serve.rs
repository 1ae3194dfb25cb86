//! `serve`: a support case that a person handles in a browser, with a real process and real requests.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running server, which ends with the test.
struct Served {
    process: Child,
    address: String,
    code: String,
    cookie: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

fn positronic(store: &Path) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("positronic-examples"));
    command.env_clear().env("USER", "ann").arg("--store").arg(store);
    command
}

impl Served {
    fn start(store: &Path) -> Self {
        Self::listen(store, "127.0.0.1:0")
    }

    fn listen(store: &Path, address: &str) -> Self {
        let mut command = positronic(store);
        command.args(["serve", "--listen", address]).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (page, code) = line.trim().split_once("#code=").unwrap();
        let address = page.strip_prefix("http://").unwrap().strip_suffix("/ui").unwrap();
        Self { address: address.to_owned(), code: code.to_owned(), cookie: String::new(), process }
    }

    /// Sends a request and returns the status, the head and the JSON of the answer.
    fn send(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, String, Value) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let body = body.map(Value::to_string).unwrap_or_default();
        let mut request = format!("{method} /api/v1{path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.address);
        if !self.cookie.is_empty() {
            _ = write!(request, "Cookie: {}\r\n", self.cookie);
        }
        if !body.is_empty() {
            _ = write!(request, "Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
        }
        stream.write_all(format!("{request}\r\n{body}").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head.to_owned(), serde_json::from_str(body).unwrap_or_default())
    }

    fn log_in(&mut self) {
        let (status, head, _) = self.send("POST", "/session", Some(&json!({ "code": self.code })));
        assert_eq!(status, 200, "{head}");
        let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        self.cookie = cookie.split(';').next().unwrap().to_owned();
    }

    /// Waits until an item waits at a call, and returns it.
    #[expect(clippy::disallowed_methods, reason = "another process is waited for, whose clock is the system's")]
    fn question(&self, run: &str, call: &str) -> Value {
        let begun = Instant::now();
        loop {
            let (_, _, pending) = self.send("GET", &format!("/pending?run={run}"), None);
            let items = pending["items"].as_array().cloned().unwrap_or_default();
            if let Some(item) = items.into_iter().find(|item| item["call"] == call) {
                return item;
            }
            assert!(begun.elapsed() < PATIENCE, "{}", self.send("GET", &format!("/runs/{run}"), None).2);
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn decide(&self, run: &str, item: &Value, decision: &Value) -> Value {
        let path = format!("/runs/{run}/calls/{}/decision", item["id"].as_str().unwrap());
        let (status, _, answer) = self.send("POST", &path, Some(decision));
        assert_eq!(status, 200, "{answer}");
        answer
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "another process is waited for, whose clock is the system's")]
fn new_user_handles_a_support_case_in_the_browser_and_finds_the_decision_in_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("runs.db");
    let mut served = Served::start(&store);
    served.log_in();

    let (status, _, started) = served.send("POST", "/runs", Some(&json!({ "brain": "Support" })));
    assert_eq!(status, 201, "{started}");
    let run = started["id"].as_str().unwrap().to_owned();
    let asked = served.question(&run, "Chat/1.0");
    assert_eq!(asked["kind"], "answer");
    served.decide(&run, &asked, &json!({ "reply": { "text": "It does, the tank has a crack." }, "wait": 0 }));
    let refund = served.question(&run, "Chat/3.0");
    assert_eq!((&refund["kind"], &refund["tool"]), (&json!("approval"), &json!("refund")));
    let decided = served.decide(&run, &refund, &json!({ "approve": true }));
    assert_eq!(decided["decision"]["by"], "ann");
    served.question(&run, "Survey/Ask/0.0");

    // Sessions and waits outlive a restart.
    let (cookie, address) = (served.cookie.clone(), served.address.clone());
    drop(served);
    let mut served = Served::listen(&store, &address);
    served.cookie = cookie;
    let survey = served.question(&run, "Survey/Ask/0.0");
    served.decide(&run, &survey, &json!({ "reply": { "text": "5, that was quick!" }, "wait": 0 }));
    let begun = Instant::now();
    while served.send("GET", &format!("/runs/{run}"), None).2["status"] != "completed" {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(50));
    }

    let shown = positronic(&store).args(["events", &run]).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    let decided = shown.lines().find(|line| line.contains("LOOP_APPROVAL_DECIDED"));
    assert!(decided.is_some_and(|line| line.contains("Chat/3.0  approved by ann")), "{shown}");
}

#[cfg(unix)]
#[test]
fn interrupt_ends_streams_and_releases_the_runs() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("runs.db");
    let mut served = Served::start(&store);
    served.log_in();
    let (_, _, started) = served.send("POST", "/runs", Some(&json!({ "brain": "Support" })));
    let run = started["id"].as_str().unwrap().to_owned();
    served.question(&run, "Chat/1.0");
    let mut stream = TcpStream::connect(&served.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = format!(
        "GET /api/v1/runs/{run}/events HTTP/1.1\r\nHost: {}\r\nCookie: {}\r\nAccept: text/event-stream\r\n\r\n",
        served.address, served.cookie
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut seen = String::new();
    let mut piece = [0; 1024];
    while !seen.contains("event: LOOP_WAIT") {
        let size = stream.read(&mut piece).unwrap();
        assert!(size > 0, "{seen}");
        seen.push_str(&String::from_utf8_lossy(&piece[..size]));
    }
    assert!(seen.starts_with("HTTP/1.1 200 OK"), "{seen}");

    let pid = rustix::process::Pid::from_child(&served.process);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();

    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert!(!seen.contains("event: end") && !rest.contains("event: end"), "{rest}");
    assert!(served.process.wait().unwrap().success());
    let rows = positronic(&store).args(["runs", "--json"]).output().unwrap();
    let row: Value = serde_json::from_slice(&rows.stdout).unwrap();
    assert_eq!(row["claim"]["released"], true, "{row}");
}

#[test]
fn address_of_other_machines_needs_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("runs.db");
    let serve = || {
        let refused = positronic(&store).args(["serve", "--listen", "0.0.0.0:0", "--no-work"]).output().unwrap();
        assert_eq!(refused.status.code(), Some(2));
        String::from_utf8(refused.stderr).unwrap()
    };

    let message = serve();

    assert!(message.contains("the store has no valid access tokens"), "{message}");
    assert!(message.contains("token create NAME"), "{message}");
    let create = |expires: &[&str]| {
        let created = positronic(&store).args(["token", "create", "ann"]).args(expires).output().unwrap();
        assert!(created.status.success(), "{created:?}");
    };
    create(&["--expires", "0s"]);
    assert!(serve().contains("no valid access tokens"), "an expired token does not count");
    create(&[]);
    let mut served = Served::listen(&store, "0.0.0.0:0");
    assert!(served.address.starts_with("127.0.0.1:"), "the printed URL works: {}", served.address);
    served.log_in();
}

#[test]
fn token_is_created_listed_and_revoked() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("runs.db");
    let token = |arguments: &[&str]| {
        let output = positronic(&store).arg("token").args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };

    let (code, created, notice) = token(&["create", "billing", "--scope", "read,run"]);

    assert_eq!(code, Some(0), "{notice}");
    assert!(created.starts_with("pos_") && notice.contains("sees the runs of all users"), "{notice}");
    let id = created.split('_').nth(1).unwrap();
    let (_, listed, _) = token(&["list"]);
    assert!(listed.starts_with(&format!("{id}  billing  read,run  all users")), "{listed}");
    assert!(!listed.contains(created.trim().rsplit('_').next().unwrap()), "{listed}");
    assert_eq!(token(&["revoke", id]).0, Some(0));
    assert_eq!(token(&["revoke", id]).0, Some(2));
    assert_eq!(token(&["create", "x", "--scope", "everything"]).0, Some(2));
}
