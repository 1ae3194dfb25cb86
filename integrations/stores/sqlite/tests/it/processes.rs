//! Two processes on one file.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Weak};
use std::time::Duration;

use positronic_core::record::{RunId, Seq};
use positronic_core::store::prelude::*;
use positronic_core::store::{StoreError, Watcher};
use positronic_store_suite::Sample;

use super::{beside, lines, quick};

/// Path of the file for the other process.
const FILE: &str = "POSITRONIC_TEST_FILE";

/// This test program as another process: it executes its input line by line, and answers each with a line.
struct Other {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Other {
    fn start(path: &std::path::Path, limit: Option<&str>) -> Self {
        let program = std::env::current_exe().unwrap();
        let mut command = match limit {
            None => Command::new(program),
            Some(limit) => {
                let mut shell = Command::new("sh");
                // A write beyond the limit fails instead of killing the process.
                shell.arg("-c").arg(format!("trap '' XFSZ; ulimit -f {limit}; exec \"$0\" \"$@\"")).arg(program);
                shell
            }
        };
        command.args(["--exact", "processes::other_process", "--ignored", "--nocapture", "--test-threads=1"]);
        let mut child = command.env(FILE, path).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self { child, answers }
    }

    fn does(&mut self, what: &str) -> String {
        writeln!(self.child.stdin.as_mut().unwrap(), "{what}").unwrap();
        loop {
            let mut line = String::new();
            assert_ne!(self.answers.read_line(&mut line).unwrap(), 0, "the other process has ended");
            if let Some((_, answer)) = line.trim().split_once("answer: ") {
                return answer.to_owned();
            }
        }
    }

    fn dies(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

#[tokio::test]
#[ignore = "the other process of these tests"]
async fn other_process() {
    let Some(path) = std::env::var_os(FILE).map(PathBuf::from) else { return };
    let store = quick(&path);
    let mut sample = Sample::new("run-1");
    let mut leases = Vec::new();
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let (verb, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let answer = match verb {
            "hold" => {
                let owner = store.acquire_lease().await.unwrap();
                let id = owner.owner().to_owned();
                leases.push(owner);
                id
            }
            "append" => {
                let mut next = sample.clone().says(rest);
                match next.append(&store).await {
                    Ok(()) => {
                        sample = next;
                        "appended".to_owned()
                    }
                    Err(StoreError::Conflict { next }) => {
                        sample.append.expected = next;
                        "conflict".to_owned()
                    }
                    Err(error) => error.to_string(),
                }
            }
            "fill" => loop {
                let mut next = sample.clone().says(&"text ".repeat(10_000));
                match next.append(&store).await {
                    Ok(()) => sample = next,
                    Err(error) => break error.to_string(),
                }
            },
            "count" => lines(&store, &sample.run).await.len().to_string(),
            _ => panic!("`{line}` is nothing to do"),
        };
        println!("answer: {answer}");
    }
}

#[tokio::test]
async fn killed_worker_is_dead_at_once_and_its_appends_stay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let store = quick(&path);
    let mut other = Other::start(&path, None);
    let id = other.does("hold");
    assert!(id.starts_with(&format!("{}-", other.child.id())), "{id}");
    assert_eq!(store.is_lease_live(&id).await, Ok(true));
    assert_eq!(other.does("append one"), "appended");
    assert_eq!(other.does("append two"), "appended");

    other.dies();

    assert_eq!(store.is_lease_live(&id).await, Ok(false));
    assert_eq!(lines(&store, &RunId::from("run-1")).await.len(), 2);
    let file = beside(&path.canonicalize().unwrap(), "-workers").join(&id);
    assert!(file.exists());
    let _holder = store.acquire_lease().await.unwrap();
    assert!(!file.exists(), "the next process cleans up");
}

struct Bell(std::sync::mpsc::Sender<Seq>);

impl Watcher for Bell {
    fn appended(&self, _: &RunId, next: Seq) {
        _ = self.0.send(next);
    }
}

#[tokio::test]
async fn appends_of_another_process_are_noticed_within_a_second() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let store = quick(&path);
    let (sender, told) = std::sync::mpsc::channel();
    let bell: Arc<dyn Watcher> = Arc::new(Bell(sender));
    store.watch(Some(&RunId::from("run-1")), Arc::downgrade(&bell) as Weak<dyn Watcher>);
    let mut other = Other::start(&path, None);

    for next in 1..=5 {
        assert_eq!(other.does("append something"), "appended");
        assert_eq!(told.recv_timeout(Duration::from_secs(1)), Ok(Seq(next)));
    }
}

#[tokio::test]
async fn one_of_two_processes_racing_for_a_number_wins() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let store = quick(&path);
    let mut other = Other::start(&path, None);
    let mut own = Sample::new("run-1");
    let mut won = [0_usize; 2];
    while won[0] + won[1] < 100 {
        let mut next = own.clone().says("own");
        let racer = tokio::task::spawn_blocking(move || {
            let answer = other.does("append other");
            (other, answer)
        });
        let result = next.append(&store).await;
        let (back, answer) = racer.await.unwrap();
        other = back;
        match result {
            Ok(()) => {
                own = next;
                won[0] += 1;
            }
            Err(StoreError::Conflict { next }) => own.append.expected = next,
            Err(error) => panic!("{error}"),
        }
        assert!(["appended", "conflict"].contains(&answer.as_str()), "{answer}");
        won[1] += usize::from(answer == "appended");
    }
    assert_eq!(lines(&store, &own.run).await.len(), won[0] + won[1]);
}

/// A file size limit stands for a full disk.
#[cfg(unix)]
#[tokio::test]
async fn full_disk_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let store = quick(&path);
    // In blocks of 512 bytes.
    let mut other = Other::start(&path, Some("2000"));

    let sentence = other.does("fill");

    assert!(sentence.contains(&path.display().to_string()) && sentence.contains("nothing was written"), "{sentence}");
    let count: usize = other.does("count").parse().unwrap();
    assert!(count > 3, "{count} events");
    assert_eq!(lines(&store, &RunId::from("run-1")).await.len(), count);
    other.dies();
    assert_eq!(lines(&store, &RunId::from("run-1")).await.len(), count);
    let mut run = Sample::new("run-1");
    run.append.expected = Seq(count as u64);
    _ = run.says("with room again").appended(&store).await;
}
