//! The caller of a further route as the reader of a long answer.

use std::fmt;
use std::sync::Arc;

use positronic_core::machine::RunState;
use positronic_core::record::{Path, Pending, PendingKind, RunId, Seq, Timestamp};
use positronic_core::runner::Client;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::api::{arguments_schema, question_id};
use crate::app::App;
use crate::auth::{Caller, Question, Scope};
use crate::redact::redacted;

/// A caller, and what it may see and decide.
#[derive(Clone)]
pub struct Viewer {
    app: Arc<App>,
    caller: Caller,
}

/// A pending item of a run, as the caller may decide it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct OpenQuestion {
    /// Its id, under which it is decided: another one if the same call asks again.
    pub id: String,
    /// The item.
    pub pending: Pending,
    /// The JSON schema of the arguments of an approval.
    pub arguments_schema: Option<Value>,
    /// When it expires.
    pub expires: Option<Timestamp>,
    /// Why the caller may not decide it; `None` if it may.
    pub refused: Option<String>,
}

impl Viewer {
    pub(super) const fn new(app: Arc<App>, caller: Caller) -> Self {
        Self { app, caller }
    }

    /// Returns the client of the store.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.app.client
    }

    /// Waits until the server shuts down. A stream has a moment then to say so in its protocol.
    pub fn stopping(&self) -> impl Future<Output = ()> + Send + use<> {
        let shutdown = self.app.settings.shutdown.clone();
        async move { shutdown.begun().await }
    }

    /// Returns the URL of the inspector's page of a run, for people who read it elsewhere; `None` without the page, or without
    /// [`public_url`](crate::OptionsBuilder::public_url).
    #[must_use]
    pub fn page(&self, run: &RunId) -> Option<String> {
        let url = self.app.settings.public_url.as_ref().filter(|_| cfg!(feature = "ui"))?;
        Some(format!("{}/ui/runs/{run}", url.as_str().trim_end_matches('/')))
    }

    /// Returns the id of the question that a call or a stage asks since an event.
    #[must_use]
    pub fn question_id(&self, run: &RunId, path: &Path, since: Seq) -> String {
        question_id(run, path, since)
    }

    /// Returns a pending item with what the caller needs to decide it.
    #[must_use]
    pub fn question(&self, run: &RunId, state: &RunState, pending: &Pending) -> OpenQuestion {
        let expires = match &pending.kind {
            PendingKind::Approval { expires, .. } => *expires,
            PendingKind::Budget(request) => request.expires,
            PendingKind::Answer { waits } => waits.iter().filter_map(|wait| wait.expires).min(),
        };
        let is_approval = matches!(pending.kind, PendingKind::Approval { .. });
        let scope = if pending.kind.is_for_person() { Scope::Decide } else { Scope::Operate };
        let refused = if self.caller.may(scope) {
            let question = Question::of(run, state, pending);
            self.app.settings.deciders.may_decide(&self.caller, &question).err()
        } else {
            Some(format!("the caller lacks the scope `{scope}`"))
        };
        OpenQuestion {
            id: question_id(run, &pending.call, pending.since),
            arguments_schema: arguments_schema(state, &pending.call, &pending.tool).filter(|_| is_approval),
            pending: pending.clone(),
            expires,
            refused,
        }
    }

    /// Returns whether answers are redacted. Pieces of an answer are not sent then, since a secret may be split between them.
    #[must_use]
    pub fn redacts(&self) -> bool {
        self.app.settings.redact.is_some()
    }

    /// Redacts a value that becomes a part of a text, where the JSON of the answer does not show its fields. Returns `None` if it no
    /// longer has its type then.
    #[must_use]
    pub fn redacted<T: Serialize + DeserializeOwned + Clone>(&self, value: &T) -> Option<T> {
        redacted(self.app.settings.redact.as_ref(), value)
    }
}

impl fmt::Debug for Viewer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Viewer").field("caller", &self.caller).finish_non_exhaustive()
    }
}
