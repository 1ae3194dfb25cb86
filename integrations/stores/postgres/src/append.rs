//! Appending: one statement, and so one transaction and one round trip.

use std::collections::BTreeSet;

use positronic_core::record::{Epoch, RunId, RunSummary, SignalId, Status, TriggerId};
use positronic_core::store::{Append, StoreError};
use sqlx_postgres::PgRow;

use crate::columns::{encode, number, seq};
use crate::connections::{Statement, get, statement};
use crate::failure::DbError;
use crate::text::{column, value};
use crate::timers::Changes;

/// An append with its documents already encoded.
pub(crate) struct Encoded {
    run: RunId,
    lines: Box<str>,
    summary: String,
    pending: Option<Vec<String>>,
    files: Vec<String>,
    timers: Changes,
    append: Append,
}

impl Encoded {
    /// Encodes an append.
    pub(crate) fn new(run: &RunId, append: Append) -> Result<Self, StoreError> {
        let lines = append.lines()?;
        let pending = append.index.pending.as_ref();
        let files: BTreeSet<&str> = Append::files(&lines).collect();
        Ok(Self {
            run: run.clone(),
            files: files.into_iter().map(str::to_owned).collect(),
            lines,
            summary: encode(&append.index.summary)?,
            pending: pending.map(|pending| pending.iter().map(encode).collect()).transpose()?,
            timers: Changes::new(&append.timers)?,
            append,
        })
    }

    /// Returns the number of the next event after the append.
    pub(crate) fn next(&self) -> u64 {
        self.append.expected.0 + self.append.events.len() as u64
    }

    /// Returns the statement.
    pub(crate) fn statement(&self, schema: &str) -> Statement {
        let marks: Vec<_> = (1..=45).map(|place| format!("${place}")).collect();
        let sql = format!("SELECT refusal, name, number, taker FROM {schema}.append_events({})", marks.join(", "));
        let (append, row, timers) = (&self.append, &self.append.index.summary, &self.timers);
        let lines: Vec<&str> = self.lines.lines().collect();
        let text = |text: &Option<String>| text.as_deref().map(|text| column(text).into_owned());
        let pending = append.index.pending.as_deref();
        let calls = pending.map(|all| all.iter().map(|one| one.call.as_str()).map(owned).collect::<Vec<_>>());
        let sinces = pending.map(|all| all.iter().map(|one| number(one.since.0)).collect::<Vec<_>>());
        let persons = pending.map(|all| all.iter().map(|one| one.kind.is_for_person()).collect::<Vec<_>>());
        let waits = || {
            (1_i64..)
                .zip(pending.unwrap_or_default())
                .flat_map(|(place, one)| one.kind.waits().iter().map(move |wait| (place, wait)))
        };
        let (signals, signal_seqs): (Vec<String>, Vec<i64>) =
            append.signals().map(|(signal, seq)| (owned(signal.as_str()), number(seq.0))).unzip();
        let (snapshot, prompts) = (append.snapshot.as_ref(), append.prompts.as_ref());
        statement(sql)
            .bind(owned(self.run.as_str()))
            .bind(number(append.expected.0))
            .bind(append.epoch.map(|epoch| number(epoch.0)))
            .bind(append.claims().map(|epoch| number(epoch.0)))
            .bind(lines)
            .bind(row.status.as_str())
            .bind(owned(&row.brain))
            .bind(text(&row.user))
            .bind(text(&row.conversation))
            .bind(row.after.as_ref().map(|run| owned(run.as_str())))
            .bind(row.started.0)
            .bind(row.at.0)
            .bind(wake(row))
            .bind(row.claim.as_ref().filter(|claim| !claim.released).map(|claim| owned(&claim.owner)))
            .bind(append.ends_deferral())
            .bind(self.summary.as_str())
            .bind(calls)
            .bind(sinces)
            .bind(persons)
            .bind(self.pending.as_deref())
            .bind(waits().map(|(place, _)| place).collect::<Vec<_>>())
            .bind(waits().map(|(_, wait)| owned(&wait.webhook)).collect::<Vec<_>>())
            .bind(waits().map(|(_, wait)| owned(&wait.identifier)).collect::<Vec<_>>())
            .bind(append.deliveries.iter().map(|mail| owned(mail.as_str())).collect::<Vec<_>>())
            .bind(&timers.changes)
            .bind(&timers.ids)
            .bind(&timers.dues)
            .bind(&timers.nexts)
            .bind(&timers.fired)
            .bind(&timers.conversations)
            .bind(&timers.users)
            .bind(&timers.origins)
            .bind(&timers.contents)
            .bind(&self.files)
            .bind(signals)
            .bind(signal_seqs)
            .bind(snapshot.map(|snapshot| number(snapshot.next.0)))
            .bind(snapshot.map(|snapshot| i64::from(snapshot.version)))
            .bind(snapshot.map(|snapshot| snapshot.content.as_str()))
            .bind(prompts.map(|part| number(part.from.0)))
            .bind(prompts.map(|part| number(part.next.0)))
            .bind(prompts.map(|part| i64::from(part.version)))
            .bind(prompts.map(|part| part.content.as_str()))
            .bind(append.sinks.iter().map(|sink| owned(sink)).collect::<Vec<_>>())
            .bind(append.claimant().map(owned))
    }

    /// Reads the outcome.
    pub(crate) fn outcome(&self, rows: &[PgRow]) -> Result<(), DbError> {
        let row = rows.first().ok_or_else(|| DbError::unreadable("the outcome of an append", "it has no row"))?;
        let Some(refusal) = get::<Option<String>>(row, 0)? else { return Ok(()) };
        let name = || get::<Option<String>>(row, 1).map(|name| value(name.unwrap_or_default()));
        let at = get::<Option<i64>>(row, 2)?.unwrap_or_default();
        let error = match refusal.as_str() {
            "conflict" => StoreError::Conflict { next: seq(at) },
            "fenced" => StoreError::Fenced { current: Epoch(seq(at).0) },
            "taken" => {
                let run = RunId::from(value(get::<Option<String>>(row, 3)?.unwrap_or_default()));
                StoreError::Taken { mail: SignalId::from(name()?), run, seq: seq(at) }
            }
            "not_due" => StoreError::NotDue { trigger: TriggerId::new(name()?) },
            "no_run_before" => StoreError::NoRunBefore {
                run: self.run.clone(),
                before: self.append.index.summary.after.clone().unwrap_or_else(|| self.run.clone()),
            },
            other => return Err(DbError::unreadable("the outcome of an append", format!("unknown refusal `{other}`"))),
        };
        Err(error.into())
    }
}

/// Encodes an id or a name for a column.
pub(crate) fn owned(text: &str) -> String {
    column(text).into_owned()
}

/// Returns when a run has work, as a column: running runs, and runs with perhaps unread webhooks, at any time.
fn wake(row: &RunSummary) -> Option<i64> {
    match row.status {
        Status::Running => Some(i64::MIN),
        Status::Waiting if row.mail => Some(i64::MIN),
        Status::Waiting => row.wake.map(|wake| wake.0),
        Status::Paused | Status::Completed | Status::Failed | Status::Cancelled => None,
    }
}
