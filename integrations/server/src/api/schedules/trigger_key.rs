//! Keys of repeated requests that trigger a schedule: the nominal time of the tick is stored under the key before the tick is
//! added.

use positronic_core::record::Timestamp;
use positronic_core::store::StoreError;

use super::body::OverlapName;
use crate::api::idempotency::{Key, sweep_keys, time_of};
use crate::problem::{Problem, ProblemType};
use crate::routes::RequestContext;

/// The nominal time of a person's tick.
pub(crate) struct Reserved {
    pub(crate) nominal: Timestamp,
    /// Whether an earlier request with the same key has reserved it.
    pub(crate) is_known: bool,
}

/// Returns the nominal time of the tick of a request. It is stored under the key before the tick, so that a repeated request adds
/// no second tick. It is kept for as long as ticks are listed.
pub(crate) async fn reserved(
    cx: &RequestContext,
    key: &Key,
    schedule: &str,
    overlap: Option<OverlapName>,
) -> Result<Reserved, Problem> {
    let (store, now) = (cx.app.client.store(), cx.app.now());
    if !key.is_given() {
        return Ok(Reserved { nominal: now, is_known: false });
    }
    let (kind, id) = (format!("trigger_key/{schedule}"), key.id(&format!("trigger\n{schedule}")));
    let value = serde_json::json!({ "at": now, "overlap": overlap });
    let known = match store.put_entry(&kind, &id, &value, None).await {
        Ok(_) => None,
        Err(StoreError::EntryChanged { .. }) => store.entry(&kind, &id).await?,
        Err(error) => return Err(error.into()),
    };
    let Some(known) = known else {
        sweep_keys(store, &kind, &id, now).await?;
        return Ok(Reserved { nominal: now, is_known: false });
    };
    let nominal = time_of(&known).ok_or(ProblemType::Conflict)?;
    if known.value.get("overlap") == value.get("overlap") {
        Ok(Reserved { nominal, is_known: true })
    } else {
        Err(ProblemType::KeyReused.into())
    }
}
