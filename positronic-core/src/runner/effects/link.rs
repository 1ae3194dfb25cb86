//! The connection from the author's code to its run.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::oneshot;

use super::child_run::start_child;
use super::files::store_file;
use super::hook_limit::limit_hook;
use super::report::{Report, Reports};
use crate::definition::{BrainDefinition, Link, NewChild, ToolDefinition, recordable};
use crate::error::{Error, Result};
use crate::projection::Prompts;
use crate::record::{
    Delta, DeltaKind, Event, FileRef, Fired, Message, ModelResponse, Path, Prompt, PublicId, Question, RunId,
    Scheduled, Segment, SideOutput, Timer, Timestamp,
};
use crate::runner::config::RunnerSettings;
use crate::runner::worker::shared::Shared;
use crate::store::{StoreError, TimerFilter};

/// The maximum number of files and widgets of a call. Each one is an event.
const OUTPUTS: usize = 1000;

#[derive(Clone)]
pub(in crate::runner) struct RunLink {
    // The author's code may keep a context after the end of its run.
    shared: Weak<Shared>,
    /// `None` if the code reruns after a restart to find its functions: it reads only.
    reports: Option<Reports>,
    /// The size limit of documents.
    max_bytes: usize,
    /// The time limit of guards and hooks.
    hook_timeout: Duration,
    /// The drafted events after which the author's code runs.
    drafted: Vec<Arc<Event>>,
    counts: Counts,
}

/// The number of reports of a running call, by kind.
#[derive(Default)]
struct ReportCounts {
    progress: u32,
    /// `None` before the first output of this attempt; earlier attempts may have outputs, too.
    outputs: Option<usize>,
    turns: HashMap<String, Arc<tokio::sync::Mutex<()>>>,
    asked: u32,
    /// Has a clone for each question that is not answered, and whose asker waits.
    open: Arc<()>,
}

/// What each running call has reported and shown.
type Counts = Arc<Mutex<BTreeMap<Path, ReportCounts>>>;

impl RunLink {
    pub(in crate::runner) fn new(shared: &Arc<Shared>, reports: Reports) -> Self {
        let RunnerSettings { max_document_bytes: max_bytes, hook_timeout, .. } = shared.runner.settings;
        let shared = Arc::downgrade(shared);
        Self { shared, reports: Some(reports), max_bytes, hook_timeout, drafted: Vec::new(), counts: Arc::default() }
    }

    /// Returns the size limit of documents in bytes.
    pub(in crate::runner) const fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    /// Removes the counts of a call that has ended.
    pub(in crate::runner) fn forget(&self, call: &Path) {
        self.counts.lock().remove(call);
    }

    /// Returns a link for the author's code that runs after drafted events, and sees their prompts. Other code does not.
    pub(super) fn after(&self, drafted: &[Arc<Event>]) -> Self {
        Self { drafted: drafted.to_vec(), ..self.clone() }
    }

    /// Returns a link for author's code that reruns after a restart to find its functions. It cannot ask or record anything.
    pub(in crate::runner) fn read_only(&self) -> Self {
        Self { reports: None, ..self.clone() }
    }

    fn reports(&self) -> Result<Reports> {
        let refused = || Error::new("an iteration that is restored after a restart cannot ask or record anything");
        self.reports.clone().ok_or_else(refused)
    }

    fn prompts<T>(&self, read: impl FnOnce(&Prompts) -> T) -> Option<T> {
        let shared = self.shared.upgrade()?;
        let next = shared.state().next;
        let prompts = shared.prompts();
        // The author's code may keep its context until the draft is in the log, or something else is.
        if self.drafted.first().is_none_or(|first| first.seq != next) {
            return Some(read(&prompts));
        }
        let ahead = prompts.clone().with(self.drafted.iter().map(|event| &**event));
        drop(prompts);
        Some(read(&ahead))
    }

    /// Returns how many questions running code has asked, and whether one is open.
    fn questions(&self, path: &Path) -> (u32, bool) {
        self.counts.lock().get(path).map_or((0, false), |counts| (counts.asked, Arc::strong_count(&counts.open) > 1))
    }

