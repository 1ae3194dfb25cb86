//! Child runs for whose ends a run waits.

use positronic_core::record::{Pending, RunId, Status};
use positronic_core::runner::Client;
use positronic_core::store::{PendingFilter, PendingItem, StoreError};

/// Lists the pending items of the child runs that these items wait for, and of their children; `None` if one of them
/// continues by itself. A paused one has none.
pub(crate) async fn blocking_items(
    client: &Client,
    pending: &[Pending],
) -> Result<Option<Vec<PendingItem>>, StoreError> {
    let (mut open, mut blocked) = (children(pending), Vec::new());
    while let Some(child) = open.pop() {
        let items = client.store().pending(&PendingFilter::builder().run(child.clone()).build()).await?;
        let status = client.store().run(&child).await?.status;
        match status {
            Status::Paused => continue,
            Status::Waiting if !items.is_empty() => {}
            // One that only sleeps has no items.
            _ => return Ok(None),
        }
        for item in items {
            match item.pending.kind.is_for_run() {
                true => open.extend(children(std::slice::from_ref(&item.pending))),
                false => blocked.push(item),
            }
        }
    }
    Ok(Some(blocked))
}

fn children(pending: &[Pending]) -> Vec<RunId> {
    let waits = pending.iter().filter(|pending| pending.kind.is_for_run()).flat_map(|pending| pending.kind.waits());
    waits.map(|wait| RunId::new(wait.identifier.as_str())).collect()
}
