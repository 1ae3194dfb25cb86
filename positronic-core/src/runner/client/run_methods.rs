//! What a client does with whole runs: reads, follows, imports, forks, retries and removes them.

use std::sync::Arc;

use futures::stream::BoxStream;
use serde_json::Value;

use super::answers_in_flight::AnswerReader;
use super::client::Client;
use super::deliver_webhook::{Delivered, deliver_webhook};
use super::follow::{RunUpdate, follow_log};
use super::fork::{Fork, ForkError, end_of_transition, fork_log};
use super::prune::{prune, removable};
use super::retry::{Retried, RetryError, failed_log, retry};
use super::signals::SignalError;
use super::undo::{UndoError, undo};
use crate::machine::{RunState, hears_mail, status_since};
use crate::prices::PriceTable;
use crate::projection::{Costs, History, Prompts, RunFile, files};
use crate::record::{Actor, Event, FileRef, Path, RunId, RunSummary, Seq, SignalId, Status};
use crate::runner::Conversations;
#[cfg(feature = "schedules")]
use crate::runner::Schedules;
use crate::runner::conversation::histories::Histories;
use crate::runner::worker::append::{Extras, append, append_of, follow};
use crate::runner::worker::load;
use crate::store::{InboundWebhook, StoreError, swept_before};

impl Client {
    /// Delivers a webhook to the run that waits for it, or stores it until one does. The same id counts once. If
    /// several runs wait for the same webhook, the one that has waited longest gets it; a fork gets it only if no
    /// other run takes it.
    ///
    /// # Errors
    ///
    /// [`SignalError::Refused`] if the payload does not fit what a run waits for and no run takes it; it is then
    /// not stored, unless it already was. [`SignalError::Store`] if the store fails; a retry under the same id is
    /// safe.
    pub async fn deliver(
        &self,
        id: SignalId,
        webhook: &str,
        identifier: &str,
        payload: Value,
        actor: Actor,
    ) -> Result<Delivered, SignalError> {
        let at = self.now();
        let (webhook, identifier) = (webhook.to_owned(), identifier.to_owned());
        let expires = at.after(Self::KEEP);
        let webhook = InboundWebhook { id, webhook, identifier, payload, actor, at, expires, refusal: None };
        deliver_webhook(self, webhook).await
    }

    /// Reads a run's events from a number on.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoSuchRun`] if there is no such run; other variants if the store fails.
    pub async fn events(&self, run: &RunId, from: Seq) -> Result<Vec<Arc<Event>>, StoreError> {
        self.store().read(run, from, usize::MAX).await
    }

    /// Imports a run from its events.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] if the store has the run, [`StoreError::NoRunBefore`] if it lacks the previous
    /// run of its conversation, [`StoreError::Corrupt`] if the events are not a run's log from its start, or are cut off
    /// within a transition.
    pub async fn import(&self, run: &RunId, events: &[Arc<Event>]) -> Result<(), StoreError> {
        let none = RunState::default();
        let state = follow(&none, events).map_err(|error| StoreError::corrupt_log(run, error))?;
        if state.root.is_none() {
            return Err(StoreError::corrupt_log(run, "it does not begin with the start of the run"));
        }
        if events.last().is_some_and(|last| last.with_next) {
            return Err(StoreError::corrupt_log(
                run,
                "it is cut off: its last event belongs to another one that follows",
            ));
        }
        let mut imported = append_of(run, &none, &state, None, events, Extras::default());
        // The webhooks that it waits for may be in this store's mailbox.
        imported.index.summary.mail = imported.index.summary.status == Status::Waiting && hears_mail(&state);
        let since = status_since(events).map_err(|error| StoreError::corrupt_log(run, error))?;
        imported.index.summary.since = since.unwrap_or(state.at);
        append(self.store(), run, imported).await
    }

