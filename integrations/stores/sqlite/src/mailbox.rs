//! The mailbox tables.

use positronic_core::record::{RunId, Seq, SignalId, Timestamp};
use positronic_core::store::{DeliveryState, InboundWebhook, MailboxEntry, PostOutcome};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::columns::{decode, seq};
use super::failure::DbError;

/// Stores a webhook, and deletes expired ones.
pub(super) fn post(db: &Connection, mail: &InboundWebhook, content: &str) -> Result<PostOutcome, DbError> {
    db.prepare_cached("DELETE FROM mail WHERE expires <= ?1")?.execute([mail.at.0])?;
    let known = db
        .prepare_cached("SELECT taken_by, taken_at FROM mail WHERE id = ?1")?
        .query_row([mail.id.as_str()], |row| Ok((row.get::<_, Option<String>>(0)?, row.get::<_, Option<i64>>(1)?)))
        .optional()?;
    match known {
        Some((Some(run), at)) => Ok(PostOutcome::Delivered { run: RunId::from(run), seq: seq(at.unwrap_or_default()) }),
        Some((None, _)) => Ok(PostOutcome::Duplicate),
        None => {
            let sql = "INSERT INTO mail (id, webhook, identifier, at, expires, content)
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
            let (id, at, expires) = (mail.id.as_str(), mail.at.0, mail.expires.0);
            let row = params![id, mail.webhook, mail.identifier, at, expires, content];
            db.prepare_cached(sql)?.execute(row)?;
            Ok(PostOutcome::New)
        }
    }
}

/// Returns the run that received a webhook, and the first event of the append that delivered it.
pub(super) fn taker(db: &Connection, mail: &SignalId) -> Result<Option<(RunId, Seq)>, DbError> {
    let sql = "SELECT taken_by, taken_at FROM mail WHERE id = ?1 AND taken_by IS NOT NULL";
    let taker = db.prepare_cached(sql)?.query_row([mail.as_str()], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, Option<i64>>(1)?.unwrap_or_default()))
    });
    Ok(taker.optional()?.map(|(run, at)| (RunId::from(run), seq(at))))
}

/// Returns the oldest undelivered webhook that was received at `since` or later.
pub(super) fn oldest(
    db: &Connection,
    webhook: &str,
    identifier: &str,
    since: Timestamp,
    now: Timestamp,
) -> Result<Option<InboundWebhook>, DbError> {
    let sql = "SELECT content FROM mail WHERE webhook = ?1 AND identifier = ?2 AND taken_by IS NULL AND at >= ?3
               AND expires > ?4 ORDER BY at, id LIMIT 1";
    let mut statement = db.prepare_cached(sql)?;
    let content: Option<String> =
        statement.query_row(params![webhook, identifier, since.0, now.0], |row| row.get(0)).optional()?;
    content.map(|content| decode("a webhook", &content)).transpose()
}

const SELECT_ENTRY: &str = "SELECT id, webhook, identifier, at, expires, taken_by, taken_at, content FROM mail";

/// Lists all entries.
pub(super) fn all(db: &Connection) -> Result<Vec<MailboxEntry>, DbError> {
    let mut statement = db.prepare_cached(&format!("{SELECT_ENTRY} ORDER BY at, id"))?;
    let mut rows = statement.query([])?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        entries.push(mailbox_entry(row)?);
    }
    Ok(entries)
}

/// Returns the entry of one webhook.
pub(super) fn one(db: &Connection, mail: &SignalId) -> Result<Option<MailboxEntry>, DbError> {
    let mut statement = db.prepare_cached(&format!("{SELECT_ENTRY} WHERE id = ?1"))?;
    let mut rows = statement.query([mail.as_str()])?;
    rows.next()?.map(mailbox_entry).transpose()
}

fn mailbox_entry(row: &Row<'_>) -> Result<MailboxEntry, DbError> {
    let id = SignalId::from(row.get::<_, String>(0)?);
    let delivery = match row.get::<_, Option<String>>(5)? {
        Some(run) => DeliveryState::Delivered {
            run: RunId::from(run),
            seq: seq(row.get::<_, Option<i64>>(6)?.unwrap_or_default()),
        },
        None => DeliveryState::Undelivered(decode(&format!("the webhook `{id}`"), &row.get::<_, String>(7)?)?),
    };
    let (webhook, identifier) = (row.get(1)?, row.get(2)?);
    Ok(MailboxEntry { id, webhook, identifier, at: Timestamp(row.get(3)?), expires: Timestamp(row.get(4)?), delivery })
}

/// Deletes an undelivered webhook.
pub(super) fn discard(db: &Connection, mail: &SignalId) -> Result<(), DbError> {
    let sql = "DELETE FROM mail WHERE id = ?1 AND taken_by IS NULL";
    db.prepare_cached(sql)?.execute([mail.as_str()])?;
    Ok(())
}
