//! The files of a run.

use std::collections::HashMap;

use serde::Serialize;

use crate::record::{Event, EventKind, FileOutput, Path, SideOutput, Timestamp};

/// A file that a tool of a run created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunFile {
    /// The call that created it.
    pub call: Path,
    /// The tool.
    pub tool: String,
    /// When it was recorded.
    pub at: Timestamp,
    /// The file.
    pub file: FileOutput,
}

/// Lists the files that the events of a run record, in order.
pub fn files<'a>(events: impl IntoIterator<Item = &'a Event>) -> Vec<RunFile> {
    let mut tools: HashMap<&Path, &str> = HashMap::new();
    let mut files = Vec::new();
    for event in events {
        match &event.kind {
            EventKind::LoopToolCall(call) => {
                tools.insert(&event.path, &call.tool);
            }
            EventKind::LoopOutput { output: SideOutput::File(file), .. } => files.push(RunFile {
                call: event.path.clone(),
                tool: tools.get(&event.path).copied().unwrap_or_default().to_owned(),
                at: event.at,
                file: file.clone(),
            }),
            _ => {}
        }
    }
    files
}