    /// Returns the bytes of a file by their SHA-256 in hexadecimal digits; `None` if the store does not have
    /// them.
    ///
    /// ```
    /// # use positronic_core::runner::Client;
    /// # use positronic_core::record::RunId;
    /// # async fn example(client: Client, run: RunId) -> Result<(), positronic_core::store::StoreError> {
    /// for file in client.files(&run).await? {
    ///     if let Some(bytes) = client.blob(&file.file.sha256).await? {
    ///         println!("{} has {} bytes", file.file.name, bytes.len());
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`StoreError::Damaged`] if the bytes no longer match the hash; other variants if the store fails.
    pub async fn blob(&self, sha256: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.store().blob(sha256).await
    }

    /// Stores the bytes of a file and returns their SHA-256. An event must refer to them within an hour.
    ///
    /// # Errors
    ///
    /// [`StoreError::TooLarge`]; other variants if the store fails.
    pub async fn put_blob(&self, bytes: Vec<u8>) -> Result<String, StoreError> {
        self.store().put_blob(bytes, self.now()).await
    }

    /// Stores a file, for a message to a run. The next sweep removes it after an hour unless an event refers to it.
    ///
    /// # Errors
    ///
    /// As [`Client::put_blob`].
    pub async fn put_file(
        &self,
        name: impl Into<String> + Send,
        media_type: impl Into<String> + Send,
        bytes: impl Into<Vec<u8>> + Send,
    ) -> Result<FileRef, StoreError> {
        let (name, media_type, bytes) = (name.into(), media_type.into(), bytes.into());
        let size = bytes.len() as u64;
        let sha256 = self.put_blob(bytes).await?;
        Ok(FileRef::stored(name, media_type, size, sha256))
    }

    /// Lists the files of a run in order of creation.
    ///
    /// # Errors
    ///
    /// As [`Client::events`].
    pub async fn files(&self, run: &RunId) -> Result<Vec<RunFile>, StoreError> {
        Ok(files(self.events(run, Seq(0)).await?.iter().map(|event| &**event)))
    }

    /// Removes the bytes of files that no run refers to and that were stored more than an hour ago. Returns their
    /// number.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn sweep(&self) -> Result<usize, StoreError> {
        self.store().sweep_blobs(swept_before(self.now())).await
    }

    /// Returns the current state of a run.
    ///
    /// # Errors
    ///
    /// As [`Client::events`].
    pub async fn state(&self, run: &RunId) -> Result<RunState, StoreError> {
        load::state(self.store(), run).await
    }

    /// Returns the state and the prompts of a run as of event `at`.
    ///
    /// # Errors
    ///
    /// As [`Client::events`].
    pub async fn state_at(&self, run: &RunId, at: Seq) -> Result<(RunState, Prompts), StoreError> {
        let events = self.store().read(run, Seq(0), at.next().index()).await?;
        let events = events.iter().map(|event| &**event);
        let state = RunState::replay(events.clone()).map_err(|error| StoreError::corrupt_log(run, error))?;
        Ok((state, Prompts::default().in_run(run).with(events)))
    }

    /// Returns the messages that precede those of a run's own loops: its conversation so far.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn history(&self, run: &RunId) -> Result<History, StoreError> {
        match self.store().run(run).await?.after {
            Some(before) => load::history(self.store(), &before, &Histories::default()).await,
            None => Ok(History::default()),
        }
    }

    /// Returns the usage and cost of a run, by a price table.
    ///
    /// # Errors
    ///
    /// As [`Client::events`].
    pub async fn costs(&self, run: &RunId, prices: &PriceTable) -> Result<Costs, StoreError> {
        let events = self.events(run, Seq(0)).await?;
        Ok(Costs::of(events.iter().map(|event| &**event), prices))
    }

    /// Follows a run of any process from an event's number on, as [`RunHandle::follow`](crate::runner::RunHandle::follow)
    /// does, except that the log alone says when the run settles, so it is never
    /// [`Settled::Stopped`](crate::runner::Settled::Stopped). Events of another process arrive within a second. The client
    /// of a runner also streams the deltas of that runner's workers; [`Client::new`] streams none.
    ///
    /// # Errors
    ///
    /// As [`RunHandle::follow`](crate::runner::RunHandle::follow); [`StoreError::NoSuchRun`] if there is no such run.
    #[must_use]
    pub fn follow(&self, run: &RunId, from: Seq) -> BoxStream<'static, Result<RunUpdate, StoreError>> {
        follow_log(self, run, from)
    }

    /// Reads the answers of a run in flight, as far as they are: those of this runner's workers, as
    /// [`follow`](Client::follow) streams them.
    #[must_use]
    pub fn answers(&self, run: &RunId) -> AnswerReader {
        AnswerReader::new(self.live().of(run))
    }

    /// Creates a new run whose log begins with the events of another run up to and including `at`; the original is
    /// unchanged. No worker claims the fork until [`Runner::fork`](crate::runner::Runner::fork) or
    /// [`Runner::resume`](crate::runner::Runner::resume). If event `at` belongs to those after it
    /// ([`Event::with_next`](crate::record::Event::with_next)), as an answer to its calls, the fork is made after the last
    /// of them. Effects that the fork reruns happen again: its tools are real and get another
    /// [`idempotency_key`](crate::dsl::ToolContext::idempotency_key).
    ///
    /// A fork that waits for a webhook since before the fork does not take stored ones from the mailbox, which
    /// belong to other runs. It gets a later one that no other run waits for, or the result in [`Fork::results`].
    /// For waits that it begins itself it reads the mailbox as any run.
    ///
    /// # Errors
    ///
    /// [`ForkError`]; no run was created then.
    pub async fn fork(&self, run: &RunId, at: Seq, fork: Fork) -> Result<RunId, ForkError> {
        let log = self.events(run, Seq(0)).await?;
        fork_log(self, run, &log, end_of_transition(&log, at)?, fork, Vec::new()).await
    }

    /// Returns the event after which a fork at `at` is made: `at`, or the last one that belongs to it.
    ///
    /// # Errors
    ///
    /// [`ForkError::NoSuchEvent`] if the run has no event `at`, [`ForkError::Store`] if the store fails.
    pub async fn fork_event(&self, run: &RunId, at: Seq) -> Result<Seq, ForkError> {
        end_of_transition(&self.events(run, Seq(0)).await?, at)
    }

    /// Returns the event right before a run first entered a stage, an iteration or a call: the place to fork it
    /// in order to run that part again.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoSuchRun`] if there is no such run; other variants if the store fails.
    pub async fn before(&self, run: &RunId, path: &Path) -> Result<Option<Seq>, StoreError> {
        let log = self.events(run, Seq(0)).await?;
        let first = log.iter().find(|event| event.path.is_within(path) && !event.path.is_root());
        Ok(first.and_then(|event| event.seq.0.checked_sub(1)).map(Seq))
    }

    /// Continues the work of a run that has failed or was parked, at the place of the failure. Effects with results are not
    /// repeated; a step or a call that was in flight runs again as after a crash. The counts of crashes start at zero. The
    /// run continues when [`Runner::resume`](crate::runner::Runner::resume) or a server claims it.
    /// [`Runner::record_retry`](crate::runner::Runner::record_retry) compares the code first.
    ///
    /// # Errors
    ///
    /// [`RetryError`]; nothing has changed then.
    pub async fn retry(&self, run: &RunId, by: impl Into<Actor>) -> Result<Retried, RetryError> {
        retry(self, run, by.into()).await
    }

    /// Undoes the completed stages of a run that has completed ([`BrainBuilder::compensate`](crate::dsl::BrainBuilder::compensate)), the last
    /// one first. A fork of the run does it, with the id `<run>~undo`, so a repetition finds the same one; it is cancelled when everything is
    /// undone. It begins when a runner resumes or a server claims it.
    ///
    /// # Errors
    ///
    /// [`UndoError`]; no run was created then.
    pub async fn undo(&self, run: &RunId, by: impl Into<Actor>) -> Result<RunId, UndoError> {
        undo(self, run, by.into()).await
    }

    /// Returns the event after which a retry of a failed run forks it.
    ///
    /// # Errors
    ///
    /// As [`Client::retry`].
    pub async fn retry_event(&self, row: &RunSummary) -> Result<Seq, RetryError> {
        Ok(failed_log(self, row).await?.1)
    }

    /// Returns the schedules of the store.
    #[cfg(feature = "schedules")]
    #[must_use]
    pub fn schedules(&self) -> Schedules {
        Schedules::new(self.clone())
    }

    /// Returns the conversations of the store.
    #[must_use]
    pub fn conversations(&self) -> Conversations {
        Conversations::new(self.clone())
    }

    /// Removes those of these runs that have ended and that no remaining run needs: the history of a remaining
    /// run stays with it. Removes files without references as well. Returns the removed runs.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails; what was removed until then stays removed.
    pub async fn prune(&self, runs: &[RunSummary]) -> Result<Vec<RunId>, StoreError> {
        prune(self, runs).await
    }

    /// Returns which of these runs [`Client::prune`] would remove. A run precedes those that it continues.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn removable(&self, runs: &[RunSummary]) -> Result<Vec<RunId>, StoreError> {
        removable(self, runs).await
    }
}
