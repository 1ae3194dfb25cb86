//! The files of a run.

use std::collections::HashMap;

use serde::Serialize;

use crate::record::{Event, EventKind, FileRef, Part, Path, SideOutput, Timestamp};

/// A file of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunFile {
    /// The call, the answer, or the loop with the message.
    pub path: Path,
    /// Its origin.
    pub origin: FileOrigin,
    /// When it was recorded.
    pub at: Timestamp,
    /// The file.
    pub file: FileRef,
}

/// Where a file of a run comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum FileOrigin {
    /// A call made or loaded it.
    Tool {
        /// The tool.
        tool: String,
    },
    /// A model made it.
    Model,
    /// It came with a message.
    Message,
}

/// Lists the files that the events of a run record, in order.
pub fn files<'a>(events: impl IntoIterator<Item = &'a Event>) -> Vec<RunFile> {
    let mut tools: HashMap<&Path, &str> = HashMap::new();
    let mut files = Vec::new();
    let mut add = |event: &Event, origin: FileOrigin, file: &FileRef| {
        files.push(RunFile { path: event.path.clone(), origin, at: event.at, file: file.clone() });
    };
    for event in events {
        match &event.kind {
            EventKind::LoopToolCall(call) => {
                tools.insert(&event.path, &call.tool);
            }
            EventKind::LoopOutput { output: SideOutput::File(output), .. } => {
                let tool = tools.get(&event.path).copied().unwrap_or_default().to_owned();
                add(event, FileOrigin::Tool { tool }, &output.file);
            }
            EventKind::LoopModelResult { parts, .. } => {
                for part in &**parts {
                    if let Part::File { file, .. } = part {
                        add(event, FileOrigin::Model, file.file());
                    }
                }
            }
            EventKind::LoopStart { files, .. } | EventKind::LoopMessage { files, .. } => {
                files.iter().for_each(|file| add(event, FileOrigin::Message, file));
            }
            EventKind::LoopModelCall { question: Some(question), .. } => {
                question.files.iter().for_each(|file| add(event, FileOrigin::Message, file));
            }
            _ => {}
        }
    }
    files
}
