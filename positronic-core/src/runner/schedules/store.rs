//! The entries of schedules: records, ticks, and when each record must be checked.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Schedules;
use crate::record::{TickCause, Timestamp};
use crate::schedule::{ScheduleRecord, Tick, tick_key, time_key};
use crate::store::{Entry, EntryFilter, StoreError};

const SCHEDULE: &str = "schedule";
/// Keys are a time and the id of a schedule; the values are null.
const DUE: &str = "schedule_due";
const PAGE: usize = 200;
/// How long ticks are listed, in days.
const LISTED: u64 = 30;
/// How many old ticks a change removes at most, so that no change takes long.
const SWEPT: usize = 10;

fn ticks_of(schedule: &str) -> String {
    format!("tick/{schedule}")
}

/// Returns a key behind all that begin with a time.
fn behind(time: Timestamp) -> String {
    time_key(time) + "~"
}

fn encode(value: &impl Serialize) -> Result<Value, StoreError> {
    let unencodable = |error: serde_json::Error| StoreError::Failed { message: error.to_string() };
    serde_json::to_value(value).map_err(unencodable)
}

fn decode<T: DeserializeOwned>(kind: &str, Entry { key, value, .. }: Entry) -> Result<T, StoreError> {
    serde_json::from_value(value)
        .map_err(|error| StoreError::Corrupt { what: format!("the {kind} `{key}`"), reason: error.to_string() })
}

impl Schedules {
    /// Reads a record with its revision.
    pub(super) async fn load(&self, id: &str) -> Result<Option<(u64, ScheduleRecord)>, StoreError> {
        let Some(entry) = self.client.store().entry(SCHEDULE, id).await? else { return Ok(None) };
        Ok(Some((entry.revision, decode(SCHEDULE, entry)?)))
    }

    /// Reads all records with their ids. One that cannot be decoded does not hide the others.
    pub(super) async fn records(&self) -> Result<Vec<(String, Result<ScheduleRecord, StoreError>)>, StoreError> {
        let entries = self.entries(SCHEDULE, None, None).await?;
        Ok(entries.into_iter().map(|entry| (entry.key.clone(), decode(SCHEDULE, entry))).collect())
    }

    /// Reads the entries of a kind after a key and up to another one, in pages.
    async fn entries(&self, kind: &str, after: Option<String>, until: Option<&str>) -> Result<Vec<Entry>, StoreError> {
        let mut filter = EntryFilter::builder().kind(kind).limit(PAGE).build();
        filter.after = after;
        let mut all = Vec::new();
        loop {
            let page = self.client.store().entries(&filter).await?;
            let is_last = page.len() < PAGE;
            filter.after = page.last().map(|entry| entry.key.clone());
            all.extend(page);
            let fitting = all.partition_point(|entry| until.is_none_or(|until| *entry.key <= *until));
            if is_last || fitting < all.len() {
                all.truncate(fitting);
                return Ok(all);
            }
        }
    }

    /// Stores a changed record in place of the one with a revision. Returns `false` if another change came first.
    pub(super) async fn save(
        &self,
        before: Option<(u64, &ScheduleRecord)>,
        after: &ScheduleRecord,
    ) -> Result<bool, StoreError> {
        if let Some((_, before)) = before {
            // The record has only the ticks of its last change.
            self.list_ticks(before).await?;
        }
        let value = encode(after)?;
        let revision = before.map(|(revision, _)| revision);
        match self.client.store().put_entry(SCHEDULE, &after.id, &value, revision).await {
            Ok(_) => {}
            Err(StoreError::EntryChanged { .. }) => return Ok(false),
            Err(lost @ StoreError::Unknown { .. }) => {
                let stored = self.client.store().entry(SCHEDULE, &after.id).await?;
                if stored.is_none_or(|entry| entry.value != value) {
                    return Err(lost);
                }
            }
            Err(error) => return Err(error),
        }
        let check = before.and_then(|(_, before)| before.next_check);
        if check != after.next_check {
            self.plan_check(&after.id, check, after.next_check).await?;
        }
        Ok(true)
    }

