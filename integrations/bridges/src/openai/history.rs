//! Finds the conversation that a chat continues whose client sends all messages each time and no id: an answer's conversation is stored
//! under the hash of the messages and the answer. The hash is of what the caller itself has been sent, so that it finds nothing else.

use std::sync::Arc;

use positronic_core::record::{RunSummary, Seq, Timestamp, sha256};
use positronic_core::store::{Entry, EntryFilter, StoreError};
use positronic_server::extension::RequestContext;
use positronic_server::{Problem, ProblemType, REDACTED};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::newest::{HistoryEntry, Newest};
use super::response::next_turn;
use super::speech::AskedCall;

const KIND: &str = "openai_chat";
/// How long a chat can be continued, in microseconds: 30 days.
const KEPT_FOR: i64 = 30 * 24 * 3_600_000_000;
/// How many old entries are removed with each new one.
const SWEPT: usize = 20;

/// The conversation after an answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct KnownChat {
    pub(super) conversation: String,
    at: Timestamp,
    run: String,
    next: Seq,
}

impl KnownChat {
    /// Returns whether nothing has been said to the conversation since. What people have decided meanwhile is not a turn.
    pub(super) async fn is_latest(&self, cx: &RequestContext, last: &RunSummary) -> Result<bool, Problem> {
        if last.run.as_str() != self.run {
            return Ok(false);
        }
        let log = cx.client().events(&last.run, Seq(0)).await?;
        Ok(next_turn(&log, Seq(self.next.0.saturating_sub(1))).is_none())
    }
}

/// What an answer is remembered by.
pub(super) struct Remembered {
    pub(super) cx: Arc<RequestContext>,
    pub(super) newest: Newest,
    pub(super) conversation: String,
}

impl Remembered {
    /// Stores the conversation of an answer to the brain's caller: a text and calls.
    pub(super) async fn remember(&self, brain: &str, said: &str, calls: &[AskedCall]) {
        let Self { cx, newest, conversation } = self;
        if let Err(problem) = remember(cx, brain, newest, (said, calls), conversation).await {
            tracing::warn!(kind = problem.kind().slug(), "cannot remember the conversation of an answer");
        }
    }
}

fn key(cx: &RequestContext, brain: &str, said: &[HistoryEntry]) -> Result<String, Problem> {
    let caller = cx.caller()?;
    let known = json!([caller.subject(), caller.user_id(), brain, said]);
    Ok(sha256(known.to_string().as_bytes()))
}

/// Finds the conversation of the messages before the newest one.
pub(super) async fn find(cx: &RequestContext, brain: &str, newest: &Newest) -> Result<Option<KnownChat>, Problem> {
    let entry = cx.client().store().entry(KIND, &key(cx, brain, &newest.before)?).await?;
    Ok(entry.and_then(|entry| serde_json::from_value(entry.value).ok()))
}

async fn remember(
    cx: &RequestContext,
    brain: &str,
    newest: &Newest,
    (answer, calls): (&str, &[AskedCall]),
    conversation: &str,
) -> Result<(), Problem> {
    let Some(last) = cx.conversation_rows(conversation).await?.into_iter().next() else { return Ok(()) };
    // The client sends back what it got.
    let answer = cx.viewer()?.redacted(&answer.to_owned()).unwrap_or_else(|| REDACTED.to_owned());
    let said = newest.answered(&answer, calls.iter().map(|call| call.id.as_str()));
    let (store, key, at) = (cx.client().store(), key(cx, brain, &said)?, cx.client().now());
    let answered = KnownChat { conversation: conversation.to_owned(), at, run: last.run.to_string(), next: last.next };
    let value = serde_json::to_value(answered).map_err(|error| Problem::new(ProblemType::Internal).detail(error))?;
    let known = store.entry(KIND, &key).await?.map(|entry| entry.revision);
    match store.put_entry(KIND, &key, &value, known).await {
        Ok(_) | Err(StoreError::EntryChanged { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    for entry in store.entries(&EntryFilter::builder().kind(KIND).after(key.as_str()).limit(SWEPT).build()).await? {
        if is_old(&entry, at) {
            match store.remove_entry(KIND, &entry.key, entry.revision).await {
                Ok(()) | Err(StoreError::EntryChanged { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}

fn is_old(entry: &Entry, now: Timestamp) -> bool {
    let at = entry.value.get("at").and_then(serde_json::Value::as_i64).unwrap_or_default();
    now.0.saturating_sub(at) > KEPT_FOR
}
