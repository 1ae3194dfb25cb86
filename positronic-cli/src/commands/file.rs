//! `positronic export` and `import`: a run as one file of JSON lines.
//!
//! The first line is the header, `{"positronic_run": 1, "run": …, "brain": …, "events": …}`; each further line is an
//! event as the log has it. The header says how many there are, so that a file that was cut is told from a whole one.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use positronic_core::machine::RunState;
use positronic_core::record::{Event, RunId, Seq};
use positronic_core::store::StoreError;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::block_on;
use crate::cli::{ExportArgs, ImportArgs};
use crate::display::figures::many;
use crate::display::text::harmless_json;
use crate::failure::{Exit, Failure};
use crate::find::find;
use crate::kept::Kept;
use crate::ui::Ui;

/// The version of the file's format.
const VERSION: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    positronic_run: u32,
    run: RunId,
    brain: String,
    events: u64,
}

pub(crate) fn export(args: &ExportArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let kept = Kept::look(ui)?;
    let (row, log) = block_on(async {
        let row = find(&kept, &args.run, ui).await?;
        let log = kept.control().events(&row.run, Seq(0)).await?;
        Ok::<_, Failure>((row, log))
    })?;
    let events = u64::try_from(log.len()).unwrap_or(u64::MAX);
    let header = Header { positronic_run: VERSION, run: row.run, brain: row.brain.to_string(), events };
    let unreadable = |error: &dyn std::fmt::Display| Failure::store(error);
    let mut text = serde_json::to_string(&header).map_err(|error| unreadable(&error))?;
    for event in &log {
        text.push('\n');
        text.push_str(&event.to_json().map_err(|error| unreadable(&error))?);
    }
    text.push('\n');
    let Some(file) = &args.file else {
        write!(ui.out, "{}", harmless_json(&text))?;
        return Ok(Exit::Done);
    };
    fs::write(file, text).map_err(|source| Failure::File { path: file.clone(), doing: "cannot be written", source })?;
    told(&header, args.json, &format!("wrote the run {} to {}", header.run, file.display()), ui)
}

pub(crate) fn import(args: &ImportArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let file = &args.file;
    let bytes =
        fs::read(file).map_err(|source| Failure::File { path: file.clone(), doing: "cannot be read", source })?;
    let (header, log) = read(file, &bytes)?;
    let kept = Kept::open(ui)?;
    block_on(async {
        kept.control().import(&header.run, &log).await.map_err(|error| match error {
            StoreError::Conflict { .. } => Failure::Refused {
                message: format!("{} has the run {} already", kept.place, header.run),
                hints: vec![format!("`{}` shows it", ui.command(&["show", header.run.as_str()]))],
            },
            other => other.into(),
        })
    })?;
    told(&header, args.json, &format!("took in the run {} of {}", header.run, header.brain), ui)
}

fn told(header: &Header, json: bool, done: &str, ui: &mut Ui) -> Result<Exit, Failure> {
    if json {
        ui.json_line(&json!({"run": header.run, "brain": header.brain, "events": header.events}))?;
    } else {
        ui.tell(&format!("{done}, {}", many(header.events, "event")))?;
    }
    Ok(Exit::Done)
}

/// Reads a file, and folds what it holds, so that the line that is wrong can be named.
fn read(file: &Path, bytes: &[u8]) -> Result<(Header, Vec<Arc<Event>>), Failure> {
    let broken = |line: usize, reason: String| Failure::Import { path: file.to_owned(), line, reason };
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = bytes.iter().take(error.valid_up_to()).filter(|byte| **byte == b'\n').count() + 1;
        broken(line, "it is no text".to_owned())
    })?;
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let (_, first) = lines.next().ok_or_else(|| broken(1, "the file is empty".to_owned()))?;
    let header: Header = serde_json::from_str(first)
        .map_err(|error| broken(1, format!("it is no header of an exported run: {error}")))?;
    if header.positronic_run > VERSION {
        let version = header.positronic_run;
        return Err(broken(1, format!("a newer release wrote it (format {version}); this one reads format {VERSION}")));
    }
    let (mut state, mut log, mut last) = (RunState::default(), Vec::new(), 1);
    for (index, line) in lines {
        last = index + 1;
        let event = Event::from_json(line).map_err(|error| broken(last, error.to_string()))?;
        state.apply(&event).map_err(|error| broken(last, error.to_string()))?;
        log.push(Arc::new(event));
    }
    if u64::try_from(log.len()).ok() != Some(header.events) {
        let reason = format!("the file ends after {} of {}", log.len(), many(header.events, "event"));
        return Err(broken(last, reason));
    }
    Ok((header, log))
}
