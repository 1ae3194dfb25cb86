//! The loop whose dialogue a loop continues: the one that its configuration names, or the one whose call handed over to its brain. And the
//! call that a loop makes first if its conversation stays with the brain of that call.

use std::sync::Arc;

use crate::definition::LoopDefinition;
use crate::error::{Error, Result};
use crate::machine::{BrainFrame, LoopFrame, LoopPhase, RunState};
use crate::record::{
    CODE, ContinuedLoop, Dialogue, HandedOver, ModelResponse, Part, Path, ProposedCall, ResponseMetadata, Segment,
    ToolId,
};
use crate::runner::worker::Worker;

/// Returns the loop whose dialogue a loop that begins continues.
pub(super) fn continued(worker: &Worker, path: &Path, definition: &LoopDefinition) -> Result<Option<ContinuedLoop>> {
    let Some(brain) = path.parent() else { return Ok(None) };
    let Some((stage, dialogue)) = &definition.continue_from else { return Ok(handed_over(worker, &brain)) };
    let earlier = Path::is_stage_name(stage)
        .then(|| brain.stage(stage))
        .filter(|earlier| worker.shared.prompts().get(earlier).is_some_and(|prompt| prompt.outcome.is_some()));
    match earlier {
        Some(path) => {
            let unread = unread(worker, &path);
            Ok(Some(ContinuedLoop { path, dialogue: *dialogue, unread }))
        }
        None => Err(Error::new(format!(
            "it continues from `{stage}`, and no loop of the brain with this name has ended; name one that comes before it"
        ))),
    }
}

/// Returns the loop that handed its dialogue over to a brain, unless another loop of the brain has taken it over.
fn handed_over(worker: &Worker, brain: &Path) -> Option<ContinuedLoop> {
    let call = worker.state.call(brain).filter(|call| call.hands_over())?;
    if worker.shared.prompts().iter().any(|prompt| prompt.path.parent().as_ref() == Some(brain)) {
        return None;
    }
    let dialogue = match worker.frames.tool(brain, &call.tool).map(|tool| tool.dialogue).unwrap_or_default() {
        // The summary is that of the first call, so it lacks what the brain has said since.
        Dialogue::Message if stays_with(&worker.state, brain).is_some() => Dialogue::Said,
        dialogue => dialogue,
    };
    let path = brain.parent()?;
    let unread = unread(worker, &path);
    Some(ContinuedLoop { path, dialogue, unread })
}

/// Returns how many messages of people a loop has not read, with which the loop that continues it begins.
fn unread(worker: &Worker, path: &Path) -> u32 {
    u32::try_from(worker.shared.prompts().unread(path).len()).unwrap_or(u32::MAX)
}

/// Returns where the conversation was handed over, if a call runs the brain with which it stays.
pub(super) fn stays_with<'a>(state: &'a RunState, path: &Path) -> Option<&'a HandedOver> {
    let call = state.call(path)?;
    let loop_at = path.parent()?;
    let Some(Segment::Stage(stage)) = loop_at.last() else { return None };
    state.owner(path)?.handed_over.as_deref().filter(|over| over.is_of(stage, &call.tool))
}

/// Lets a loop of a brain begin with the call of the brain with which its conversation stays. `frame` is the loop if it has begun. If its code
/// no longer has that tool, its model answers.
pub(in crate::runner) fn stay(
    definition: &mut LoopDefinition,
    brain: &BrainFrame,
    stage: &str,
    frame: Option<&LoopFrame>,
) {
    let begins = frame
        .is_none_or(|frame| frame.iteration == 0 && matches!(frame.phase, LoopPhase::Prepare | LoopPhase::Ask { .. }));
    let Some(over) = brain.handed_over.as_deref().filter(|over| begins && over.stage == stage) else { return };
    let tool = ToolId::new(&over.tool).ok().and_then(|id| definition.tools.get_mut(&id));
    let Some(tool) = tool.filter(|tool| tool.decl.flags.handoff && tool.decl.flags.stay) else { return };
    // A person has approved it when the dialogue was handed over.
    Arc::make_mut(tool).gate = None;
    let name = over.tool.clone();
    let call = ProposedCall { provider_id: None, name, arguments: over.arguments.to_string(), data: None };
    let (provider, model) = (CODE.to_owned(), CODE.to_owned());
    let metadata = ResponseMetadata { provider, model, ..ResponseMetadata::default() };
    definition.answer = Some(ModelResponse { parts: vec![Part::Call { index: 0 }], calls: vec![call], metadata });
    (definition.settings.in_code, definition.stays) = (true, true);
}
