//! The loop whose dialogue a loop continues: the one that its configuration names, or the one whose call handed over to its brain.

use crate::definition::LoopDefinition;
use crate::error::{Error, Result};
use crate::record::{ContinuedLoop, Path};
use crate::runner::worker::Worker;

/// Returns the loop whose dialogue a loop that begins continues.
pub(super) fn continued(worker: &Worker, path: &Path, definition: &LoopDefinition) -> Result<Option<ContinuedLoop>> {
    let Some(brain) = path.parent() else { return Ok(None) };
    let Some((stage, dialogue)) = &definition.continue_from else { return Ok(handed_over(worker, &brain)) };
    let earlier = Path::is_stage_name(stage)
        .then(|| brain.stage(stage))
        .filter(|earlier| worker.shared.prompts().get(earlier).is_some_and(|prompt| prompt.outcome.is_some()));
    match earlier {
        Some(path) => Ok(Some(ContinuedLoop { path, dialogue: *dialogue })),
        None => Err(Error::new(format!(
            "it continues from `{stage}`, and no loop of the brain with this name has ended; name one that comes before it"
        ))),
    }
}

/// Returns the loop that handed its dialogue over to a brain, unless another loop of the brain has taken it over.
fn handed_over(worker: &Worker, brain: &Path) -> Option<ContinuedLoop> {
    let call = worker.state.call(brain).filter(|call| call.flags.handoff)?;
    let is_taken = worker.shared.prompts().iter().any(|prompt| prompt.path.parent().as_ref() == Some(brain));
    let dialogue = worker.frames.tool(brain, &call.tool).map(|tool| tool.dialogue).unwrap_or_default();
    brain.parent().filter(|_| !is_taken).map(|path| ContinuedLoop { path, dialogue })
}
