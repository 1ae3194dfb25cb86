//! The way from an author's code back into its run.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::oneshot;

use super::flight::{Report, Reports};
use super::shared::Shared;
use crate::error::{Error, Result};
use crate::plan::{Link, Plan, SideOutput};
use crate::record::{Delta, DeltaKind, ModelResponse, Path, Prompt, PublicId, Question};

/// How many files and widgets a call may show: each is an event, and none is recorded before the tool lets others work.
const OUTPUTS: usize = 1000;

pub(super) struct RunLink {
    // Author's code may keep a context longer than its run lives.
    shared: Weak<Shared>,
    reports: Reports,
    /// What each running call has said of itself, and shown.
    counts: Mutex<HashMap<Path, Counts>>,
}

/// Counts what a running call sends beside its result.
#[derive(Default)]
struct Counts {
    progress: u32,
    /// None before the first one of this try; tries before it may have shown something, too.
    outputs: Option<usize>,
    turns: HashMap<String, Arc<tokio::sync::Mutex<()>>>,
}

impl RunLink {
    pub(super) fn new(shared: &Arc<Shared>, reports: Reports) -> Self {
        Self { shared: Arc::downgrade(shared), reports, counts: Mutex::default() }
    }

    /// Forgets what a call has sent, since it has ended.
    pub(super) fn forget(&self, call: &Path) {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).remove(call);
    }

    fn count<T>(&self, call: &Path, count: impl FnOnce(&mut Counts) -> T) -> T {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        count(counts.entry(call.clone()).or_default())
    }
}

impl Link for RunLink {
    fn output(&self, path: &Path, output: SideOutput) -> Result<PublicId> {
        let (recorded, attempt) = self.shared.upgrade().map_or((0, 0), |shared| {
            let attempt = shared.state().call(path).map_or(0, |call| call.attempt);
            (shared.prompts().side_outputs(path), attempt)
        });
        let index = self.count(path, |counts| {
            // A retry shows its own; a first try that runs again after a crash shows what it has shown.
            let first = if attempt == 0 { 0 } else { recorded };
            let index = counts.outputs.unwrap_or(first);
            counts.outputs = Some((index + 1).min(OUTPUTS));
            index
        });
        if index >= OUTPUTS {
            return Err(Error::new(format!("a call may show {OUTPUTS} files and widgets, and this one has")));
        }
        let id = path.output_id(index);
        if index < recorded {
            return Ok(id);
        }
        _ = self.reports.send(Box::new(Report::Output { path: path.clone(), id: id.clone(), output }));
        Ok(id)
    }

    fn progress(&self, path: &Path, text: String) {
        let Some(shared) = self.shared.upgrade() else { return };
        let n = self.count(path, |counts| {
            let n = counts.progress;
            counts.progress = n.saturating_add(1);
            n
        });
        let (path, kind) = (path.clone(), DeltaKind::Progress);
        let delta = Delta { path, attempt: 0, part: 0, kind, call: None, tool: None, n, text };
        let after = shared.state().next;
        for feed in shared.feeds() {
            feed.delta(after, &delta);
        }
    }

    fn ask(&self, path: Path, question: Question) -> BoxFuture<'static, Result<ModelResponse>> {
        let (reply, answer) = oneshot::channel();
        let sent = self.reports.send(Box::new(Report::Question { path, question, reply }));
        Box::pin(async move {
            let gone = || Error::new("the run has ended, so the model is not asked");
            sent.map_err(|_| gone())?;
            answer.await.map_err(|_| gone())?
        })
    }

    fn once<'a>(
        &'a self,
        path: &'a Path,
        name: &'a str,
        work: BoxFuture<'a, Result<Value>>,
    ) -> BoxFuture<'a, Result<Arc<Value>>> {
        Box::pin(async move {
            let gone = || Error::new("the run has ended, so nothing is recorded any more");
            // One after the other, so that a name that is asked for twice at once is computed once.
            let turn = self.count(path, |counts| Arc::clone(counts.turns.entry(name.to_owned()).or_default()));
            let _turn = turn.lock().await;
            if let Some(known) = self.shared.upgrade().ok_or_else(gone)?.state().value(path, name) {
                return Ok(known);
            }
            let value = Arc::new(work.await?);
            let (reply, kept) = oneshot::channel();
            let report = Report::Value { path: path.clone(), name: name.to_owned(), value: Arc::clone(&value), reply };
            self.reports.send(Box::new(report)).map_err(|_| gone())?;
            kept.await.map_err(|_| gone())?;
            Ok(value)
        })
    }

    fn record(&self, path: &Path) -> Option<Prompt> {
        self.shared.upgrade()?.prompts().get(path).cloned()
    }

    fn brain(&self, title: &str) -> Option<Arc<Plan>> {
        self.shared.upgrade()?.runner.brains.get(title).cloned()
    }

    fn brains(&self) -> Vec<String> {
        self.shared.upgrade().map(|shared| shared.runner.brains.keys().cloned().collect()).unwrap_or_default()
    }
}
