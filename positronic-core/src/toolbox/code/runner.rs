//! Runs one program in the folder, and says what came of it.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::interpreter::{Interpreter, SEARCHED};
use super::supervise::{self, Ended, Job, Stop, Stopped};
use super::{CodeError, CodeOptions, OnMissing, Protection};
use crate::record::FileOutput;
use crate::toolbox::blocking::blocking;
use crate::toolbox::folder::{OutputFolder, own_name, remove_folder};

/// How many files that a program can load are named when a person is asked.
const SHOWN_LOADABLE: usize = 10;

/// How many files that cannot be listed are named in the result, each with the reason.
const SHOWN_ERRORS: usize = 10;

/// Runs programs in an output folder. A clone is the same runner.
#[derive(Debug, Clone)]
pub struct CodeRunner {
    folder: OutputFolder,
    options: Arc<CodeOptions>,
}

/// What came of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ran {
    /// Its exit code; none when a signal ended it.
    pub exit_code: Option<i32>,
    /// What it wrote, cut in the middle where it was too much.
    pub stdout: String,
    /// What it wrote as errors, cut in the middle where it was too much.
    pub stderr: String,
    /// The files that are new or changed, in the order of their paths.
    pub files: Vec<FileOutput>,
    /// Why it was stopped, if it was.
    pub stopped: Option<String>,
    /// What this machine could not hold it to.
    pub not_enforced: Vec<Protection>,
    /// What else there is to say.
    pub notes: Vec<String>,
}

impl Ran {
    /// Returns it as a model reads it: what is empty is left out.
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
    /// Begins with the folder in which programs run.
    #[must_use]
    pub fn new(folder: &OutputFolder, options: CodeOptions) -> Self {
        Self { folder: folder.clone(), options: Arc::new(options) }
    }

    /// Returns how it runs programs.
    #[must_use]
    pub fn options(&self) -> &CodeOptions {
        &self.options
    }

    pub(super) const fn folder(&self) -> &OutputFolder {
        &self.folder
    }

    /// Says what this machine cannot hold a program to. It is found out once a process, by giving the rights up in a thread.
    #[must_use]
    pub fn missing_protections(&self) -> Vec<Protection> {
        supervise::missing()
    }

    /// Says why a person is asked about a program in a language, or that nobody has to be: also where there is no such
    /// language, since it can run in no case.
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

    /// Says which programs of the same language are in the folder. Files are written without a person's approval, and a program can
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

    /// Runs a program to its end. Where the future is dropped, the program is killed with all its processes.
    ///
    /// # Errors
    ///
    /// A [`CodeError`] when it did not run. A program that failed or was stopped has run.
    pub async fn run(&self, language: &str, code: &str) -> Result<Ran, CodeError> {
        let interpreter = self.interpreter(language)?;
        let program = interpreter.find()?;
        let folder = self.folder.clone();
        // A folder has one program at a time, so that a new file is known to be its.
        let turn = folder.busy().lock_owned().await;
        let own = own_name("run");
        let file = format!("{own}/main.{}", interpreter.extension);
        let mut command: Vec<OsString> = vec![program.into()];
        command.extend(interpreter.arguments.iter().map(Into::into));
        command.push((&file).into());
        let options = Arc::clone(&self.options);
        let environment = environment(&folder, &own, &options);
        let stop = Stop::default();
        // Whatever ends the wait for the program ends the program.
        let on_drop = StopOnDrop(stop.clone());
        let (limit, code) = (options.limits.time, code.to_owned());
        let work = blocking(move || {
            let _turn = turn;
            let job = Job { command, environment, folder: &folder, options: &options };
            ran(&folder, &own, &file, &code, &job, &stop)
        });
        let mut work = std::pin::pin!(work);
        let ran = match tokio::time::timeout(limit, &mut work).await {
            Ok(ran) => ran,
            Err(_) => {
                on_drop.0.now(Stopped::Time);
                work.await
            }
        };
        drop(on_drop);
        ran
    }
}

/// Stops the program when it is dropped; one that has ended is not bothered.
struct StopOnDrop(Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.now(Stopped::Cancelled);
    }
}

/// Makes the whole environment of a program.
fn environment(folder: &OutputFolder, own: &str, options: &CodeOptions) -> Vec<(OsString, OsString)> {
    let home = folder.place().join(own);
    let mut environment: Vec<(OsString, OsString)> = vec![
        ("PATH".into(), SEARCHED.join(":").into()),
        ("LANG".into(), "C.UTF-8".into()),
        ("HOME".into(), home.clone().into()),
        ("TMPDIR".into(), home.into()),
    ];
    environment.extend(options.environment.iter().map(|(name, value)| (name.into(), value.into())));
    environment
}

fn ran(folder: &OutputFolder, own: &str, file: &str, code: &str, job: &Job<'_>, stop: &Stop) -> Result<Ran, CodeError> {
    let failed = |source: std::io::Error| CodeError::Folder(super::FolderError::Io { path: own.to_owned(), source });
    let before = folder.stamps()?;
    folder.dir().create_dir(own).map_err(failed)?;
    let ended = folder.dir().write(file, code).map_err(failed).and_then(|()| supervise::run(job, stop));
    // What a program has left in its own folder may be hard to take away; it is hidden, and does no harm.
    if let Err(error) = remove_folder(folder.dir(), own) {
        tracing::warn!(folder = %folder.place().display(), own, %error, "what a program left behind cannot be removed");
    }
    let Ended { exit_code, stdout, stderr, stopped, not_enforced } = ended?;
    let after = folder.stamps()?;
    let mut notes = Vec::new();
    let mut files = Vec::new();
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
    if let Err(error) = folder.usage().and_then(|usage| usage.check(folder.options())) {
        notes.push(format!("{error}; remove what is not needed"));
    }
    if unread > 0 {
        notes.push(format!(
            "{unread} new or changed files are not listed, since the files are larger than the folder may be"
        ));
    }
    let stopped = stopped.map(|stopped| stopped.sentence(&job.options.limits));
    Ok(Ran { exit_code, stdout, stderr, files, stopped, not_enforced, notes })
}

/// Says whether a program may run with these protections missing.
pub(super) fn may_run(options: &CodeOptions, missing: &[Protection]) -> Result<(), CodeError> {
    if options.on_missing == OnMissing::Say || missing.is_empty() {
        return Ok(());
    }
    let missing: Vec<_> = missing.iter().map(|missing| missing.missing()).collect();
    Err(CodeError::NotProtected { missing: missing.join(", ") })
}
