//! Commands called without a terminal.

use std::ffi::OsString;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use crate::app::{Project, Settings, Ui};
use crate::start::in_project;

/// A writer that stores its input.
#[derive(Debug, Clone, Default)]
pub(in crate::commands) struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Paper {
    pub(in crate::commands) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

pub(in crate::commands) struct Outcome {
    pub(in crate::commands) code: u8,
    pub(in crate::commands) out: String,
    pub(in crate::commands) err: String,
}

/// Runs a command without a terminal and without an endpoint.
pub(super) fn call(project: &Project, arguments: &[&str]) -> Outcome {
    // Other tests cover the store.
    let memory = (arguments.first() == Some(&"run")).then_some("--memory");
    let arguments: Vec<&str> = arguments.iter().copied().chain(memory).collect();
    call_with(project, &arguments, Settings::default())
}

/// A writer whose reader closes it after some lines, as `head` does.
struct Head(Paper, usize);

impl Write for Head {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.text().lines().count() >= self.1 {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs a command whose outputs are each closed after some lines, and returns its exit code.
pub(in crate::commands) fn call_unread(
    project: &Project,
    arguments: &[&str],
    lines: [usize; 2],
    settings: Settings,
) -> u8 {
    let mut ui = ui(Box::new(Head(Paper::default(), lines[0])), Box::new(Head(Paper::default(), lines[1])), settings);
    in_project(project, &words(arguments), &mut ui)
}

/// A file on a full disk.
pub(in crate::commands) struct Full;

impl Write for Full {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(in crate::commands) fn ui(out: Box<dyn Write + Send>, err: Box<dyn Write + Send>, settings: Settings) -> Ui {
    let settings = Settings { unicode: true, ..settings };
    Ui::new(Box::new(io::empty()), out, err, settings)
}

pub(in crate::commands) fn words(arguments: &[&str]) -> Vec<OsString> {
    std::iter::once("desk").chain(arguments.iter().copied()).map(Into::into).collect()
}

/// Runs a command in an environment.
pub(in crate::commands) fn call_with(project: &Project, arguments: &[&str], settings: Settings) -> Outcome {
    call_given(project, arguments, "", settings)
}

/// Returns writers for stdout and stderr that can be read.
pub(in crate::commands) fn paper_ui(settings: Settings) -> (Ui, Paper, Paper) {
    let (out, err) = (Paper::default(), Paper::default());
    (ui(Box::new(out.clone()), Box::new(err.clone()), settings), out, err)
}

/// Runs a command that reads from its stdin.
pub(in crate::commands) fn call_given(
    project: &Project,
    arguments: &[&str],
    input: &str,
    settings: Settings,
) -> Outcome {
    let (mut ui, out, err) = paper_ui(settings);
    ui.input = Box::new(io::Cursor::new(input.to_owned()));
    let code = in_project(project, &words(arguments), &mut ui);
    Outcome { code, out: out.text(), err: without_times(&err.text()) }
}

/// Replaces the path of a test's folder, also in its relative form, by `desk`.
pub(in crate::commands) fn at_desk(mut outcome: Outcome, folder: &std::path::Path) -> Outcome {
    for text in [&mut outcome.out, &mut outcome.err] {
        for told in [crate::app::relative(folder), folder.display().to_string()] {
            *text = text.replace(&told, "desk");
        }
    }
    outcome
}

/// Replaces what depends on the clock.
pub(in crate::commands) fn without_times(text: &str) -> String {
    let line = |line: &str| match line.split_once(' ') {
        Some((clock, rest)) if clock.len() == 7 && clock.as_bytes()[2] == b':' => format!("00:00.0 {rest}"),
        _ => line.to_owned(),
    };
    let words = |line: String| {
        let mut words: Vec<&str> = line.split(' ').collect();
        for index in 1..words.len() {
            if matches!(words[index].trim_end_matches([',', ':']), "ms" | "s") {
                words[index - 1] = "0";
            }
        }
        for word in &mut words {
            if word
                .strip_suffix('s')
                .is_some_and(|age| !age.is_empty() && age.bytes().all(|byte| byte.is_ascii_digit()))
            {
                *word = "0s";
            }
        }
        words.join(" ")
    };
    text.lines().map(|text| words(line(text)) + "\n").collect()
}
