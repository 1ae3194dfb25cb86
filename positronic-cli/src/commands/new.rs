//! `positronic new`: a project that compiles and runs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::app::failure::Failure;
use crate::app::template::{FILES, Source, filled, package_name};
use crate::app::ui::Ui;
use crate::cli::NewArgs;
use crate::cli::exit::Exit;
use crate::cli::options::shell_word;

pub(crate) fn new(args: &NewArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let dir = std::path::absolute(&args.dir).map_err(|source| file(&args.dir, "cannot resolve", source))?;
    let folder = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let package = package_name(&folder).ok_or(Failure::NoPackageName { name: folder })?;
    if !is_free(&dir)? {
        return Err(Failure::NotEmpty { dir: args.dir.clone() });
    }
    let source = source(args)?;
    for (path, text) in FILES {
        let path = dir.join(path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|source| file(folder, "cannot create", source))?;
        }
        fs::write(&path, filled(text, &package, &source)).map_err(|source| file(&path, "cannot write", source))?;
    }
    if args.json {
        ui.json_line(&json!({"package": package, "folder": dir}))?;
        return Ok(Exit::Done);
    }
    let shown = args.dir.to_string_lossy();
    ui.notice(&format!("created the project {package}; next:"))?;
    ui.notice(&format!("  cd {}", shell_word(&shown)))?;
    ui.notice("  cargo run -- run hello -o name=Ada     or: positronic run hello -o name=Ada")?;
    ui.notice("  cargo test")?;
    Ok(Exit::Done)
}

fn source(args: &NewArgs) -> Result<Source, Failure> {
    if let Some(url) = &args.git {
        return Ok(Source::Git { url: url.clone(), rev: args.rev.clone() });
    }
    if let Some(checkout) = &args.path {
        if !checkout.join("positronic-core").join("Cargo.toml").is_file() {
            return Err(Failure::NoCheckout { dir: checkout.clone() });
        }
        let absolute = std::path::absolute(checkout).map_err(|source| file(checkout, "cannot resolve", source))?;
        return Ok(Source::Path(absolute));
    }
    match &args.version {
        Some(version) => Ok(Source::Version(version.clone())),
        None => Err(Failure::Misused {
            message: "the framework is not published yet, so the project needs its source".to_owned(),
            hint: "use --path CHECKOUT, the folder that contains positronic-core, or --git URL".to_owned(),
        }),
    }
}

/// Returns whether a folder does not exist or is empty.
fn is_free(dir: &Path) -> Result<bool, Failure> {
    match fs::read_dir(dir) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(source) => Err(match dir.ancestors().find(|path| path.is_file()) {
            Some(path) => Failure::NoFolder { file: path.to_owned() },
            None => file(dir, "cannot read", source),
        }),
    }
}

fn file(path: &Path, doing: &'static str, source: io::Error) -> Failure {
    Failure::File { path: PathBuf::from(path), doing, source }
}
