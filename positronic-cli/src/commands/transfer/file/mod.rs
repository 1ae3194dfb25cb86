//! `positronic export`, `import` and `inspect`: a run as one file of JSON lines.
//!
//! The first line is the header, `{"positronic_run": 1, "run": …, "brain": …, "events": …}`; each further line is an
//! event of the log. The run's files follow, one `{"blob": <sha256>, "bytes": <base64>}` per line. The header has the
//! numbers of both, so that a truncated file is detected.

#[cfg(feature = "serve")]
mod inspect;

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use positronic_core::machine::RunState;
use positronic_core::projection::files;
use positronic_core::record::{Event, EventError, FileRef, RunId, Seq, sha256};
use positronic_core::runner::Client;
use positronic_core::store::StoreError;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::app::{Failure, ProjectStore, Ui, open_run, output_path, write_file};
use crate::cli::{Exit, ExportArgs, ImportArgs, check_name, no_json};
use crate::render::figures::many;
use crate::render::{escaped_json, shorten};

#[cfg(feature = "serve")]
pub(crate) use inspect::inspect;

/// The version of the file's format.
const FORMAT: u32 = 1;

/// The length that no header reaches, in bytes.
const MAX_HEADER: u64 = 1 << 20;

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    positronic_run: u32,
    run: RunId,
    brain: String,
    events: usize,
    #[serde(default, skip_serializing_if = "is_none")]
    blobs: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
const fn is_none(count: &usize) -> bool {
    *count == 0
}

/// The bytes of a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Blob {
    blob: String,
    bytes: String,
}

/// The content of an exported run.
pub(super) struct Exported {
    header: Header,
    log: Vec<Arc<Event>>,
    blobs: Vec<Vec<u8>>,
}

#[cfg(feature = "serve")]
impl Exported {
    pub(super) const fn run(&self) -> &RunId {
        &self.header.run
    }
}

pub(crate) async fn export(args: &ExportArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let output_path = output_path(args.file.as_deref(), args.force)?;
    let (client, row) = open_run(&args.run, ui).await?;
    let log = client.events(&row.run, Seq(0)).await?;
    let (blobs, left_out) = blobs(&client, &log).await?;
    let (run, brain) = (row.run, row.brain.to_string());
    let header = Header { positronic_run: FORMAT, run, brain, events: log.len(), blobs: blobs.len() };
    let mut text = serde_json::to_string(&header).map_err(Failure::environment)?;
    for event in &log {
        text.push('\n');
        text.push_str(&event.to_json().map_err(Failure::environment)?);
    }
    for (sha256, bytes) in &blobs {
        let blob = Blob { blob: sha256.clone(), bytes: BASE64.encode(bytes) };
        text.push('\n');
        text.push_str(&serde_json::to_string(&blob).map_err(Failure::environment)?);
    }
    text.push('\n');
    for reason in left_out {
        ui.notice(&format!("skipped a file: {reason}"))?;
    }
    let Some(file) = output_path else {
        write!(ui.out, "{}", escaped_json(&text))?;
        return Ok(Exit::Done);
    };
    write_file(file, &text)?;
    report(&header, args.json, &format!("wrote the run {} to {}", header.run, file.display()), ui)
}

pub(crate) async fn import(args: &ImportArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let exported = read_exported(&args.file, ui)?;
    let header = &exported.header;
    let store = ProjectStore::open(ui).await?;
    add(&exported, &store).await.map_err(|error| match error {
        StoreError::Conflict { .. } => {
            Failure::refused(format!("{} already has the run {}", store.location, header.run))
                .hint(format!("`{}` shows it", ui.command(&["show", header.run.as_str()])))
        }
        StoreError::NoRunBefore { .. } => Failure::refused(error),
        other => other.into(),
    })?;
    report(header, args.json, &format!("imported the run {} of {}", header.run, header.brain), ui)
}

/// Reads and checks an exported run; `-` reads stdin.
pub(super) fn read_exported(file: &Path, ui: &mut Ui) -> Result<Exported, Failure> {
    let (file, bytes) = match file.as_os_str() == "-" {
        true => (Path::new("stdin"), read_bytes(&mut ui.input)),
        false => (file, File::open(file).and_then(read_bytes)),
    };
    read(file, &bytes.map_err(Failure::file(file, "cannot read"))?)
}

/// Adds an exported run to a store: its files first, so that no stored run references missing ones.
pub(super) async fn add(exported: &Exported, store: &ProjectStore) -> Result<(), StoreError> {
    for bytes in &exported.blobs {
        store.client().put_blob(bytes.clone()).await?;
    }
    store.client().import(&exported.header.run, &exported.log).await.map(drop)
}

/// Reads a file whose first line ends: an endless device is not read on.
fn read_bytes(input: impl Read) -> io::Result<Vec<u8>> {
    let (mut input, mut bytes) = (BufReader::new(input), Vec::new());
    input.by_ref().take(MAX_HEADER).read_until(b'\n', &mut bytes)?;
    if bytes.len() as u64 == MAX_HEADER {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "its first line is longer than a header can be"));
    }
    input.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads the bytes of all files that a log refers to, without duplicates, and lists why some cannot be read.
