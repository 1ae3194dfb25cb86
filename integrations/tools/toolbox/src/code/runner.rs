//! Runner for one program in the folder.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use positronic_core::record::FileRef;
use serde_json::{Map, Value, json};

use super::interpreter::{Interpreter, SEARCHED};
use super::room::DiskUse;
use super::stop::{StopReason, StopRequest};
use super::supervise::{self, Program, ProgramResult};
use super::{CodeError, CodeOptions, Protection};
use crate::blocking::blocking;
use crate::folder::{OutputFolder, own_name, remove_folder};

/// The maximum number of loadable files in an approval request.
const SHOWN_LOADABLE: usize = 10;

/// The maximum number of unlistable files that a result names, each with the reason.
const SHOWN_ERRORS: usize = 10;

/// Runs programs in an output folder. Clones share the runner.
#[derive(Debug, Clone)]
pub struct CodeRunner {
    folder: OutputFolder,
    options: Arc<CodeOptions>,
}

/// The result of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ran {
    /// The exit code; `None` when a signal ended it.
    pub exit_code: Option<i32>,
    /// The output, cut in the middle if it is too long.
    pub stdout: String,
    /// The error output, cut in the middle if it is too long.
    pub stderr: String,
    /// The new and changed files, sorted by path.
    pub files: Vec<FileRef>,
    /// The reason if it was stopped.
    pub stopped: Option<String>,
    /// The missing protections.
    pub not_enforced: Vec<Protection>,
    /// Further notes.
    pub notes: Vec<String>,
}

impl Ran {
    /// Converts to JSON for a model, without empty fields.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut json = Map::new();
        json.insert("exit_code".to_owned(), json!(self.exit_code));
        json.insert("stdout".to_owned(), json!(self.stdout));
        json.insert("stderr".to_owned(), json!(self.stderr));
        let files: Vec<_> = self.files.iter().map(|file| &file.name).collect();
        if !files.is_empty() {
            json.insert("files".to_owned(), json!(files));
        }
        if let Some(stopped) = &self.stopped {
            json.insert("stopped".to_owned(), json!(stopped));
        }
        let mut notes = self.notes.clone();
        notes.extend(
            self.not_enforced.iter().map(|missing| format!("not enforced on this machine: {}", missing.missing())),
        );
        if !notes.is_empty() {
            json.insert("notes".to_owned(), json!(notes));
        }
        Value::Object(json)
    }
}

impl CodeRunner {
    /// Creates a runner for a folder.
    #[must_use]
    pub fn new(folder: &OutputFolder, options: CodeOptions) -> Self {
        Self { folder: folder.clone(), options: Arc::new(options) }
    }

    /// Returns the options.
    #[must_use]
    pub fn options(&self) -> &CodeOptions {
        &self.options
    }

    pub(super) const fn folder(&self) -> &OutputFolder {
        &self.folder
    }

    /// Returns the protections that this machine lacks. It is determined once per process, by dropping privileges in a thread.
    #[must_use]
    pub fn missing_protections(&self) -> Vec<Protection> {
        supervise::missing()
    }

    /// Returns the reason for an approval of a program in a language, or `None` if none is needed, such as for an
    /// unknown language, which fails.
    pub(super) fn asks(&self, language: &str) -> Option<String> {
        if self.interpreter(language).is_err() || self.options.unattended.iter().any(|name| name == language) {
            return None;
        }
        let missing: Vec<_> = self.missing_protections().into_iter().map(Protection::missing).collect();
        let loads = self.loadable(language);
        Some(match missing.as_slice() {
            [] => format!("it runs a {language} program, in its folder and without a network{loads}"),
            missing => format!("it runs a {language} program, and on this machine {}{loads}", missing.join(", ")),
        })
    }

    /// Lists the programs of the same language in the folder. Files are written without a person's approval, and a program can
    /// load them.
    fn loadable(&self, language: &str) -> String {
        let extension = self.interpreter(language).map(|known| known.extension.as_str()).unwrap_or_default();
        let files = self.folder.list(None).unwrap_or_default().into_iter().filter(|entry| entry.kind != "folder");
        let paths =
            files.map(|entry| entry.path).filter(|path| Path::new(path).extension().is_some_and(|it| it == extension));
        let paths: Vec<_> = paths.map(|path| path.escape_debug().to_string()).collect();
        let more = paths.len().saturating_sub(SHOWN_LOADABLE);
        match paths.get(..SHOWN_LOADABLE).unwrap_or(&paths) {
            [] => String::new(),
            shown if more == 0 => format!("; it can load {}, which are in the folder", shown.join(", ")),
            shown => format!("; it can load {} and {more} more files of the folder", shown.join(", ")),
        }
    }

    fn interpreter(&self, language: &str) -> Result<&Interpreter, CodeError> {
        self.options.interpreters.iter().find(|known| known.name == language).ok_or_else(|| {
            let known: Vec<_> = self.options.interpreters.iter().map(|known| format!("`{}`", known.name)).collect();
            CodeError::Language { language: language.escape_debug().to_string(), known: known.join(", ") }
        })
    }

