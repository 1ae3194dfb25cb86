//! Runs that two commands continue at the same time.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use positronic_core::prelude::*;
use serde_json::Value;
use tokio::sync::Notify;

use super::Desk;
use crate::app::Project;
use crate::commands::tests::{Paper, project, ui, words};
use crate::start::in_project;

/// The limit of a wait for the other command.
const LIMIT: Duration = Duration::from_secs(60);

const CASSETTE: &str = r#"{"cassette": 1, "note": "written by hand"}
{"at": "Desk", "reply": {"calls": [{"name": "look", "arguments": {}}]}}
{"at": "Desk", "reply": {"calls": [{"name": "note", "arguments": {}}]}}
{"at": "Desk", "reply": {"text": "All is well."}}
{"after": "Desk/1.0", "signal": {"type": "approve", "call": "Desk/1.0"}}
"#;

/// A brain whose tool `look` says that it runs, and waits for `go_on`.
fn looks(running: Sender<()>, go_on: Arc<Notify>) -> Project {
    let looks = brain("Looks")
        .state(0_u32)
        .r#loop("Desk", move |cx| {
            let (running, go_on) = (running.clone(), Arc::clone(&go_on));
            cx.system("You look, then you note.")
                .input("Look.")
                .tool("look", |t| {
                    t.execute(move |_: NoArgs, _| {
                        let (running, go_on) = (running.clone(), Arc::clone(&go_on));
                        async move {
                            running.send(()).ok();
                            tokio::time::timeout(LIMIT, go_on.notified()).await?;
                            Ok("seen")
                        }
                    })
                })
                .tool("note", |t| {
                    t.requires_approval("to note it")
                        .execute(async |_: NoArgs, cx| Ok(cx.result("noted").update(|notes| *notes += 1)))
                })
        })
        .build();
    Project::new().brain(looks).cassette("Looks", CASSETTE)
}

/// A writer that notifies once it has got a text.
struct Notifies(Paper, &'static str, Arc<Notify>);

impl Write for Notifies {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.0.write(bytes)?;
        if self.0.text().contains(self.1) {
            self.2.notify_one();
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn run_that_is_taken_over_continues_the_cassette_where_the_run_is() {
    let desk = Desk::new();
    let (sender, running) = channel();
    let go_on = Arc::new(Notify::new());

    let (left, (code, out, err)) = thread::scope(|scope| {
        let first = scope.spawn(|| {
            let project = looks(sender, Arc::clone(&go_on));
            desk.call(&project, &["run", "looks", "--id", "one", "--ask"])
        });
        running.recv_timeout(LIMIT).unwrap();
        let (out, err) = (Paper::default(), Paper::default());
        let attached = Notifies(err.clone(), "run one", Arc::clone(&go_on));
        let mut ui = ui(Box::new(out.clone()), Box::new(attached), desk.settings());
        let project = looks(channel().0, Arc::default());
        let code = in_project(&project, &words(&["run", "looks", "--id", "one"]), &mut ui);
        (first.join().unwrap(), (code, out.text(), err.text()))
    });

    assert!([0, 3].contains(&left.code), "{}", left.err);
    assert_eq!((code, out.as_str()), (0, "1\n"), "{err}");
    assert!(!err.contains("were not used") && !err.contains("nothing waited for"), "{err}");
}

#[test]
fn commands_that_answer_for_people_at_the_same_time_all_end_with_the_run() {
    let desk = Desk::new();
    for id in ["one", "two", "three", "four"] {
        let run = || desk.call(&project(), &["run", "help desk", "-o", "customer=ada", "--id", id]);
        let ended = thread::scope(|scope| [scope.spawn(run), scope.spawn(run)].map(|run| run.join().unwrap()));
        for outcome in ended {
            assert_eq!(outcome.code, 0, "{}", outcome.err);
            let result: Value = serde_json::from_str(&outcome.out).unwrap();
            assert_eq!(result["refunds"], serde_json::json!([60]), "{}", outcome.err);
        }
    }
}

#[test]
fn answer_of_a_cassette_that_does_not_fit_leaves_the_run_waiting() {
    let desk = Desk::new();
    let cassette = CASSETTE.replace(r#""call": "Desk/1.0"}"#, r#""call": "Desk/1.0", "arguments": 5}"#);
    let file = desk.path("cassette.jsonl");
    std::fs::write(&file, cassette).unwrap();
    let go_on = Arc::new(Notify::new());
    go_on.notify_one();

    let project = looks(channel().0, go_on);
    let outcome = desk.call(&project, &["run", "looks", "--id", "one", "--cassette", &file]);

    assert_eq!(outcome.code, 3, "{}", outcome.err);
}
