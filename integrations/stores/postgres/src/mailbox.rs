//! The mailbox.

use positronic_core::record::{RunId, SignalId, Timestamp};
use positronic_core::store::{DeliveryState, InboundWebhook, MailboxEntry, PostOutcome};
use sqlx_postgres::PgRow;

use crate::append::owned;
use crate::columns::{decode, seq};
use crate::connections::{Statement, get, statement};
use crate::failure::DbError;
use crate::text::value;

/// Returns the statement that stores a webhook.
pub(crate) fn post(schema: &str, mail: &InboundWebhook, content: &str) -> Statement {
    statement(format!("SELECT is_new, taken_by, taken_at FROM {schema}.post_mail($1, $2, $3, $4, $5, $6)"))
        .bind(owned(mail.id.as_str()))
        .bind(owned(&mail.webhook))
        .bind(owned(&mail.identifier))
        .bind(mail.at.0)
        .bind(mail.expires.0)
        .bind(content)
}

/// Reads the outcome of storing a webhook.
pub(crate) fn posted(row: &PgRow) -> Result<PostOutcome, DbError> {
    if get(row, 0)? {
        return Ok(PostOutcome::New);
    }
    Ok(match get::<Option<String>>(row, 1)? {
        Some(run) => {
            let seq = seq(get::<Option<i64>>(row, 2)?.unwrap_or_default());
            PostOutcome::Delivered { run: RunId::from(value(run)), seq }
        }
        None => PostOutcome::Duplicate,
    })
}

/// Returns the statement that finds the oldest undelivered webhook.
pub(crate) fn oldest(schema: &str, webhook: &str, identifier: &str, since: Timestamp, now: Timestamp) -> Statement {
    let sql = format!(
        "SELECT content FROM {schema}.mail
         WHERE webhook = $1 AND identifier = $2 AND taken_by IS NULL AND at >= $3 AND expires > $4
         ORDER BY at, id LIMIT 1"
    );
    statement(sql).bind(owned(webhook)).bind(owned(identifier)).bind(since.0).bind(now.0)
}

/// Returns the statement that lists entries: all, or one.
pub(crate) fn entries(schema: &str, only: Option<&SignalId>) -> Statement {
    let sql = format!(
        "SELECT id, webhook, identifier, at, expires, taken_by, taken_at, content FROM {schema}.mail
         WHERE $1::text IS NULL OR id = $1 ORDER BY at, id"
    );
    statement(sql).bind(only.map(|id| owned(id.as_str())))
}

/// Reads an entry.
pub(crate) fn entry(row: &PgRow) -> Result<MailboxEntry, DbError> {
    let id = SignalId::from(value(get(row, 0)?));
    let delivery = match get::<Option<String>>(row, 5)? {
        Some(run) => DeliveryState::Delivered {
            run: RunId::from(value(run)),
            seq: seq(get::<Option<i64>>(row, 6)?.unwrap_or_default()),
        },
        None => DeliveryState::Undelivered(decode(
            &format!("the webhook `{id}`"),
            get::<Option<&str>>(row, 7)?.unwrap_or_default(),
        )?),
    };
    let (webhook, identifier) = (value(get(row, 1)?), value(get(row, 2)?));
    Ok(MailboxEntry {
        id,
        webhook,
        identifier,
        at: Timestamp(get(row, 3)?),
        expires: Timestamp(get(row, 4)?),
        delivery,
    })
}