    /// Runs a program to its end. Dropping the future kills the program with all its processes.
    ///
    /// # Errors
    ///
    /// A [`CodeError`] when it did not start. A program that failed or was stopped is a result.
    pub async fn run(&self, language: &str, code: &str) -> Result<Ran, CodeError> {
        let interpreter = self.interpreter(language)?;
        let program = interpreter.find()?;
        let folder = self.folder.clone();
        // A folder runs one program at a time, so that new files can be attributed to it.
        let turn = folder.busy().lock_owned().await;
        let own = own_name("run");
        let file = format!("{own}/main.{}", interpreter.extension);
        let mut command: Vec<OsString> = vec![program.into()];
        command.extend(interpreter.arguments.iter().map(Into::into));
        command.push((&file).into());
        let options = Arc::clone(&self.options);
        let environment = environment(&folder, &own, &options);
        let stop = StopRequest::default();
        // Dropping the future stops the program.
        let on_drop = StopOnDrop(stop.clone());
        let (limit, code) = (options.limits.time, code.to_owned());
        let work = blocking(move || {
            let _turn = turn;
            let job = Program { command, environment, folder: &folder, options: &options };
            ran(&folder, &own, &file, &code, &job, &stop)
        });
        let mut work = std::pin::pin!(work);
        let ran = match tokio::time::timeout(limit, &mut work).await {
            Ok(ran) => ran,
            Err(_) => {
                on_drop.0.now(&StopReason::Time);
                work.await
            }
        };
        drop(on_drop);
        ran
    }
}

/// Stops the program when it is dropped; no effect after its end.
struct StopOnDrop(StopRequest);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.now(&StopReason::Cancelled);
    }
}

/// Builds the environment of a program.
fn environment(folder: &OutputFolder, own: &str, options: &CodeOptions) -> Vec<(OsString, OsString)> {
    let home = folder.path().join(own);
    let mut environment: Vec<(OsString, OsString)> = vec![
        ("PATH".into(), SEARCHED.join(":").into()),
        ("LANG".into(), "C.UTF-8".into()),
        ("HOME".into(), home.clone().into()),
        ("TMPDIR".into(), home.into()),
    ];
    environment.extend(options.environment.iter().map(|(name, value)| (name.into(), value.into())));
    environment
}

fn ran(
    folder: &OutputFolder,
    own: &str,
    file: &str,
    code: &str,
    job: &Program<'_>,
    stop: &StopRequest,
) -> Result<Ran, CodeError> {
    let failed = |source: std::io::Error| CodeError::Folder(super::FolderError::Io { path: own.to_owned(), source });
    folder.reopen();
    let (mut room, before) = (DiskUse::of(folder, code.len())?, folder.stamps()?);
    folder.dir().create_dir(own).map_err(failed)?;
    let ended = folder.dir().write(file, code).map_err(failed).and_then(|()| supervise::run(job, &mut room, stop));
    // The program's temporary folder may be hard to remove; it is hidden and harmless.
    if let Err(error) = remove_folder(folder.dir(), own) {
        tracing::warn!(folder = %folder.path().display(), own, %error, "what a program left behind cannot be removed");
    }
    let ProgramResult { exit_code, stdout, stderr, stopped, not_enforced } = ended?;
    // Whatever it has left behind, its result is not lost.
    folder.reopen();
    // The first walk names what could not be read.
    let usage = folder.usage().unwrap_or_default();
    let (mut notes, mut files) = (Vec::new(), Vec::new());
    let after = folder.stamps().unwrap_or_else(|error| {
        notes.push(format!("the files of the folder cannot be listed: {error}"));
        before.clone()
    });
    // Files are read to be described. Of those that a program has made without data, such as by `truncate`, there may be any amount.
    let (mut left, mut unread, mut undescribed) = (folder.options().max_total, 0_u64, 0_u64);
    for (path, size) in after.since(&before) {
        let Some(rest) = left.checked_sub(size) else {
            unread += 1;
            continue;
        };
        left = rest;
        match folder.describe(&path) {
            Ok(file) => files.push(file),
            Err(_) if notes.len() == SHOWN_ERRORS => undescribed += 1,
            Err(error) => notes.push(error.to_string()),
        }
    }
    if undescribed > 0 {
        notes.push(format!("{undescribed} more files are not listed for reasons like these"));
    }
    if let Err(error) = usage.check(folder.options()) {
        notes.push(format!("{error}; no program can run before that changes"));
    }
    if unread > 0 {
        notes.push(format!(
            "{unread} new or changed files are not listed, since the files are larger than the folder may be"
        ));
    }
    room.skipped.extend(usage.skipped);
    notes.extend(room.skipped.iter().map(|skipped| format!("skipped {skipped}")));
    let stopped = stopped.map(|stopped| stopped.sentence(&job.options.limits));
    Ok(Ran { exit_code, stdout, stderr, files, stopped, not_enforced, notes })
}
