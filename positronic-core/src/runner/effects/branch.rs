//! Branches: which arm is chosen, and what begins with it.

use crate::definition::{ArmBody, ArmDefinition, BranchStage, StageBody};
use crate::error::{Error, Result, caught_now};
use crate::machine::Outcome;
use crate::record::{Change, Path};
use crate::runner::worker::Worker;

pub(super) fn choose(worker: &mut Worker, path: &Path) -> Option<Outcome> {
    let document = worker.document(path)?;
    let chosen = branch_of(worker, path).and_then(|branch| {
        let index = caught_now(|| (branch.choose)(&document))?;
        branch.arms.get(index).map(ArmDefinition::shape).ok_or_else(|| Error::new("the arm is one of another branch"))
    });
    Some(Outcome::Chosen(chosen))
}

pub(super) fn take_arm(worker: &mut Worker, path: &Path) -> Option<Outcome> {
    let document = worker.document(path)?;
    let arm = worker.state.owner(path)?.arm.clone()?.name;
    let change = branch_of(worker, path).and_then(|branch| match branch.arm(&arm).map(|arm| &arm.body) {
        Some(ArmBody::Pass(next)) => {
            let next = caught_now(|| next(&document))?;
            Ok(Change::between(document.json(), &next))
        }
        Some(ArmBody::Brain(_)) | None => {
            Err(Error::new(format!("the brain's code has no arm `{arm}` without a brain")))
        }
    });
    Some(Outcome::StageEnded(change))
}

fn branch_of(worker: &Worker, path: &Path) -> Result<BranchStage> {
    let branch = worker.frames.stage_at(path).and_then(StageBody::as_branch).cloned();
    branch.ok_or_else(|| Error::new("the brain's code has no such branch"))
}
