//! A file that records the effects of tools, as a system outside all workers would.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path as FilePath, PathBuf};
use std::time::Duration;

use positronic_core::record::{Path, RunId};
use serde::{Deserialize, Serialize};

/// The ledger of a test, which all processes append to.
#[derive(Debug, Clone)]
pub(crate) struct Ledger(PathBuf);

/// What happened to an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum What {
    Begin,
    End,
    /// The worker stopped the tool.
    Abort,
}

/// A line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) process: u32,
    pub(crate) run: RunId,
    pub(crate) call: Path,
    pub(crate) what: What,
}

/// An effect that has begun.
pub(crate) struct Open {
    ledger: Ledger,
    run: RunId,
    call: Path,
    ended: bool,
}

impl Ledger {
    pub(crate) fn new(folder: &FilePath) -> Self {
        Self(folder.to_owned())
    }

    /// Records the beginning of an effect.
    pub(crate) fn begin(&self, run: &RunId, call: &Path) -> Open {
        let open = Open { ledger: self.clone(), run: run.clone(), call: call.clone(), ended: false };
        open.write(What::Begin);
        open
    }

    /// Lists all entries, in order.
    pub(crate) fn all(&self) -> Vec<Entry> {
        let text = fs::read_to_string(self.0.join("ledger")).unwrap_or_default();
        // The last line may be incomplete.
        let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Lists the entries of a call, in order.
    pub(crate) fn of(&self, run: &RunId, call: &str) -> Vec<Entry> {
        self.all().into_iter().filter(|entry| entry.run == *run && entry.call.as_str() == call).collect()
    }

    /// Keeps all tools in the middle of their work, or lets them go on.
    pub(crate) fn hold(&self, holds: bool) {
        let file = self.0.join("hold");
        if holds { File::create(file).map(drop).unwrap() } else { fs::remove_file(file).unwrap() }
    }

    /// Waits while tools are held.
    pub(crate) async fn held(&self) {
        while self.0.join("hold").exists() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Open {
    fn write(&self, what: What) {
        let entry = Entry { process: std::process::id(), run: self.run.clone(), call: self.call.clone(), what };
        let mut line = serde_json::to_string(&entry).unwrap();
        line.push('\n');
        let mut file = File::options().create(true).append(true).open(self.ledger.0.join("ledger")).unwrap();
        file.write_all(line.as_bytes()).unwrap();
        file.sync_data().unwrap();
    }

    /// Records that the effect has happened.
    pub(crate) fn end(mut self) {
        self.ended = true;
        self.write(What::End);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if !self.ended {
            self.write(What::Abort);
        }
    }
}
