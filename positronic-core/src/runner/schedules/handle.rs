//! What people do with schedules.

use std::fmt;

use crate::record::{InvalidName, TickCause, Timestamp, check_name};
use crate::runner::Client;
use crate::runner::start::MAX_OWNER_CHARS;
use crate::schedule::{
    BackfillError, Overlap, PreviewedTime, Schedule, ScheduleRecord, SpecError, Tick, TickOutcome, preview, tick_key,
};
use crate::store::StoreError;

/// The longest id, in bytes.
const MAX_ID: usize = 100;

/// The schedules of a store. [`Runner::serve`](crate::runner::Runner::serve) starts their runs.
///
/// ```
/// # use positronic_core::runner::{Client, ScheduleError};
/// # use positronic_core::store::MemoryStore;
/// use positronic_core::schedule::Schedule;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), ScheduleError> {
/// # let client = Client::new(MemoryStore::new());
/// let schedules = client.schedules().by("ann");
/// let report = Schedule::new("Daily report").cron("0 9 * * MON-FRI").zone("Europe/Berlin");
/// schedules.set("report", report).await?;
/// schedules.pause("report", Some("holidays")).await?;
/// assert!(schedules.get("report").await?.unwrap().paused.is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Schedules {
    pub(super) client: Client,
    by: Option<String>,
}

/// The reason why a schedule is not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// There is no such schedule.
    #[error("there is no schedule `{id}`")]
    NotFound {
        /// The id.
        id: String,
    },
    /// The schedule has another version than expected: another person has changed it.
    #[error("the schedule `{id}` has changed: it has version {version}; read it again and retry")]
    Changed {
        /// The id.
        id: String,
        /// Its version; 0 if it does not exist.
        version: u64,
    },
    /// The id is empty, longer than 100 bytes, has other characters than letters, digits, `-`, `_` and `.`, or only dots.
    #[error(
        "the schedule's id `{id}` is invalid: it has 1 to {MAX_ID} characters, which are letters from a to z, digits, `-`, `_` or `.`, and not only dots"
    )]
    Id {
        /// The id.
        id: String,
    },
    /// The user of the runs is invalid.
    #[error("the user of the runs {reason}")]
    User {
        /// What is wrong with it.
        reason: InvalidName,
    },
    /// The times of the schedule are invalid.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A range of past times cannot be filled in.
    #[error(transparent)]
    Backfill(BackfillError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The schedules of a store.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct ScheduleList {
    /// The schedules that can be read, sorted by id.
    pub schedules: Vec<ScheduleRecord>,
    /// The schedules whose records cannot be decoded, sorted by id. They start no runs; [`Schedules::remove`] removes them.
    pub unreadable: Vec<UnreadableSchedule>,
}

/// A schedule whose record cannot be decoded, such as one of a later release.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnreadableSchedule {
    /// Its id.
    pub id: String,
    /// Why it cannot be read.
    pub error: StoreError,
}

/// A change of a schedule that is not stored yet.
pub(super) struct ScheduleChange {
    revision: u64,
    /// The schedule as it is stored.
    pub(super) before: ScheduleRecord,
    /// The schedule after the change.
    pub(super) new: ScheduleRecord,
    pub(super) now: Timestamp,
}

impl From<BackfillError> for ScheduleError {
    fn from(error: BackfillError) -> Self {
        match error {
            BackfillError::Spec(error) => Self::Spec(error),
            error => Self::Backfill(error),
        }
    }
}

impl Schedules {
    pub(in crate::runner) const fn new(client: Client) -> Self {
        Self { client, by: None }
    }

    /// Names the person who acts through this handle. The runs of a schedule are started in the name of who has set it last,
    /// those of [`trigger`](Self::trigger) and [`backfill`](Self::backfill) in the name of who has asked for them.
    #[must_use]
    pub fn by(self, name: impl Into<String>) -> Self {
        Self { by: Some(name.into()), ..self }
    }

