//! What follows from the end of a run that has a parent or children: the parent learns of it, and its linked children are
//! cancelled. They are cancelled, too, when the parent begins to undo its stages.
//!
//! Who appends the end does both. If that process dies before, a worker that claims the parent or a server finds the end
//! ([`deliver_ends`], [`deliver_lost_ends`]), and a linked child is cancelled when it begins or is claimed next.

use backon::Retryable as _;
use futures::future::BoxFuture;

use super::client::Client;
use super::signals::SignalError;
use crate::machine::{BrainEnd, RunState, pending};
use crate::record::{Actor, ChildEnd, ChildLink, Path, Pending, RunId, Signal, SignalId, SignalKind, WaitSpec};
use crate::runner::clock::pauses;
use crate::runner::worker::load;
use crate::store::{PendingFilter, StoreError};

/// The reason of a child's cancellation after the end of its parent.
const ENDED: &str = "the run that has started it has ended";
/// The reason of a child's cancellation before its parent undoes its stages.
pub(in crate::runner) const UNDOES: &str = "the run that has started it undoes its stages";

/// Reports the end of a run to its parent, and cancels its linked children. What the store refuses is tried again, and then
/// logged.
pub(in crate::runner) async fn after_end(client: &Client, run: &RunId, state: &RunState) {
    let Some(end) = end(state) else { return };
    if let Some(parent) = &state.start.parent {
        deliver(client, &parent.run, ended(run, end)).await;
    }
    cancel_children(client, run, state, ENDED).await;
}

/// Cancels the linked children of a run that has ended or begins to undo its stages: they are part of its work. A child that is
/// cancelled already is left as it is.
pub(in crate::runner) async fn cancel_children(client: &Client, run: &RunId, state: &RunState, why: &str) {
    for (child, link) in &*state.children {
        // A fork has the children of its origin in its log.
        if *link != ChildLink::Detached && is_child(client, child, run).await {
            deliver(client, child, cancel(run, why)).await;
        }
    }
}

/// Cancels a linked child whose parent has ended. Returns whether it did.
pub(in crate::runner) async fn cancel_orphan(
    client: &Client,
    run: &RunId,
    state: &RunState,
) -> Result<bool, StoreError> {
    let Some(parent) = state.start.parent.as_ref().filter(|parent| parent.link != ChildLink::Detached) else {
        return Ok(false);
    };
    let has_ended = match client.store().run(&parent.run).await {
        Ok(row) => row.status.is_over(),
        Err(StoreError::NoSuchRun { .. }) => true,
        Err(error) => return Err(error),
    };
    if has_ended {
        deliver(client, run, cancel(&parent.run, ENDED)).await;
    }
    Ok(has_ended)
}

/// Reports to a run the ends of the children for which it waits. Returns whether any is new to it.
pub(in crate::runner) async fn deliver_ends(
    client: &Client,
    run: &RunId,
    state: &RunState,
) -> Result<bool, StoreError> {
    let mut is_new = false;
    for waiting in pending(state) {
        is_new |= deliver_awaited(client, run, &waiting).await?;
    }
    Ok(is_new)
}

/// Reports the ends of children to all runs that wait for them.
pub(in crate::runner) async fn deliver_lost_ends(client: &Client) -> Result<(), StoreError> {
    for item in client.store().pending(&PendingFilter::builder().child(true).build()).await? {
        deliver_awaited(client, &item.run, &item.pending).await?;
    }
    Ok(())
}

/// Reports the end of a child to what waits for it. Another wait for the same child has a signal of its own.
async fn deliver_awaited(client: &Client, run: &RunId, waiting: &Pending) -> Result<bool, StoreError> {
    let mut is_new = false;
    for child in waiting.kind.waits().iter().filter_map(WaitSpec::child) {
        is_new |= deliver_end(client, run, &child, &waiting.call).await?;
    }
    Ok(is_new)
}

async fn deliver_end(client: &Client, run: &RunId, child: &RunId, waits: &Path) -> Result<bool, StoreError> {
    match client.store().run(child).await {
        Ok(row) if row.status.is_over() => {}
        // It works, is about to be started, or was removed.
        Ok(_) | Err(StoreError::NoSuchRun { .. }) => return Ok(false),
        Err(error) => return Err(error),
    }
    let Some(end) = end(&load::state(client.store(), child).await?) else { return Ok(false) };
    let signal = Signal { id: SignalId::of_engine(&format!("ended:{child}:{waits}")), ..ended(child, end) };
    match client.send(run, signal).await {
        Ok(_) => Ok(true),
        Err(SignalError::Refused(_)) => Ok(false),
        Err(SignalError::Store(error)) => Err(error),
    }
}

/// Returns how a run has ended; `None` if it has not.
fn end(state: &RunState) -> Option<ChildEnd> {
    Some(match state.root.as_ref()?.end.as_ref()? {
        BrainEnd::Completed(result) => ChildEnd::Completed(result.clone()),
        BrainEnd::Failed(failure) => ChildEnd::Failed(failure.clone()),
        BrainEnd::Cancelled => ChildEnd::Cancelled,
    })
}

fn ended(child: &RunId, end: ChildEnd) -> Signal {
    let kind = SignalKind::ChildEnded { child: child.clone(), end };
    Signal { id: SignalId::of_engine(&format!("ended:{child}")), actor: Actor::default(), kind }
}

fn cancel(parent: &RunId, why: &str) -> Signal {
    let kind = SignalKind::Cancel { reason: Some(why.to_owned()) };
    Signal { id: SignalId::of_engine(&format!("parent-ended:{parent}")), actor: Actor::default(), kind }
}

async fn is_child(client: &Client, child: &RunId, parent: &RunId) -> bool {
    let state = load::state(client.store(), child).await;
    state.is_ok_and(|state| state.start.parent.is_some_and(|of| of.run == *parent))
}

/// Sends a signal that the run may have no use for. The future is boxed, since a cancelled child may have children itself.
fn deliver<'a>(client: &'a Client, to: &'a RunId, signal: Signal) -> BoxFuture<'a, ()> {
    Box::pin(async move {
        let passes = |error: &SignalError| {
            matches!(error, SignalError::Store(StoreError::Failed { .. } | StoreError::Unknown { .. }))
        };
        match (|| client.send(to, signal.clone())).retry(pauses()).when(passes).await {
            // It has ended, or waits for nothing.
            Ok(_) | Err(SignalError::Refused(_) | SignalError::Store(StoreError::NoSuchRun { .. })) => {}
            Err(SignalError::Store(error)) => {
                tracing::warn!(run = %to, signal = %signal.id, %error, "cannot report the end of a run");
            }
        }
    })
}