async fn blobs(client: &Client, log: &[Arc<Event>]) -> Result<(Vec<(String, Vec<u8>)>, Vec<String>), Failure> {
    let (mut blobs, mut left_out, mut known) = (Vec::new(), Vec::new(), HashSet::new());
    let listed = files(log.iter().map(|event| &**event));
    for event in log {
        for sha256 in references(&event.to_json().map_err(Failure::environment)?) {
            if !known.insert(sha256.clone()) {
                continue;
            }
            let name = listed.iter().find(|file| file.file.blob() == Some(&*sha256)).map(|file| &*file.file.name);
            match client.blob(&sha256).await {
                Ok(Some(bytes)) => blobs.push((sha256, bytes)),
                // A text that only looks like a reference has no bytes.
                Ok(None) => left_out.extend(name.map(|name| format!("the bytes of `{name}` are not in the store"))),
                Err(error @ StoreError::Damaged { .. }) => {
                    left_out.push(format!("`{}`: {error}", name.unwrap_or(&sha256)));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok((blobs, left_out))
}

/// Finds the hashes of stored files in the JSON of an event: of its files, and of those that a state or a message contains.
fn references(json: &str) -> impl Iterator<Item = String> {
    const URI: usize = "blob:".len() + 64;
    let uris = json.match_indices("blob:").filter_map(|(at, _)| json.get(at..at + URI));
    uris.filter_map(|uri| FileRef::url(uri, "").blob().map(str::to_owned))
}

fn report(header: &Header, json: bool, done: &str, ui: &mut Ui) -> Result<Exit, Failure> {
    if json {
        let Header { run, brain, events, blobs, .. } = header;
        ui.json_line(&json!({"run": run, "brain": brain, "events": events, "files": blobs}))?;
    } else {
        let files = if header.blobs > 0 { format!(", {}", many(header.blobs, "file")) } else { String::new() };
        ui.print(&format!("{done}, {}{files}", many(header.events, "event")))?;
    }
    Ok(Exit::Done)
}

/// Reads an exported run, and folds its events, so that an error can name the invalid line.
fn read(file: &Path, bytes: &[u8]) -> Result<Exported, Failure> {
    let broken = |line: usize, reason: String| {
        Failure::environment(format!("{}, line {line}: {reason}", file.display()))
            .hint("nothing was imported; export the run again, and copy the complete file")
    };
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = bytes.iter().take(error.valid_up_to()).filter(|byte| **byte == b'\n').count() + 1;
        broken(line, "invalid UTF-8".to_owned())
    })?;
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let (_, first) = lines.next().ok_or_else(|| broken(1, "the file is empty".to_owned()))?;
    let header: Header = serde_json::from_str(first).map_err(|_| {
        let form = r#"{"positronic_run": 1, "run": …, "brain": …, "events": …}"#;
        broken(1, format!("invalid header of an exported run; expected {form}"))
    })?;
    if header.positronic_run > FORMAT {
        let newer = format!("written by a newer release (format {})", header.positronic_run);
        let reads = format!("this release reads formats up to {FORMAT}");
        return Err(Failure::environment(format!("{}, line 1: {newer}; {reads}", file.display()))
            .hint("nothing was imported; use a newer release of positronic"));
    }
    check_name("the run's id", header.run.as_str()).map_err(|reason| broken(1, reason))?;
    let (mut state, mut log, mut last, mut blobs) = (RunState::default(), Vec::new(), 1, Vec::new());
    for (index, line) in lines {
        last = index + 1;
        if log.len() == header.events && header.blobs > 0 {
            blobs.push(blob(line).map_err(|reason| broken(last, reason))?);
            continue;
        }
        let event = Event::from_json(line).map_err(|error| broken(last, no_event(line, &error)))?;
        state.apply(&event).map_err(|error| broken(last, error.to_string()))?;
        log.push(Arc::new(event));
    }
    if log.len() != header.events {
        let reason = format!("the file ends after {} of {}", log.len(), many(header.events, "event"));
        return Err(broken(last, reason));
    }
    if blobs.len() != header.blobs {
        let reason = format!("the file ends after {} of {}", blobs.len(), many(header.blobs, "file"));
        return Err(broken(last, reason));
    }
    let brain = state.root.as_ref().map(|root| root.title.to_string()).unwrap_or_default();
    if brain != header.brain {
        let reason = format!("the header names the brain `{}`, but the events name `{brain}`", header.brain);
        return Err(broken(1, reason));
    }
    Ok(Exported { header, log, blobs })
}

/// Parses a file entry, and checks its hash.
fn blob(line: &str) -> Result<Vec<u8>, String> {
    let Blob { blob, bytes } =
        serde_json::from_str(line).map_err(|_| r#"invalid file entry; expected {"blob": …, "bytes": …}"#.to_owned())?;
    let bytes = BASE64.decode(bytes).map_err(|error| format!("invalid base64 in a file entry: {error}"))?;
    match sha256(&bytes) {
        hash if hash == blob => Ok(bytes),
        hash => Err(format!("a file is damaged: its hash is `{hash}`, expected `{}`", shorten(&blob, 64))),
    }
}

/// Explains why a line is not an event.
fn no_event(line: &str, error: &EventError) -> String {
    let EventError::Json(problem) = error else { return error.to_string() };
    let document: Value = match serde_json::from_str(line) {
        Err(error) => return no_json(line, &error),
        Ok(document) => document,
    };
    let Some(name) = document.get("type").and_then(Value::as_str) else {
        return "invalid event: it has no `type`".to_owned();
    };
    let problem = problem.to_string();
    let shown = shorten(name, 40);
    if problem.contains(&format!("unknown variant `{name}`")) {
        return format!("unknown event type `{shown}`");
    }
    let problem = problem.split(" at line ").next().unwrap_or_default();
    format!("invalid fields of `{shown}`: {}", shorten(problem, 160))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endless_input_is_refused() {
        assert_eq!(read_bytes(io::repeat(0)).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(read_bytes(&b"{}\n{}"[..]).unwrap(), b"{}\n{}");
    }
}
