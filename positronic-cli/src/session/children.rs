//! Child runs for whose ends a run waits.

use positronic_core::record::{Pending, RunId, Status};
use positronic_core::runner::Client;
use positronic_core::store::{PendingFilter, PendingItem, StoreError};

/// Returns for what the runs wait whose ends these items wait for, and theirs; nothing if one of them goes on by itself.
pub(crate) async fn blocked_children(client: &Client, pending: &[Pending]) -> Result<Vec<PendingItem>, StoreError> {
    let (mut open, mut blocked) = (children(pending), Vec::new());
    while let Some(child) = open.pop() {
        let items = client.store().pending(&PendingFilter::builder().run(child.clone()).build()).await?;
        // One that only sleeps has no items.
        if items.is_empty() || client.store().run(&child).await?.status != Status::Waiting {
            return Ok(Vec::new());
        }
        for item in items {
            match item.pending.kind.is_for_run() {
                true => open.extend(children(std::slice::from_ref(&item.pending))),
                false => blocked.push(item),
            }
        }
    }
    Ok(blocked)
}

fn children(pending: &[Pending]) -> Vec<RunId> {
    let waits = pending.iter().filter(|pending| pending.kind.is_for_run()).flat_map(|pending| pending.kind.waits());
    waits.map(|wait| RunId::new(wait.identifier.as_str())).collect()
}
