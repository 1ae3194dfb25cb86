//! Timers.

use positronic_core::record::{Timer, Timestamp};
use positronic_core::store::{StoreError, TimerChange, TimerFilter, TimerOwner};
use sqlx_postgres::PgRow;

use crate::append::owned;
use crate::columns::{decode, encode, limit, number};
use crate::connections::{Select, Statement, get};
use crate::failure::DbError;
use crate::text::value;

/// The changes of an append, as arrays of columns.
#[derive(Default)]
pub(crate) struct Changes {
    pub(crate) changes: Vec<&'static str>,
    pub(crate) ids: Vec<String>,
    pub(crate) dues: Vec<Option<i64>>,
    pub(crate) nexts: Vec<Option<i64>>,
    pub(crate) fired: Vec<Option<i64>>,
    pub(crate) conversations: Vec<Option<String>>,
    pub(crate) users: Vec<Option<String>>,
    pub(crate) origins: Vec<Option<String>>,
    pub(crate) contents: Vec<Option<String>>,
}

impl Changes {
    /// Encodes changes.
    pub(crate) fn new(changes: &[TimerChange]) -> Result<Self, StoreError> {
        let mut all = Self::default();
        for change in changes {
            let (name, id, due, next, timer) = match change {
                TimerChange::Set(timer) => ("set", &timer.trigger.id, Some(timer.trigger.due), None, Some(timer)),
                TimerChange::Deleted(id) => ("delete", id, None, None, None),
                TimerChange::Fired { id, due, next } => ("fire", id, Some(*due), *next, None),
            };
            all.changes.push(name);
            all.ids.push(owned(id.as_str()));
            all.dues.push(due.map(|due| due.0));
            all.nexts.push(next.map(|next| next.0));
            all.fired.push(timer.map(|timer| number(u64::from(timer.fired))));
            all.conversations.push(timer.and_then(|timer| timer.conversation.as_deref()).map(owned));
            all.users.push(timer.and_then(|timer| timer.user.as_deref()).map(owned));
            all.origins.push(timer.map(|timer| owned(timer.origin.as_str())));
            all.contents.push(timer.map(encode).transpose()?);
        }
        Ok(all)
    }
}

/// Returns the query that lists timers, earliest due time first.
pub(crate) fn select(schema: &str, filter: &TimerFilter) -> Statement {
    let mut query = Select::new(format!("SELECT id, due, fired, content FROM {schema}.timers WHERE true"));
    if let Some(id) = &filter.id {
        query.push(" AND id = ").bind(owned(id.as_str()));
    }
    if let Some(due) = filter.due {
        query.push(" AND due <= ").bind(due.0);
    }
    match &filter.owner {
        Some(TimerOwner::Conversation(id)) => query.push(" AND conversation = ").bind(owned(id)),
        Some(TimerOwner::User(name)) => query.push(" AND conversation IS NULL AND user_name = ").bind(owned(name)),
        Some(TimerOwner::Origin(run)) => {
            let query = query.push(" AND conversation IS NULL AND user_name IS NULL AND origin = ");
            query.bind(owned(run.as_str()))
        }
        None => &mut query,
    };
    query.push(" ORDER BY due, id");
    if let Some(most) = filter.limit {
        query.push(" LIMIT ").bind(limit(most));
    }
    query.statement()
}

/// Reads a timer. The columns override the document.
pub(crate) fn timer(row: &PgRow) -> Result<Timer, DbError> {
    let id = value(get(row, 0)?);
    let mut timer: Timer = decode(&format!("the timer `{id}`"), get::<&str>(row, 3)?)?;
    timer.trigger.due = Timestamp(get(row, 1)?);
    timer.fired = get::<i64>(row, 2)?.try_into().unwrap_or_default();
    Ok(timer)
}
