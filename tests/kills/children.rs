//! Two child processes of this test program that receive the same commands at once.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path as File;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::FOLDER;

/// Two processes that answer each line with one line.
pub(crate) struct Children([Other; 2]);

struct Other {
    child: Child,
    told: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Children {
    /// Starts the ignored test `test` twice over a folder, and waits until both processes are ready.
    pub(crate) fn start(test: &str, folder: &File) -> Self {
        Self([Other::start(test, folder), Other::start(test, folder)])
    }

    /// Sends a line to both and returns their answers.
    pub(crate) fn answer(&mut self, line: &str) -> [String; 2] {
        for other in &mut self.0 {
            writeln!(other.told, "{line}").unwrap();
        }
        self.0.each_mut().map(Other::answer)
    }
}

impl Other {
    fn start(test: &str, folder: &File) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"]);
        command.env(FOLDER, folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (told, answers) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut other = Self { child, told, answers };
        assert_eq!(other.answer(), "ready");
        other
    }

    fn answer(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.answers.read_line(&mut line).unwrap(), 0, "the other process has ended");
            if let Some((_, answer)) = line.trim().split_once("answer ") {
                return answer.to_owned();
            }
        }
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
