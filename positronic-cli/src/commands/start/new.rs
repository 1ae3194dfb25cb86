//! `positronic new`: a project that compiles and runs.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::json;

use crate::app::template::{FILES, Source, checkout, filled, is_checkout, package_name};
use crate::app::{Failure, Ui};
use crate::cli::options::shell_word;
use crate::cli::{Exit, NewArgs};

const NEW_FOLDER: &str = "name a new or an empty folder";

pub(crate) fn new(args: &NewArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let dir = std::path::absolute(&args.dir).map_err(Failure::file(&args.dir, "cannot resolve"))?;
    let folder = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let package = package_name(&folder).ok_or_else(|| {
        Failure::usage(format!("cannot derive a package name from `{folder}`")).hint("use a folder name with a letter")
    })?;
    if !is_free(&dir)? {
        return Err(Failure::usage(format!("{} is not empty", args.dir.display())).hint(NEW_FOLDER));
    }
    let source = source(args)?;
    for (path, text) in FILES {
        let path = dir.join(path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(Failure::file(folder, "cannot create"))?;
        }
        fs::write(&path, filled(text, &package, &source)).map_err(Failure::file(&path, "cannot write"))?;
    }
    if args.json {
        ui.json_line(&json!({"package": package, "folder": dir}))?;
        return Ok(Exit::Done);
    }
    let shown = args.dir.to_string_lossy();
    if let Source::Path(checkout) = &source {
        ui.notice(&format!("the framework is the checkout {}", checkout.display()))?;
    }
    ui.notice(&format!("created the project {package}; next:"))?;
    ui.notice(&format!("  cd {}", shell_word(&shown)))?;
    ui.notice("  cargo run -- run hello -o name=Ada     or: positronic run hello -o name=Ada")?;
    ui.notice("  cargo run -- serve                     the runs in a browser")?;
    ui.notice("  cargo test")?;
    Ok(Exit::Done)
}

fn source(args: &NewArgs) -> Result<Source, Failure> {
    if let Some(url) = &args.git {
        return Ok(Source::Git { url: url.clone(), rev: args.rev.clone() });
    }
    if let Some(checkout) = &args.path {
        if !is_checkout(checkout) {
            let checkout = checkout.display();
            return Err(Failure::usage(format!(
                "{checkout} is not a checkout of the framework: it lacks the folders positronic-core and positronic-cli"
            ))
            .hint("--path takes the folder that contains positronic-core"));
        }
        let absolute = std::path::absolute(checkout).map_err(Failure::file(checkout, "cannot resolve"))?;
        return Ok(Source::Path(absolute));
    }
    match (&args.version, checkout()) {
        (Some(version), _) => Ok(Source::Version(version.clone())),
        (None, Some(checkout)) => Ok(Source::Path(checkout)),
        (None, None) => Err(Failure::usage("the framework is not published yet, so the project needs its source")
            .hint("use --path CHECKOUT, the folder that contains positronic-core, or --git URL")),
    }
}

/// Returns whether a folder does not exist or is empty.
fn is_free(dir: &Path) -> Result<bool, Failure> {
    match fs::read_dir(dir) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(source) => Err(match dir.ancestors().find(|path| path.is_file()) {
            Some(path) => Failure::usage(format!("{} is a file and not a folder", path.display())).hint(NEW_FOLDER),
            None => Failure::file(dir, "cannot read")(source),
        }),
    }
}
