//! The command on a terminal: questions, and how they disappear.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::process::Child;
use std::sync::mpsc::{Receiver, channel};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::json;

use crate::durable::{Desk, signal, until};

/// A terminal with a running command.
pub(crate) struct Seat {
    pub(crate) child: Child,
    keyboard: File,
    written: Receiver<Vec<u8>>,
    screen: vt100::Parser,
}

impl Seat {
    pub(crate) fn at(desk: &Desk, arguments: &[&str]) -> Self {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
        let side = || OpenOptions::new().read(true).write(true).open(&name).unwrap();
        let (rows, columns) = (40, 100);
        tcsetwinsize(side(), Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let mut command = desk.command(arguments);
        let child = command.env("TERM", "xterm").stdin(side()).stdout(side()).stderr(side()).spawn().unwrap();
        let keyboard = File::from(terminal);
        let (mut display, (sender, written)) = (keyboard.try_clone().unwrap(), channel());
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The process closes the terminal's other side when it ends.
            while let Ok(count @ 1..) = display.read(&mut bytes) {
                if sender.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { child, keyboard, written, screen: vt100::Parser::new(rows, columns, 1000) }
    }

    pub(crate) fn look(&mut self) -> String {
        while let Ok(bytes) = self.written.try_recv() {
            self.screen.process(&bytes);
        }
        self.screen.screen().contents()
    }

    pub(crate) fn sees(&mut self, text: &str) {
        until(|| self.look().contains(text));
    }

    pub(crate) fn types(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for the command's end, and returns its exit code and the last screen.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let mut code = None;
        until(|| {
            // A writer blocks until the output is read.
            self.look();
            code = self.child.try_wait().unwrap();
            code.is_some()
        });
        until(|| match self.written.try_recv() {
            Ok(bytes) => {
                self.screen.process(&bytes);
                false
            }
            Err(error) => error == std::sync::mpsc::TryRecvError::Disconnected,
        });
        (code.unwrap().code(), self.screen.screen().contents())
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        // It keeps its own terminal open, so it would not detect the hang-up.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn asked(desk: &Desk) -> Seat {
    let mut seat = Seat::at(desk, &["run", "release", "--ask", "--id", "v1"]);
    seat.sees("May deploy run?");
    seat
}

#[test]
fn terminated_process_accepts_no_further_approval() {
    for (told, way) in [("-TERM", "the run is unchanged; continue it with: "), ("-HUP", "the run is unchanged")] {
        let desk = Desk::new();
        let mut seat = asked(&desk);

        signal(&seat.child, told);
        until(|| !seat.look().contains("nothing is chosen"));
        // The person may still press a key.
        _ = seat.keyboard.write_all(b"\r");
        let (code, screen) = seat.end();

        assert_eq!(code, Some(143), "{screen}");
        assert!(screen.contains(way), "{screen}");
        for gone in ["May deploy run?", "asks: this reaches", "asks (", "nothing is chosen"] {
            assert!(!screen.contains(gone), "the question is off the screen: {screen}");
        }
        assert_eq!(desk.json(&["inbox"])["pending"]["tool"], json!("deploy"), "no decision was made");
    }
}

#[test]
fn ctrl_c_at_a_question_keeps_it_pending_and_clears_the_menu() {
    for interrupt in [|seat: &mut Seat| seat.types("\u{3}"), |seat: &mut Seat| signal(&seat.child, "-INT")] {
        let desk = Desk::new();
        let mut seat = asked(&desk);

        interrupt(&mut seat);
        let (code, screen) = seat.end();

        assert_eq!(code, Some(3), "{screen}");
        assert!(!screen.contains("May deploy run?"), "{screen}");
        assert!(screen.contains("approve v1 Ship/3.0"), "it shows how to continue: {screen}");
        assert_eq!(desk.json(&["inbox"])["pending"]["tool"], json!("deploy"), "no decision was made");

        let mut seat = Seat::at(&desk, &["work", "v1"]);
        seat.sees("May deploy run?");
        interrupt(&mut seat);
        assert_eq!(seat.end().0, Some(3), "`work` does the same");
    }

    let desk = Desk::new();
    let mut seat = Seat::at(&desk, &["run", "release", "--ask", "--memory"]);
    seat.sees("May deploy run?");
    seat.types("\u{3}");
    assert_eq!(seat.end().0, Some(130), "a run in memory cannot be left");
}

#[test]
fn stray_enter_decides_nothing() {
    let desk = Desk::new();
    let mut seat = asked(&desk);

    seat.types("\r\r");
    // Keys are read in order: the menu has moved, so the earlier Enters were read.
    seat.types("\u{1b}[B");
    seat.sees("> Approve");
    assert_eq!(desk.json(&["inbox"])["pending"]["tool"], json!("deploy"), "no decision was made");
    seat.types("\r");

    assert_eq!(seat.end().0, Some(0));
}

#[test]
fn question_answered_elsewhere_disappears_and_names_the_decider() {
    let desk = Desk::new();
    let seat = asked(&desk);
    desk.expect(&["approve", "v1", "--by", "bob"], 0);
    let (code, screen) = seat.end();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("deploy no longer waits: it was approved by bob at the command line"), "{screen}");
    assert!(!screen.contains("May deploy run?"), "{screen}");

    let desk = Desk::new();
    let seat = asked(&desk);
    desk.expect(&["cancel", "v1", "--by", "bob"], 0);
    let (code, screen) = seat.end();
    assert_eq!(code, Some(4), "{screen}");
    assert!(screen.contains("no longer waits: the run was cancelled by bob at the command line"), "{screen}");
}

#[test]
fn person_selects_and_edits() {
    let desk = Desk::new();
    let mut seat = asked(&desk);
    // Approve with other arguments: Ctrl-U deletes the version, which is then typed again.
    seat.types("\u{1b}[B\u{1b}[B\r");
    seat.sees("version:");
    seat.types("\u{15}2.0.0\r");
    let (code, screen) = seat.end();

    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("\"deployed\": \"2.0.0\""), "{screen}");
}

/// Writes a cassette whose call of `deploy` has arguments of many lines, and returns the path.
fn long_cassette(desk: &Desk, lines: usize) -> String {
    let version = (1..=lines).map(|line| format!("line {line} of {lines}")).collect::<Vec<_>>().join("\n");
    let calls = [
        json!({"name": "run_tests"}),
        json!({"name": "run_tests"}),
        json!({
            "name": "deploy", "arguments": {"version": version}
        }),
    ];
    let calls = calls.map(|call| json!({"at": "Ship", "reply": {"calls": [call]}}).to_string());
    let end = json!({"at": "Ship", "reply": {"calls": [{"name": "announce", "arguments": {"news": "It is out."}}]}});
    let path = desk.0.path().join("long.jsonl");
    let header = r#"{"cassette": 1, "model": "cassette/long"}"#;
    std::fs::write(&path, [header, &calls.join("\n"), &end.to_string()].join("\n")).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn long_approval_is_paged_to_its_end_and_paging_keys_never_approve() {
    let desk = Desk::new();
    let cassette = long_cassette(&desk, 70);
    let mut seat = Seat::at(&desk, &["run", "release", "--ask", "--id", "v1", "--cassette", &cassette]);
    let mut screens = Vec::new();

    // The terminal has 40 rows, and a question with its choices takes twelve of them.
    seat.sees("asks (71 lines, ");
    for (question, choice) in [
        ("43 of 71 rows were not shown yet.", "> Show the next 28 of 71 rows"),
        ("15 of 71 rows were not shown yet.", "> Show the next 15 of 71 rows"),
        ("May deploy run?", "> Show it from the beginning"),
        ("43 of 71 rows were not shown yet.", "> Show the next 28 of 71 rows"),
    ] {
        seat.sees(question);
        seat.types("\u{1b}[B");
        seat.sees(choice);
        screens.push(seat.look());
        seat.types("\r");
    }

    for line in 1..=70 {
        let text = format!("line {line} of 70");
        assert!(screens.iter().any(|screen| screen.contains(&text)), "{text} was never shown");
    }
    assert_eq!(desk.json(&["inbox"])["pending"]["tool"], json!("deploy"), "paging decides nothing");
    seat.sees("15 of 71 rows were not shown yet.");
    seat.types("\u{1b}[B\u{1b}[B");
    seat.sees("> Approve");
    seat.types("\r");
    let (code, screen) = seat.end();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("line 70 of 70"), "{screen}");
}

#[test]
fn long_approval_can_be_rejected_before_its_end() {
    let desk = Desk::new();
    let cassette = long_cassette(&desk, 70);
    let mut seat = Seat::at(&desk, &["run", "release", "--ask", "--id", "v1", "--cassette", &cassette]);
    seat.sees("43 of 71 rows were not shown yet.");

    seat.types("\u{1b}[B\u{1b}[B\u{1b}[B\u{1b}[B\r");
    seat.sees("Why not?");
    seat.types("too long to read\r");
    seat.end();

    let log = desk.expect(&["events", "v1"], 0);
    assert!(log.contains("too long to read"), "{log}");
}
