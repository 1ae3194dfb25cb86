//! `positronic files`: lists the files of a run, or saves them to a folder.
//!
//! Names come from tools, possibly from a model: no file is written outside of the folder.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use positronic_core::projection::RunFile;
use positronic_core::runner::Client;
use positronic_core::store::StoreError;
use serde_json::{Value, json};

use crate::app::atomic_write::replace;
use crate::app::failure::Failure;
use crate::app::file_names::{numbered, safe};
use crate::app::find::find;
use crate::app::store::ProjectStore;
use crate::app::ui::Ui;
use crate::cli::FilesArgs;
use crate::cli::exit::Exit;
use crate::cli::suggest::did_you_mean;
use crate::render::figures::{many, size};
use crate::render::table::Table;
use crate::render::text::one_line;

/// Number of shown digits of a hash.
const HASH: usize = 12;

pub(crate) async fn files(args: &FilesArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let store = ProjectStore::open_to_read(ui)?;
    let row = find(&store, &args.run, ui).await?;
    let client = store.client();
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

fn document(file: &RunFile) -> Value {
    let RunFile { call, tool, at, file } = file;
    json!({
        "name": file.name,
        "media_type": file.media_type,
        "size": file.size,
        "sha256": file.sha256,
        "uri": file.uri,
        "tool": tool,
        "call": call,
        "at": at,
    })
}

fn list(files: &[RunFile], args: &FilesArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    if args.json {
        for file in files {
            ui.json_line(&document(file))?;
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
    let cells = files.iter().map(|RunFile { tool, file, .. }| {
        vec![
            one_line(&file.name),
            one_line(&file.media_type),
            size(file.size),
            one_line(file.sha256.get(..HASH).unwrap_or(&file.sha256)),
            one_line(tool),
        ]
    });
    Table::new(&["NAME", "TYPE", "SIZE", "SHA-256", "TOOL"], cells, columns).to_string()
}

/// A file to write.
struct Saved<'a> {
    file: &'a RunFile,
    path: PathBuf,
}

async fn save(
    client: &Client,
    files: &[RunFile],
    folder: &Path,
    args: &FilesArgs,
    ui: &mut Ui,
) -> Result<Exit, Failure> {
    if folder.exists() && !folder.is_dir() {
        return Err(Failure::usage(format!("{} is a file and not a folder", folder.display()))
            .hint("name a new or an empty folder"));
    }
    let (here, elsewhere): (Vec<_>, Vec<_>) = files.iter().partition(|file| file.file.blob().is_some());
    let saved = placed(&here, folder);
    if let Some(there) = saved.iter().find(|saved| !args.force && saved.path.symlink_metadata().is_ok()) {
        return Err(Failure::usage(format!("{} already exists", there.path.display()))
            .hint("name another file, or use --force to replace it"));
    }
    fs::create_dir_all(folder).map_err(Failure::file(folder, "cannot be created"))?;
    let (mut written, mut missing) = (0, Vec::new());
    for Saved { file, path } in &saved {
        // One at a time, to limit the memory.
        let bytes = match client.blob(&file.file.sha256).await {
            Ok(Some(bytes)) => bytes,
            Ok(None) => {
                missing.push(format!("the bytes of `{}` are not in the store", file.file.name));
                continue;
            }
            Err(error @ StoreError::Damaged { .. }) => {
                missing.push(format!("`{}` cannot be written: {error}", file.file.name));
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        // A link itself is replaced, not its target, which may be anywhere.
        if path.symlink_metadata().is_ok_and(|there| there.is_symlink()) {
            fs::remove_file(path).map_err(Failure::file(path, "cannot be replaced"))?;
        }
        replace(path, bytes).map_err(Failure::file(path, "cannot be written"))?;
        written += 1;
        if args.json {
            let mut document = document(file);
            if let Some(fields) = document.as_object_mut() {
                fields.insert("path".to_owned(), json!(path));
            }
            ui.json_line(&document)?;
        } else {
            ui.print(&format!("{}  {}", one_line(&path.display().to_string()), size(file.file.size)))?;
        }
    }
    for file in elsewhere {
        ui.notice(&one_line(&format!("`{}` is stored elsewhere: {}", file.file.name, file.file.uri)))?;
    }
    if missing.is_empty() {
        ui.notice(&format!("wrote {} into {}", many(written, "file"), folder.display()))?;
        return Ok(Exit::Done);
    }
    Err(Failure::environment(missing.join("; ")))
}

/// Gives each file its own path in the folder. The same content under the same name is one file.
fn placed<'a>(files: &[&'a RunFile], folder: &Path) -> Vec<Saved<'a>> {
    let (mut taken, mut known): (HashSet<String>, HashMap<(&str, &str), ()>) = (HashSet::new(), HashMap::new());
    let mut saved = Vec::new();
    for file in files {
        if known.insert((&file.file.name, &file.file.sha256), ()).is_some() {
            continue;
        }
        let name = safe(&file.file.name);
        let mut own = name.clone();
        // Some file systems ignore case.
        for number in 2.. {
            if taken.insert(own.to_lowercase()) {
                break;
            }
            own = numbered(&name, number);
        }
        saved.push(Saved { file, path: folder.join(own) });
    }
    saved
}

#[cfg(test)]
mod tests {
    use positronic_core::record::{FileOutput, Path as Place, Timestamp};

    use super::*;

    #[test]
    fn files_of_one_name_get_numbers_and_the_same_file_is_one() {
        let file = |name: &str, sha256: &str| RunFile {
            call: Place::root(),
            tool: "save".to_owned(),
            at: Timestamp(0),
            file: FileOutput::stored(name, "text/plain", 1, sha256),
        };
        let files = [file("a.txt", "1"), file("A.txt", "2"), file("a.txt", "1"), file("a.txt", "3"), file("b", "1")];
        let all: Vec<_> = files.iter().collect();

        let names: Vec<_> = placed(&all, Path::new("out")).into_iter().map(|saved| saved.path).collect();

        assert_eq!(names, ["out/a.txt", "out/A (2).txt", "out/a (3).txt", "out/b"].map(PathBuf::from));
    }
}
