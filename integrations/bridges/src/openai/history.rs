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

/// How many conversations that say the same are known.
const MAX_CHATS: usize = 8;

/// The conversations of a caller in which the same was said, the last one first.
#[derive(Debug, Default, Serialize, Deserialize)]
struct KnownChats {
    at: Timestamp,
    chats: Vec<KnownChat>,
}

/// A conversation after an answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct KnownChat {
    pub(super) conversation: String,
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

/// What a caller has been answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct TurnAnswer<'a> {
    pub(super) text: &'a str,
    pub(super) calls: &'a [AskedCall],
    /// What the run waits for. Clients send it back as a refusal, as a text, or not at all.
    pub(super) refusal: Option<&'a str>,
}

/// What an answer is remembered by.
pub(super) struct Remembered {
    pub(super) cx: Arc<RequestContext>,
    pub(super) newest: Newest,
    pub(super) conversation: String,
}

impl Remembered {
    /// Stores the conversation of an answer to the brain's caller.
    pub(super) async fn remember(&self, brain: &str, answer: TurnAnswer<'_>) {
        let Self { cx, newest, conversation } = self;
        if let Err(problem) = remember(cx, brain, newest, answer, conversation).await {
            tracing::warn!(kind = problem.kind().slug(), "cannot remember the conversation of an answer");
        }
    }
}

fn key(cx: &RequestContext, brain: &str, said: &[HistoryEntry]) -> Result<String, Problem> {
    let caller = cx.caller()?;
    let known = json!([caller.subject(), caller.user_id(), brain, said]);
    Ok(sha256(known.to_string().as_bytes()))
}

/// Finds the conversations of the messages before the newest one.
pub(super) async fn find(cx: &RequestContext, brain: &str, newest: &Newest) -> Result<Vec<KnownChat>, Problem> {
    let entry = cx.client().store().entry(KIND, &key(cx, brain, &newest.before)?).await?;
    Ok(entry.map(|entry| known(&entry).chats).unwrap_or_default())
}

/// Returns what a client says to a conversation: its newest input, with the user's messages right before that, unless the caller has said
/// those in a conversation that has not answered them.
pub(super) async fn unsaid(cx: &RequestContext, brain: &str, newest: &Newest) -> Result<Newest, Problem> {
    match newest.with_unanswered() {
        Some(whole) if find(cx, brain, newest).await?.is_empty() => Ok(whole),
        _ => Ok(newest.clone()),
    }
}

fn known(entry: &Entry) -> KnownChats {
    serde_json::from_value(entry.value.clone()).unwrap_or_default()
}

async fn remember(
    cx: &RequestContext,
    brain: &str,
    newest: &Newest,
    TurnAnswer { text, calls, refusal }: TurnAnswer<'_>,
    conversation: &str,
) -> Result<(), Problem> {
    let Some(last) = cx.conversation_rows(conversation).await?.into_iter().next() else { return Ok(()) };
    let (store, viewer, at) = (cx.client().store(), cx.viewer()?, cx.client().now());
    let chat = KnownChat { conversation: conversation.to_owned(), run: last.run.to_string(), next: last.next };
    // The client sends back what it got.
    let sent = |text: String| viewer.redacted(&text).unwrap_or_else(|| REDACTED.to_owned());
    let answered = |text: String| newest.answered(&sent(text), calls.iter().map(|call| call.id.as_str()));
    let mut histories = vec![answered(text.to_owned())];
    if let Some(refusal) = refusal {
        histories.extend([answered(refusal.to_owned()), answered(format!("{text}\n\n{refusal}")), newest.unanswered()]);
        histories.dedup();
    }
    for said in histories {
        let key = key(cx, brain, &said)?;
        let entry = store.entry(KIND, &key).await?;
        let mut chats = vec![chat.clone()];
        chats.extend(
            entry.iter().flat_map(|entry| known(entry).chats).filter(|known| known.conversation != conversation),
        );
        chats.truncate(MAX_CHATS);
        let value = serde_json::to_value(KnownChats { at, chats });
        let value = value.map_err(|error| Problem::new(ProblemType::Internal).detail(error))?;
        match store.put_entry(KIND, &key, &value, entry.map(|entry| entry.revision)).await {
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
    }
    Ok(())
}

fn is_old(entry: &Entry, now: Timestamp) -> bool {
    let at = entry.value.get("at").and_then(serde_json::Value::as_i64).unwrap_or_default();
    now.0.saturating_sub(at) > KEPT_FOR
}