    /// Counts a question, which is open until the returned value is dropped.
    fn open_question(&self, path: &Path) -> Arc<()> {
        self.count(path, |counts| {
            counts.asked = counts.asked.wrapping_add(1);
            Arc::clone(&counts.open)
        })
    }

    /// Awaits work that a hook awaits, and that has a limit of time of its own.
    pub(super) fn outside<T: Send + 'static>(&self, path: &Path, work: BoxFuture<'static, T>) -> BoxFuture<'static, T> {
        let open = self.open_question(path);
        Box::pin(async move {
            let _open = open;
            work.await
        })
    }

    fn turn(&self, path: &Path, name: &str) -> Arc<tokio::sync::Mutex<()>> {
        self.count(path, |counts| Arc::clone(counts.turns.entry(name.to_owned()).or_default()))
    }

    fn count<T>(&self, call: &Path, count: impl FnOnce(&mut ReportCounts) -> T) -> T {
        let mut counts = self.counts.lock();
        count(counts.entry(call.clone()).or_default())
    }
}

impl Link for RunLink {
    fn output(&self, path: &Path, output: SideOutput) -> Result<PublicId> {
        let Some(reports) = &self.reports else { return Ok(path.public_id()) };
        match &output {
            SideOutput::Widget(widget) => recordable("the widget's data", &widget.data, self.max_bytes)?,
            SideOutput::Custom(custom) => recordable("the output's data", &custom.data, self.max_bytes)?,
            SideOutput::File(file) => {
                let FileRef { name, media_type, sha256, uri, .. } = &file.file;
                let described = [name, media_type, sha256, uri];
                let described = Value::from_iter(described.map(String::as_str));
                recordable("the file's description", &described, self.max_bytes)?;
            }
        }
        let (recorded, before) = self.shared.upgrade().map_or((0, 0), |shared| {
            shared.state().call(path).map_or((0, 0), |call| (call.outputs as usize, call.outputs_before as usize))
        });
        let index = self.count(path, |counts| {
            // Each attempt has its own outputs; a rerun after a crash repeats those of the interrupted
            // one.
            let index = counts.outputs.unwrap_or(before);
            counts.outputs = Some((index + 1).min(OUTPUTS));
            index
        });
        if index >= OUTPUTS {
            return Err(Error::new(format!("a call can show at most {OUTPUTS} files and widgets")));
        }
        let id = path.output_id(index);
        if index < recorded {
            return Ok(id);
        }
        _ = reports.send(Box::new(Report::Output { path: path.clone(), id: id.clone(), output }));
        Ok(id)
    }

