//! `write_file`, `read_file` and `list_files`: an agent's access to its output folder.

use positronic_core::Result;
use positronic_core::dsl::{Options, Services, State, Tool, ToolContext};
use positronic_core::record::{FileRef, LARGEST_BLOB};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::blocking::blocking;
use super::folder::{FolderError, OutputFolder, Overwrite};

/// The maximum number of entries in a listing.
const LISTED: usize = 500;

/// Creates the three tools for files.
///
/// ```
/// use positronic_core::prelude::*;
/// use positronic_toolbox::{self as toolbox, OutputFolder};
///
/// # fn main() -> positronic_core::Result<()> {
/// # let place = std::env::temp_dir().join(format!("positronic-files-{}", std::process::id()));
/// let folder = OutputFolder::open(&place)?;
/// let writer = brain("Writer").r#loop("Write", move |cx| cx.system("Write.").tools(toolbox::files(&folder)));
/// # let _ = writer;
/// # std::fs::remove_dir_all(place)?;
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn files<O: Options, S: State, V: Services>(folder: &OutputFolder) -> [Tool<O, S, V>; 3] {
    [write_file(folder), read_file(folder), list_files(folder)]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WriteFile {
    /// The file's path in the output folder, such as `notes/report.md`.
    path: String,
    /// The whole text of the file.
    content: String,
}

/// Creates the tool that writes a text file, which becomes a `file` output.
#[must_use]
pub fn write_file<O: Options, S: State, V: Services>(folder: &OutputFolder) -> Tool<O, S, V> {
    let (asked, folder) = (folder.clone(), folder.clone());
    Tool::new("write_file", |t| {
        t.title("Write a file")
            .description("Writes a text file into the output folder; a file of this name is replaced as a whole.")
            .idempotent()
            .approval(move |file: &WriteFile, _| {
                let asks = asked.options().overwrite == Overwrite::Ask && asked.has(&file.path).unwrap_or_default();
                asks.then(|| format!("`{}` is there already and would be replaced", file.path))
            })
            .execute(move |WriteFile { path, content }, cx: ToolContext<O, S, V>| {
                let folder = folder.clone();
                async move {
                    let (writes, text) = (folder.clone(), content);
                    let approved = cx.is_approved();
                    // The file may have appeared after the decision about an approval.
                    let file = blocking(move || match writes.options().overwrite {
                        Overwrite::Allow => writes.write(&path, text.as_bytes()),
                        Overwrite::Ask if approved => writes.write(&path, text.as_bytes()),
                        Overwrite::Ask => match writes.write_new(&path, text.as_bytes()) {
                            Err(FolderError::Exists { path }) => Err(FolderError::Unasked { path }),
                            written => written,
                        },
                        Overwrite::Refuse => writes.write_new(&path, text.as_bytes()),
                    })
                    .await?;
                    let written = json!({"path": file.name, "size": file.size});
                    show(&cx, &folder, file).await?;
                    Ok(written)
                }
            })
    })
}

/// Makes a file of the folder an output of the call. The store gets its bytes if it accepts the size; a larger one
/// stays only in the folder.
pub(super) async fn show<O, S, V>(cx: &ToolContext<O, S, V>, folder: &OutputFolder, file: FileRef) -> Result<()> {
    if file.size > LARGEST_BLOB as u64 {
        return cx.add_file(file);
    }
    let (folder, FileRef { name, media_type, .. }) = (folder.clone(), file);
    let path = name.clone();
    let bytes = blocking(move || folder.bytes(&path)).await?;
    cx.save_file(name, media_type, bytes).await.map(|_| ())
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReadFile {
    /// The file's path in the output folder.
    path: String,
    /// Where to begin, in bytes; the beginning where nothing is said.
    #[serde(default)]
    offset: u64,
}

/// Creates the tool that reads a text file, in parts if it is long.
#[must_use]
pub fn read_file<O: Options, S: State, V: Services>(folder: &OutputFolder) -> Tool<O, S, V> {
    let folder = folder.clone();
    Tool::new("read_file", |t| {
        t.title("Read a file")
            .description("Reads a text file of the output folder. A long one comes in parts.")
            .read_only()
            .execute(move |ReadFile { path, offset }, _| {
                let folder = folder.clone();
                async move {
                    let read = blocking(move || folder.read(&path, offset)).await?;
                    Ok(match read.next {
                        None => read.text,
                        Some(next) => format!(
                            "{}\n[cut: the file has {} bytes; read on with `offset` {next}]",
                            read.text, read.size
                        ),
                    })
                }
            })
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListFiles {
    /// A folder in the output folder; the whole output folder where nothing is said.
    folder: Option<String>,
}

/// Creates the tool that lists the folder.
#[must_use]
pub fn list_files<O: Options, S: State, V: Services>(folder: &OutputFolder) -> Tool<O, S, V> {
    let folder = folder.clone();
    Tool::new("list_files", |t| {
        t.title("List files")
            .description("Lists the files of the output folder, with their sizes in bytes.")
            .read_only()
            .execute(move |ListFiles { folder: inner }, _| {
                let folder = folder.clone();
                async move {
                    let mut entries = blocking(move || folder.list(inner.as_deref())).await?;
                    let left_out = entries.len().saturating_sub(LISTED);
                    entries.truncate(LISTED);
                    Ok(match left_out {
                        0 => json!({"files": entries}),
                        more => json!({"files": entries, "note": format!("{more} more are left out; name a folder")}),
                    })
                }
            })
    })
}
