//! A temporary folder, and a brain with one loop of tools.

use positronic_core::dsl::State;
use positronic_core::prelude::*;
use positronic_core::record::{FileRef, OutputKind, Pending, PendingKind};
use positronic_core::runner::RunHandle;
use positronic_core::testing::Story;
use positronic_toolbox::{FolderOptions, OutputFolder};
use tempfile::TempDir;

use crate::support::prompt;

/// An output folder `out`, next to a file that must stay unreadable from inside.
pub(crate) struct Place {
    pub(crate) outside: TempDir,
    pub(crate) folder: OutputFolder,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self::with(FolderOptions::default())
    }

    pub(crate) fn with(options: FolderOptions) -> Self {
        let outside = TempDir::new().unwrap();
        std::fs::write(outside.path().join("secret.txt"), "the secret").unwrap();
        let folder = OutputFolder::with(outside.path().join("out"), options).unwrap();
        Self { outside, folder }
    }

    /// Returns the path of the file outside.
    pub(crate) fn secret(&self) -> String {
        self.outside.path().join("secret.txt").display().to_string()
    }

    /// Lists the files in the folder.
    pub(crate) fn files(&self) -> Vec<String> {
        self.folder.list(None).unwrap().into_iter().map(|entry| entry.path).collect()
    }
}

/// Builds a brain whose loop `Work` has these tools.
pub(crate) fn desk<S: State + Default>(tools: impl Fn() -> Vec<Tool<(), S>> + Send + Sync + 'static) -> Brain<(), S> {
    brain("Desk").state(S::default()).r#loop("Work", move |cx| cx.system("Work.").tools(tools())).build()
}

/// Returns the files that the loop `Work` has shown.
pub(crate) fn shown_files(story: &Story) -> Vec<FileRef> {
    let outputs = prompt(story, "Work").output.into_iter();
    let files = outputs.filter_map(|output| match output.kind {
        OutputKind::File(output) => Some(output.file),
        _ => None,
    });
    files.collect()
}

/// Returns the reasons of all approvals.
pub(crate) fn reasons<R>(run: &RunHandle<R>) -> Vec<String> {
    let reason = |pending: Pending| match pending.kind {
        PendingKind::Approval { gate, .. } => gate.reason,
        PendingKind::Answer { .. } | PendingKind::Budget(_) => panic!("{} waits for something else", pending.call),
    };
    run.pending().into_iter().map(reason).collect()
}
