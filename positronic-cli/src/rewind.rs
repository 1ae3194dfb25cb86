//! Winds a cassette on to where a run is: what the run has been told already is not played again.

use positronic_core::model::cassette::{Cassette, Pending};
use positronic_core::model::{Model as _, NoDeltas};
use positronic_core::projection::request_for;
use positronic_core::record::{Body, Event, RunId, Seq};
use positronic_core::store::StoreError;

use crate::answers::REPLY;
use crate::failure::Failure;
use crate::kept::Kept;

/// Winds a cassette on over the log of a run, if there is one.
pub(crate) async fn rewind(cassette: &Cassette, kept: &Kept, run: &RunId) -> Result<(), Failure> {
    let log = match kept.control().events(run, Seq(0)).await {
        Err(StoreError::NoSuchRun { .. }) => return Ok(()),
        log => log?,
    };
    // What was said before it is a part of what it has asked.
    let history = kept.control().history(run).await?;
    for (index, event) in log.iter().enumerate() {
        let later = log.get(index + 1..).unwrap_or_default();
        match &event.body {
            Body::LoopModelCall { .. } if later.iter().any(|later| answers(later, event)) => {
                let log = log.iter().map(|event| &**event);
                if let Ok(request) = request_for(log, event.seq, history.clone(), |_| None) {
                    // What code answers was never asked of a cassette.
                    if !request.settings.in_code {
                        _ = cassette.call(&request, &NoDeltas).await;
                    }
                }
            }
            Body::LoopApprovalDecided { .. } | Body::BudgetDecided { .. } => {
                _ = cassette.next_signal(&[Pending::Approval(&event.path)]);
            }
            Body::LoopResume { wait, signal: Some(_), .. } => {
                let before = log.get(..index).unwrap_or_default();
                let waits = before.iter().rev().find_map(|before| match &before.body {
                    Body::LoopWait { waits, .. } if before.path == event.path => Some(waits),
                    _ => None,
                });
                let Some(wait) = waits.and_then(|waits| waits.get(usize::try_from(*wait).ok()?)) else { continue };
                _ = cassette.next_signal(&[match wait.webhook.as_str() {
                    REPLY => Pending::Reply(&event.path),
                    name => Pending::Webhook { name, identifier: &wait.identifier },
                }]);
            }
            _ => {}
        }
    }
    Ok(())
}

/// Says whether an event is the outcome of a request.
fn answers(event: &Event, request: &Event) -> bool {
    let Body::LoopModelCall { attempt: asked, .. } = &request.body else { return false };
    event.path == request.path
        && match &event.body {
            Body::LoopModelResult { .. } => true,
            Body::LoopModelRetry { attempt, .. } | Body::LoopAnswerRefused { attempt, .. } => attempt == asked,
            _ => false,
        }
}
