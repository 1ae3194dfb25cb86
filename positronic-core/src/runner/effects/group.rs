//! Groups of brains: their beginning, the options of each brain, and their results. Options and results are in the log, of which only
//! the part since the group's beginning is read.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::definition::{GroupResults, GroupStage, StageBody, recordable};
use crate::error::{Error, Result, caught_now};
use crate::machine::{GroupBegun, GroupFrame, Outcome, Winner};
use crate::record::{Change, EventKind, Failure, Path, Segment};
use crate::runner::worker::Worker;
use crate::runner::worker::stop_reason::ResumeError;

/// The number of events per read of the log.
const CHUNK: usize = 1024;

/// Computes the options of a group's brains.
pub(super) fn begin(worker: &mut Worker, path: &Path) -> Option<Outcome> {
    let document = worker.document(path)?;
    let now = worker.shared.now().max(worker.state.at);
    let begun = group_of(worker, path).and_then(|group| {
        let (options, due) = caught_now(|| (group.begin)(&document, now))?;
        let options = Value::Array(options);
        recordable("the list of options", &options, document.max_bytes())?;
        let Value::Array(options) = options else {
            return Err(Error::new("cannot record the options: expected a list"));
        };
        Ok(GroupBegun { options, limit: group.limit, due, brains: group.shapes() })
    });
    Some(Outcome::GroupBegun(begun))
}

/// Returns the options of the brain with this path, if it is one of a group.
pub(super) async fn item(worker: &mut Worker, path: &Path) -> std::result::Result<Option<Value>, ResumeError> {
    let Some(Segment::Call(_, index)) = path.last() else { return Ok(None) };
    let Some(group) = worker.state.owner(path).and_then(|owner| owner.stage.as_group()) else { return Ok(None) };
    let (stage, since) = (group.path.clone(), group.since);
    if worker.frames.items(&stage).is_none() {
        let events = worker.read(since, 1).await?;
        let items = events.first().and_then(|event| match &event.kind {
            EventKind::GroupStart { options, .. } => Some(options.as_slice()),
            _ => None,
        });
        worker.frames.set_items(stage.clone(), items.unwrap_or_default().into());
    }
    let items = worker.frames.items(&stage);
    Ok(items.and_then(|items| items.get(usize::try_from(index).ok()?)).cloned())
}

/// Computes the next state from the results of a group.
pub(super) async fn finish(worker: &mut Worker, path: &Path) -> std::result::Result<Option<Outcome>, ResumeError> {
    let Some(document) = worker.document(path) else { return Ok(None) };
    let Some(group) = worker.state.owner(path).and_then(|owner| owner.stage.as_group()).cloned() else {
        return Ok(None);
    };
    let results = results(worker, &group).await?;
    let next = group_of(worker, path).and_then(|stage| {
        let next = caught_now(|| (stage.finish)(&document, results))?;
        Ok(Change::between(document.json(), &next))
    });
    Ok(Some(Outcome::StageEnded(next)))
}

/// Reads the results of a group from the log.
async fn results(worker: &mut Worker, group: &GroupFrame) -> std::result::Result<GroupResults, ResumeError> {
    if group.winner == Some(Winner::Expired) {
        return Ok(GroupResults::Expired);
    }
    let (mut from, mut ends) = (group.since, BTreeMap::new());
    while from < worker.state.next {
        let events = worker.read(from, CHUNK).await?;
        let Some(last) = events.last() else { break };
        from = last.seq.next();
        for event in &events {
            let Some(Segment::Call(_, index)) = event.path.last() else { continue };
            if event.path.parent().as_ref() != Some(&group.path) {
                continue;
            }
            match &event.kind {
                EventKind::BrainComplete { result } => _ = ends.insert(index, Ok(result.clone())),
                EventKind::BrainError(failure) => _ = ends.insert(index, Err::<Value, Failure>(failure.clone())),
                _ => {}
            }
        }
    }
    Ok(match group.winner {
        Some(Winner::Brain(index)) => {
            GroupResults::Won(index, ends.remove(&index).and_then(Result::ok).unwrap_or_default())
        }
        _ => GroupResults::All(ends.into_values().collect()),
    })
}

fn group_of(worker: &Worker, path: &Path) -> Result<GroupStage> {
    let group = worker.frames.stage_at(path).and_then(StageBody::as_group).cloned();
    group.ok_or_else(|| Error::new("the brain's code has no such group"))
}