    /// Changes when a schedule must be checked.
    async fn plan_check(&self, id: &str, old: Option<Timestamp>, new: Option<Timestamp>) -> Result<(), StoreError> {
        let key = |time: Timestamp| format!("{}/{id}", time_key(time));
        if let Some(new) = new {
            match self.client.store().put_entry(DUE, &key(new), &Value::Null, None).await {
                Ok(_) | Err(StoreError::EntryChanged { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        match old {
            Some(old) => self.remove_key(DUE, &key(old)).await,
            None => Ok(()),
        }
    }

    /// Lists the schedules that must be checked, with the time.
    pub(super) async fn due_checks(&self, now: Timestamp) -> Result<Vec<(String, String)>, StoreError> {
        let due = self.entries(DUE, None, Some(&behind(now))).await?;
        let check = |entry: Entry| entry.key.split_once('/').map(|(time, id)| (time.to_owned(), id.to_owned()));
        Ok(due.into_iter().filter_map(check).collect())
    }

    /// Removes the check of a schedule at a time at which it is not due.
    pub(super) async fn remove_check(&self, time: &str, id: &str) -> Result<(), StoreError> {
        self.remove_key(DUE, &format!("{time}/{id}")).await
    }

    /// Removes an entry, whatever its revision is.
    async fn remove_key(&self, kind: &str, key: &str) -> Result<(), StoreError> {
        while let Some(entry) = self.client.store().entry(kind, key).await? {
            match self.client.store().remove_entry(kind, key, entry.revision).await {
                Err(StoreError::EntryChanged { .. }) => {}
                removed => return removed,
            }
        }
        Ok(())
    }

    /// Removes the record with a revision, and what belongs to it. Returns `false` if another change came first.
    pub(super) async fn remove_record(&self, revision: u64, record: &ScheduleRecord) -> Result<bool, StoreError> {
        match self.client.store().remove_entry(SCHEDULE, &record.id, revision).await {
            Err(StoreError::EntryChanged { .. }) => return Ok(false),
            removed => removed?,
        }
        if let Some(check) = record.next_check {
            self.remove_check(&time_key(check), &record.id).await?;
        }
        self.remove_ticks(&record.id).await?;
        Ok(true)
    }

    /// Removes a record that cannot be decoded. The entry of its next check stays, since its time is unknown; that check removes it.
    pub(super) async fn remove_unreadable(&self, id: &str) -> Result<(), StoreError> {
        self.remove_key(SCHEDULE, id).await?;
        self.remove_ticks(id).await
    }

    /// Removes the list of ticks of a schedule.
    pub(super) async fn remove_ticks(&self, id: &str) -> Result<(), StoreError> {
        let kind = ticks_of(id);
        let filter = EntryFilter::builder().kind(kind.clone()).limit(PAGE).build();
        loop {
            let page = self.client.store().entries(&filter).await?;
            if page.is_empty() {
                return Ok(());
            }
            for entry in page {
                self.remove_key(&kind, &entry.key).await?;
            }
        }
    }

    /// Puts the ticks of a record's last change into the list of ticks, and removes old ones from it.
    async fn list_ticks(&self, record: &ScheduleRecord) -> Result<(), StoreError> {
        let (kind, store) = (ticks_of(&record.id), self.client.store());
        for tick in &record.unlisted {
            let (key, value) = (tick.key(), encode(tick)?);
            loop {
                let known = store.entry(&kind, &key).await?;
                let revision = known.as_ref().map(|entry| entry.revision);
                if let Some(entry) = known
                    && decode::<Tick>("tick", entry)?.change >= tick.change
                {
                    break;
                }
                match store.put_entry(&kind, &key, &value, revision).await {
                    Ok(_) => break,
                    Err(StoreError::EntryChanged { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        let Some(last) = record.unlisted.last() else { return Ok(()) };
        let oldest = EntryFilter::builder().kind(kind.clone()).limit(SWEPT).build();
        for entry in store.entries(&oldest).await? {
            let Ok(tick) = decode::<Tick>("tick", entry.clone()) else { continue };
            if last.at.since(tick.at.max(tick.nominal)).as_secs() > LISTED * 24 * 60 * 60 {
                self.remove_key(&kind, &entry.key).await?;
            }
        }
        Ok(())
    }

    /// Reads the ticks with nominal times in a range, both ends included, in order.
    pub(super) async fn ticks_between(
        &self,
        record: &ScheduleRecord,
        from: Timestamp,
        until: Timestamp,
    ) -> Result<BTreeMap<String, Tick>, StoreError> {
        let after = behind(Timestamp(from.0.saturating_sub(1)));
        let mut ticks = BTreeMap::new();
        for entry in self.entries(&ticks_of(&record.id), Some(after), Some(&behind(until))).await? {
            ticks.insert(entry.key.clone(), decode("tick", entry)?);
        }
        let unlisted = record.unlisted.iter().filter(|tick| (from..=until).contains(&tick.nominal));
        ticks.extend(unlisted.map(|tick| (tick.key(), tick.clone())));
        Ok(ticks)
    }

    /// Reads ticks, the last one first.
    pub(super) async fn last_ticks(
        &self,
        record: &ScheduleRecord,
        before: Option<(Timestamp, TickCause)>,
        limit: usize,
    ) -> Result<Vec<Tick>, StoreError> {
        let mut filter = EntryFilter::builder().kind(ticks_of(&record.id)).reverse(true).limit(limit).build();
        filter.after = before.map(|(nominal, cause)| tick_key(nominal, cause));
        let mut ticks = BTreeMap::new();
        for entry in self.client.store().entries(&filter).await? {
            ticks.insert(entry.key.clone(), decode("tick", entry)?);
        }
        let unlisted = record.unlisted.iter().map(|tick| (tick.key(), tick.clone()));
        ticks.extend(unlisted.filter(|(key, _)| filter.passes(key)));
        Ok(ticks.into_values().rev().take(limit).collect())
    }

    /// Returns the tick with a key.
    pub(super) async fn tick(&self, record: &ScheduleRecord, key: &str) -> Result<Option<Tick>, StoreError> {
        if let Some(tick) = record.unlisted.iter().find(|tick| tick.key() == key) {
            return Ok(Some(tick.clone()));
        }
        let entry = self.client.store().entry(&ticks_of(&record.id), key).await?;
        entry.map(|entry| decode("tick", entry)).transpose()
    }
}