    fn keep(&self, bytes: Vec<u8>) -> BoxFuture<'static, Result<String>> {
        let (shared, reports) = (self.shared.upgrade(), self.reports());
        Box::pin(async move {
            reports?;
            let shared = shared.ok_or_else(|| Error::new("the run has ended, so its files are no longer stored"))?;
            store_file(&shared, &bytes).await.map_err(|error| match error {
                StoreError::Failed { message } => Error::new(format!("cannot store the file: {message}")),
                error => Error::new(format!("cannot store the file: {error}")),
            })
        })
    }

    fn is_approved(&self, call: &Path) -> bool {
        // A call with a gate runs only after its approval.
        self.shared.upgrade().is_some_and(|shared| shared.state().call(call).is_some_and(|call| call.gate.is_some()))
    }

    fn now(&self) -> Timestamp {
        self.shared.upgrade().map(|shared| shared.now()).unwrap_or_default()
    }

    fn triggers(&self) -> BoxFuture<'static, Result<Vec<Timer>>> {
        let shared = self.shared.upgrade();
        Box::pin(async move {
            let shared = shared.ok_or_else(|| Error::new("the run has ended, so it has no triggers"))?;
            let filter = TimerFilter::of(&shared.run, &shared.state().start);
            let timers = shared.runner.store.timers(&filter).await;
            timers.map_err(|error| Error::new(format!("the triggers cannot be listed: {error}")))
        })
    }

    fn fired(&self) -> Option<Fired> {
        self.shared.upgrade().and_then(|shared| shared.state().start.fired.clone())
    }

    fn scheduled(&self) -> Option<Scheduled> {
        self.shared.upgrade().and_then(|shared| shared.state().start.scheduled.clone())
    }

    fn progress(&self, path: &Path, text: String) {
        let Some(shared) = self.shared.upgrade().filter(|_| self.reports.is_some()) else { return };
        let n = self.count(path, |counts| {
            let n = counts.progress;
            counts.progress = n.saturating_add(1);
            n
        });
        let (path, kind) = (path.clone(), DeltaKind::Progress);
        let delta = Delta { path, attempt: 0, generation: 0, part: 0, kind, call: None, tool: None, n, text };
        let after = shared.state().next;
        shared.live.send(after, &delta);
    }

    fn ask(&self, path: Path, question: Question) -> BoxFuture<'static, Result<ModelResponse>> {
        let (reply, answer) = oneshot::channel();
        // The questions before an iteration, and those about its answer, are asked one after the other.
        let turn = matches!(path.last(), Some(Segment::Iteration(_) | Segment::Question(..)))
            .then(|| self.turn(&path, "model"));
        let reports = self.reports();
        let open = self.open_question(&path);
        Box::pin(async move {
            let (_open, reports) = (open, reports?);
            let turn = match turn {
                Some(turn) => Some(turn.lock_owned().await),
                None => None,
            };
            let gone = || Error::new("the run has ended, so the model is not asked");
            reports.send(Box::new(Report::Question { path, question, reply, turn })).map_err(|_| gone())?;
            answer.await.map_err(|_| gone())?
        })
    }

    fn limit<'a>(&'a self, path: &'a Path, hook: BoxFuture<'a, ()>) -> BoxFuture<'a, Result<(), Duration>> {
        let clock = self.shared.upgrade().map(|shared| Arc::clone(&shared.runner.clock));
        Box::pin(limit_hook(clock, self.hook_timeout, || self.questions(path), hook))
    }

    fn once<'a>(
        &'a self,
        path: &'a Path,
        name: &'a str,
        work: BoxFuture<'a, Result<Value>>,
    ) -> BoxFuture<'a, Result<Arc<Value>>> {
        Box::pin(async move {
            let reports = self.reports()?;
            let gone = || Error::new("the run's worker has stopped, so the value is not recorded");
            // In turn, so that a value with the same name is computed once.
            let turn = self.turn(path, name).lock_owned().await;
            if let Some(known) = self.shared.upgrade().ok_or_else(gone)?.state().value(path, name) {
                return Ok(known);
            }
            let value = Arc::new(work.await?);
            recordable(&format!("the value `{name}`"), &value, self.max_bytes)?;
            let (reply, kept) = oneshot::channel();
            let report = Report::Value { path: path.clone(), name: name.to_owned(), value, reply, turn };
            reports.send(Box::new(report)).map_err(|_| gone())?;
            kept.await.map_err(|_| gone())?
        })
    }

    fn start_child(&self, path: &Path, child: NewChild) -> BoxFuture<'static, Result<RunId>> {
        let (shared, reports, path) = (self.shared.upgrade(), self.reports(), path.clone());
        Box::pin(async move {
            let reports = reports?;
            let shared = shared.ok_or_else(|| Error::new("the run has ended, so it starts no child run"))?;
            start_child(&shared, &reports, path, child).await
        })
    }

    fn record(&self, path: &Path) -> Option<Prompt> {
        self.prompts(|prompts| prompts.get(path).cloned()).flatten()
    }

    fn messages(&self, path: &Path) -> Vec<Message> {
        self.prompts(|prompts| prompts.next_messages(path)).unwrap_or_default()
    }

    fn brain(&self, title: &str) -> Option<Arc<BrainDefinition>> {
        self.shared.upgrade()?.runner.code.brains.get(title).cloned()
    }

    fn brains(&self) -> Vec<String> {
        self.shared.upgrade().map(|shared| shared.runner.code.brains.keys().cloned().collect()).unwrap_or_default()
    }

    fn action(&self, name: &str) -> Option<Arc<ToolDefinition>> {
        self.shared.upgrade()?.runner.code.actions.get(name).cloned()
    }
}