    /// Lists the schedules by their ids. One that cannot be read does not hide the others.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn list(&self) -> Result<ScheduleList, StoreError> {
        let mut all = ScheduleList::default();
        for (id, record) in self.records().await? {
            match record {
                Ok(record) => all.schedules.push(record),
                Err(error) => all.unreadable.push(UnreadableSchedule { id, error }),
            }
        }
        Ok(all)
    }

    /// Returns a schedule, or `None`.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn get(&self, id: &str) -> Result<Option<ScheduleRecord>, StoreError> {
        Ok(self.load(id).await?.map(|(_, record)| record))
    }

    /// Creates or replaces a schedule. A new one, and one whose times change, starts runs only at times in the future.
    ///
    /// # Errors
    ///
    /// [`ScheduleError::Id`], [`ScheduleError::User`], [`ScheduleError::Spec`], [`ScheduleError::Store`].
    pub async fn set(&self, id: &str, schedule: Schedule) -> Result<ScheduleRecord, ScheduleError> {
        self.set_version(id, &schedule, None).await
    }

    /// As [`Schedules::set`], if the schedule has the expected [version](ScheduleRecord::version): 0 if it must not
    /// exist.
    ///
    /// # Errors
    ///
    /// [`ScheduleError::Changed`] if it has another version; others as for [`Schedules::set`].
    pub async fn set_if(&self, id: &str, schedule: Schedule, expected: u64) -> Result<ScheduleRecord, ScheduleError> {
        self.set_version(id, &schedule, Some(expected)).await
    }

    async fn set_version(
        &self,
        id: &str,
        schedule: &Schedule,
        expected: Option<u64>,
    ) -> Result<ScheduleRecord, ScheduleError> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        // URLs and paths of dots name other places.
        let is_dots = id.bytes().all(|byte| byte == b'.');
        if is_dots || id.len() > MAX_ID || !id.bytes().all(is_plain) {
            return Err(ScheduleError::Id { id: id.to_owned() });
        }
        if let Some(user) = &schedule.user {
            check_name(user, MAX_OWNER_CHARS).map_err(|reason| ScheduleError::User { reason })?;
        }
        loop {
            let now = self.client.now();
            let known = self.load(id).await?;
            let version = known.as_ref().map_or(0, |(_, record)| record.version);
            if expected.is_some_and(|expected| expected != version) {
                return Err(ScheduleError::Changed { id: id.to_owned(), version });
            }
            let mut new = match &known {
                None => ScheduleRecord::new(id, schedule.clone(), now)?,
                Some((_, record)) => {
                    let mut new = record.clone();
                    new.begin_change();
                    new.set(schedule.clone(), now)?;
                    new
                }
            };
            new.by.clone_from(&self.by);
            if self.save(known.as_ref().map(|(revision, record)| (*revision, record)), &new).await? {
                return Ok(new);
            }
        }
    }

    /// Reads a schedule in order to change it.
    pub(super) async fn begin(&self, id: &str) -> Result<ScheduleChange, ScheduleError> {
        let (revision, before) = self.load(id).await?.ok_or_else(|| ScheduleError::NotFound { id: id.to_owned() })?;
        let mut new = before.clone();
        new.begin_change();
        Ok(ScheduleChange { revision, before, new, now: self.client.now() })
    }

    /// Stores a change. Returns `false` if another one came first, so that this one must begin again.
    pub(super) async fn commit(&self, change: &ScheduleChange) -> Result<bool, StoreError> {
        self.save(Some((change.revision, &change.before)), &change.new).await
    }

    /// Changes a schedule until no other change comes first. `change` returns `false` to leave it as it is. Returns the
    /// schedule, and whether it was changed.
    pub(super) async fn change(
        &self,
        id: &str,
        mut change: impl FnMut(&mut ScheduleRecord, Timestamp) -> Result<bool, SpecError> + Send,
    ) -> Result<(ScheduleRecord, bool), ScheduleError> {
        loop {
            let mut begun = self.begin(id).await?;
            if !change(&mut begun.new, begun.now)? {
                return Ok((begun.before, false));
            }
            if self.commit(&begun).await? {
                return Ok((begun.new, true));
            }
        }
    }

    /// Pauses a schedule: its times start no runs until it is resumed. Runs that have started continue.
    ///
    /// # Errors
    ///
    /// [`ScheduleError::NotFound`], [`ScheduleError::Store`].
    pub async fn pause(&self, id: &str, reason: Option<&str>) -> Result<ScheduleRecord, ScheduleError> {
        let pause = |record: &mut ScheduleRecord, now| record.pause(now, self.by.clone(), reason.map(str::to_owned));
        Ok(self.change(id, pause).await?.0)
    }

    /// Ends a pause. What was missed while the schedule was paused does not start.
    ///
    /// # Errors
    ///
    /// [`ScheduleError::NotFound`], [`ScheduleError::Store`].
    pub async fn resume(&self, id: &str) -> Result<ScheduleRecord, ScheduleError> {
        Ok(self.change(id, ScheduleRecord::resume).await?.0)
    }

    /// Removes a schedule and its list of ticks, also one that cannot be read. Runs that have started continue. Returns whether it
    /// existed.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn remove(&self, id: &str) -> Result<bool, StoreError> {
        loop {
            match self.load(id).await {
                Ok(Some((revision, record))) => {
                    if self.remove_record(revision, &record).await? {
                        return Ok(true);
                    }
                }
                Ok(None) => break,
                Err(StoreError::Corrupt { .. }) => {
                    self.remove_unreadable(id).await?;
                    return Ok(true);
                }
                Err(error) => return Err(error),
            }
        }
        // An earlier removal may have failed halfway.
        self.remove_ticks(id).await?;
        Ok(false)
    }

    /// As [`Schedules::remove`], if the schedule has the expected [version](ScheduleRecord::version).
    ///
    /// # Errors
    ///
    /// [`ScheduleError::Changed`] if it has another version, with version 0 if it does not exist; [`ScheduleError::Store`].
    pub async fn remove_if(&self, id: &str, expected: u64) -> Result<(), ScheduleError> {
        loop {
            let known = self.load(id).await?;
            let version = known.as_ref().map_or(0, |(_, record)| record.version);
            match known {
                Some((revision, record)) if version == expected => {
                    if self.remove_record(revision, &record).await? {
                        return Ok(());
                    }
                }
                _ => return Err(ScheduleError::Changed { id: id.to_owned(), version }),
            }
        }
    }

    /// Adds a tick now, also while the schedule is paused. A server starts its run, within a second. If an earlier run
    /// has not ended, `overlap` decides, or else the schedule's own [`Overlap`].
    ///
    /// # Errors
    ///
    /// [`ScheduleError::NotFound`], [`ScheduleError::Store`].
    pub async fn trigger(&self, id: &str, overlap: Option<Overlap>) -> Result<Tick, ScheduleError> {
        loop {
            let change = self.begin(id).await?;
            let mut nominal = change.now;
            while self.tick(&change.before, &tick_key(nominal, TickCause::Manual)).await?.is_some() {
                nominal = Timestamp(nominal.0.saturating_add(1));
            }
            if let Some(tick) = self.add_tick(change, nominal, overlap).await? {
                return Ok(tick);
            }
        }
    }

    /// As [`Schedules::trigger`], with the nominal time of the tick: the same call again adds no second tick and returns the
    /// first one as it is now.
    ///
    /// # Errors
    ///
    /// As [`Schedules::trigger`].
    pub async fn trigger_at(
        &self,
        id: &str,
        nominal: Timestamp,
        overlap: Option<Overlap>,
    ) -> Result<Tick, ScheduleError> {
        loop {
            let change = self.begin(id).await?;
            if let Some(tick) = self.tick(&change.before, &tick_key(nominal, TickCause::Manual)).await? {
                return Ok(tick);
            }
            if let Some(tick) = self.add_tick(change, nominal, overlap).await? {
                return Ok(tick);
            }
        }
    }

    /// Adds a tick of a person. Returns `None` if another change came first.
    async fn add_tick(
        &self,
        mut change: ScheduleChange,
        nominal: Timestamp,
        overlap: Option<Overlap>,
    ) -> Result<Option<Tick>, ScheduleError> {
        // No server may have checked since a run has ended.
        change.new.observe(change.now, &self.observe(&change.before).await?)?;
        let tick = change.new.trigger(nominal, overlap, change.now)?;
        change.new.note_asker(&[nominal], TickCause::Manual, self.by.as_deref());
        Ok(self.commit(&change).await?.then_some(tick))
    }

    /// Adds ticks for the times in a range of the past, both ends included, that have not started a run. Returns what
    /// becomes of them. `overlap` decides about them; [`Overlap::BufferAll`] starts one after the other.
    ///
    /// # Errors
    ///
    /// [`ScheduleError::Backfill`], [`ScheduleError::NotFound`], [`ScheduleError::Store`].
    pub async fn backfill(
        &self,
        id: &str,
        from: Timestamp,
        until: Timestamp,
        overlap: Overlap,
    ) -> Result<Vec<Tick>, ScheduleError> {
        loop {
            let mut change = self.begin(id).await?;
            let mut times = change.before.past_times(from, until, change.now)?;
            let known = self.ticks_between(&change.before, from, until).await?;
            times.retain(|time| {
                let tick = known.get(&tick_key(*time, TickCause::Scheduled));
                tick.is_none_or(|tick| !matches!(tick.outcome, TickOutcome::Started { .. }))
            });
            change.new.observe(change.now, &self.observe(&change.before).await?)?;
            change.new.backfill(&times, overlap, change.now)?;
            change.new.note_asker(&times, TickCause::Backfill, self.by.as_deref());
            if self.commit(&change).await? {
                change.new.unlisted.retain(|tick| tick.cause == TickCause::Backfill);
                return Ok(change.new.unlisted);
            }
        }
    }

    /// Returns what happened at the times of a schedule, the last one first, after that of the nominal time and cause
    /// `before` in that order. Ticks are
    /// listed for 30 days.
    ///
    /// # Errors
    ///
    /// [`ScheduleError::NotFound`], [`ScheduleError::Store`].
    pub async fn ticks(
        &self,
        id: &str,
        before: Option<(Timestamp, TickCause)>,
        limit: usize,
    ) -> Result<Vec<Tick>, ScheduleError> {
        let record = self.get(id).await?.ok_or_else(|| ScheduleError::NotFound { id: id.to_owned() })?;
        Ok(self.last_ticks(&record, before, limit).await?)
    }

    /// Returns the next times of a schedule, even if it is paused.
    ///
    /// # Errors
    ///
    /// [`ScheduleError::NotFound`], [`ScheduleError::Store`].
    pub async fn preview(&self, id: &str, count: usize) -> Result<Vec<PreviewedTime>, ScheduleError> {
        let record = self.get(id).await?.ok_or_else(|| ScheduleError::NotFound { id: id.to_owned() })?;
        Ok(preview(&record.schedule.when, self.client.now(), count)?)
    }
}

impl fmt::Debug for Schedules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Schedules")
    }
}
