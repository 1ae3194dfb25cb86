//! `positronic files`: lists the files of a run, or saves them to a folder.

use std::collections::HashSet;
use std::path::Path;

use positronic_core::projection::{FileOrigin, RunFile};
use positronic_core::runner::Client;
use positronic_core::store::StoreError;
use serde_json::{Value, json};

use crate::app::{Failure, Folder, Ui, open_run};
use crate::cli::{Exit, FilesArgs, did_you_mean};
use crate::render::figures::{many, size};
use crate::render::{Table, one_line};

/// Number of shown digits of a hash.
const HASH: usize = 12;

pub(crate) async fn files(args: &FilesArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let (client, row) = open_run(&args.run, ui).await?;
    let mut files = client.files(&row.run).await?;
    if let Some(unknown) = args.names.iter().find(|name| !files.iter().any(|file| file.file.name == **name)) {
        let known: Vec<_> = files.iter().map(|file| file.file.name.as_str()).collect();
        let list = || format!("`{}` lists them", ui.command(&["files", &args.run]));
        return Err(Failure::usage(format!("the run has no file `{unknown}`"))
            .hint(did_you_mean(unknown, known, "").unwrap_or_else(list)));
    }
    files.retain(|file| args.names.is_empty() || args.names.contains(&file.file.name));
    match &args.save {
        Some(folder) => save(&client, &files, folder, args, ui).await,
        None => list(&files, args, ui),
    }
}

fn document(file: &RunFile, path: Option<&Path>) -> Value {
    let RunFile { path: place, origin, at, file } = file;
    let (from, tool) = match origin {
        FileOrigin::Tool { tool } => ("tool", Some(tool)),
        FileOrigin::Model => ("model", None),
        _ => ("message", None),
    };
    let mut document = json!({
        "name": file.name,
        "media_type": file.media_type,
        "size": file.size,
        "sha256": file.sha256,
        "uri": file.uri,
        "from": from,
        "place": place,
        "at": at,
    });
    let more = [("tool", tool.map(|tool| json!(tool))), ("path", path.map(|path| json!(path)))];
    for (name, value) in more {
        if let (Some(value), Some(fields)) = (value, document.as_object_mut()) {
            fields.insert(name.to_owned(), value);
        }
    }
    document
}

fn list(files: &[RunFile], args: &FilesArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    if args.json {
        for file in files {
            ui.json_line(&document(file, None))?;
        }
        return Ok(Exit::Done);
    }
    if files.is_empty() {
        ui.notice("the run has no files")?;
        return Ok(Exit::Done);
    }
    ui.print(&table(files, ui.columns()))?;
    Ok(Exit::Done)
}

fn table(files: &[RunFile], columns: usize) -> String {
    let cells = files.iter().map(|RunFile { origin, file, .. }| {
        vec![
            one_line(&file.name),
            one_line(&file.media_type),
            if file.size == 0 && file.blob().is_none() { String::new() } else { size(file.size) },
            one_line(file.sha256.get(..HASH).unwrap_or(&file.sha256)),
            one_line(from(origin)),
        ]
    });
    Table::new(&["NAME", "TYPE", "SIZE", "SHA-256", "FROM"], cells, columns).to_string()
}

/// Names the origin of a file.
fn from(origin: &FileOrigin) -> &str {
    match origin {
        FileOrigin::Tool { tool } => tool,
        FileOrigin::Model => "the model",
        _ => "a message",
    }
}

/// Saves the files that are stored here. No file is replaced: other content under a known name gets a number.
async fn save(
    client: &Client,
    files: &[RunFile],
    folder: &Path,
    args: &FilesArgs,
    ui: &mut Ui,
) -> Result<Exit, Failure> {
    if folder.exists() && !folder.is_dir() {
        return Err(Failure::usage(format!("{} is a file and not a folder", folder.display())).hint("name a folder"));
    }
    let (mut saved, mut missing) = (HashSet::new(), Vec::new());
    for run_file in files {
        let file = &run_file.file;
        let Some(sha256) = file.blob() else {
            ui.notice(&one_line(&format!("`{}` is stored elsewhere: {}", file.name, file.uri)))?;
            continue;
        };
        let bytes = match client.blob(sha256).await {
            Ok(Some(bytes)) => bytes,
            Ok(None) => {
                missing.push(format!("the bytes of `{}` are not in the store", file.name));
                continue;
            }
            Err(error @ StoreError::Damaged { .. }) => {
                missing.push(format!("`{}` cannot be written: {error}", file.name));
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let path = Folder(folder.to_owned()).save(&file.name, &bytes);
        let path = path.map_err(Failure::file(folder, "cannot save a file in"))?;
        if !saved.insert(path.clone()) {
            continue;
        }
        if args.json {
            ui.json_line(&document(run_file, Some(&path)))?;
        } else {
            ui.print(&format!("{}  {}", one_line(&path.display().to_string()), size(file.size)))?;
        }
    }
    if missing.is_empty() {
        ui.notice(&format!("{} in {}", many(saved.len(), "file"), folder.display()))?;
        return Ok(Exit::Done);
    }
    Err(Failure::environment(missing.join("; ")))
}
