//! SIGTERM to processes that wait for a model's answer.

use std::io::Read as _;
use std::net::TcpListener;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::durable::{Desk, signal, until};

/// Maximum time between SIGTERM and the exit: the grace period of eight seconds, plus time for a loaded machine.
const LONGEST: Duration = Duration::from_secs(20);

/// Starts an endpoint that reads requests and never answers. It reports each request.
fn silent_endpoint() -> (String, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let (sender, requests) = channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let sender = sender.clone();
            std::thread::spawn(move || {
                let mut bytes = [0; 4096];
                if matches!(stream.read(&mut bytes), Ok(1..)) {
                    _ = sender.send(());
                }
                while let Ok(1..) = stream.read(&mut bytes) {}
            });
        }
    });
    (address, requests)
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the end of another process is timed, whose clock is the system's")]
fn term_during_a_slow_answer_ends_run_chat_and_work_within_the_grace() {
    let (address, requests) = silent_endpoint();
    let command = |desk: &Desk, arguments: &[&str]| {
        let mut command = desk.command(&[arguments, &["--model", "m"]].concat());
        command.env("OPENAI_BASE_URL", &address).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let started = |desk: &Desk, arguments: &[&str]| {
        let input = desk.0.path().join("said");
        std::fs::write(&input, "What can I cook tonight?\n").unwrap();
        let child = command(desk, arguments).stdin(std::fs::File::open(input).unwrap()).spawn().unwrap();
        requests.recv_timeout(Duration::from_secs(30)).unwrap();
        child
    };
    let desks = [Desk::new(), Desk::new(), Desk::new()];
    let [run, chat, work] = &desks;
    // `work` continues a run whose process was killed during its request.
    let mut killed = started(work, &["run", "minimal", "--id", "c-0"]);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let children = [
        started(run, &["run", "minimal", "--id", "c-0"]),
        started(chat, &["chat", "kitchen", "-c", "c"]),
        started(work, &["work"]),
    ];

    let told = Instant::now();
    for child in &children {
        signal(child, "-TERM");
    }

    for ((mut child, desk), code) in children.into_iter().zip(&desks).zip([143, 143, 0]) {
        let mut ended = None;
        until(|| {
            ended = child.try_wait().unwrap();
            ended.is_some()
        });
        assert!(told.elapsed() < LONGEST, "it lived for {:?} after TERM", told.elapsed());
        assert_eq!(ended.unwrap().code(), Some(code));
        let log = desk.expect(&["events", "c-0", "--json"], 0);
        assert!(!log.contains("BRAIN_CANCELLED"), "{log}");
        assert!(log.lines().next_back().unwrap().contains("RUN_RELEASED"), "{log}");
    }
}
