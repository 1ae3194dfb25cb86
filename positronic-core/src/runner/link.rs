//! The way from an author's code back into its run.

use std::sync::{Arc, Weak};

use futures::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

use super::flight::Report;
use super::worker::Shared;
use crate::error::{Error, Result};
use crate::plan::{Link, Plan};
use crate::record::{Body, Delta, DeltaKind, ModelResponse, Path, Prompt, Question};

pub(super) struct RunLink {
    // Author's code may keep a context longer than its run lives.
    shared: Weak<Shared>,
    reports: mpsc::UnboundedSender<Report>,
}

impl RunLink {
    pub(super) fn new(shared: &Arc<Shared>, reports: mpsc::UnboundedSender<Report>) -> Self {
        Self { shared: Arc::downgrade(shared), reports }
    }
}

impl Link for RunLink {
    fn output(&self, path: &Path, body: Body) {
        _ = self.reports.send(Report::Output { path: path.clone(), body });
    }

    fn progress(&self, path: &Path, text: String) {
        let Some(shared) = self.shared.upgrade() else { return };
        let (path, kind) = (path.clone(), DeltaKind::Progress);
        let delta = Delta { path, attempt: 0, part: 0, kind, call: None, tool: None, n: 0, text };
        let after = shared.state().next;
        for feed in &shared.feeds {
            feed.delta(after, &delta);
        }
    }

    fn ask(&self, path: Path, question: Question) -> BoxFuture<'static, Result<ModelResponse>> {
        let (reply, answer) = oneshot::channel();
        let sent = self.reports.send(Report::Question { path, question, reply });
        Box::pin(async move {
            let gone = || Error::new("the run has ended, so the model is not asked");
            sent.map_err(|_| gone())?;
            answer.await.map_err(|_| gone())?
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
