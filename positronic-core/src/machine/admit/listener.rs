//! Which open loop of a run gets a message of a person, or an update of a plugin.

use super::refusal::Refusal;
use crate::machine::frames::{LoopFrame, LoopPhase, OpenFrame};
use crate::machine::state::RunState;
use crate::record::{CallerTool, Path, Segment, StageShape};

/// Finds the loop that receives a message: the named one, or the only open loop of the outermost brain that has one; after a handoff, that of
/// the brain that has taken the dialogue over.
pub(super) fn listener(state: &RunState, to: Option<&Path>) -> Result<Path, Refusal> {
    // The summary iteration is the last one, so later messages would not be read.
    let is_last = |frame: &LoopFrame| frame.wrap_up.is_some() && !matches!(frame.phase, LoopPhase::Prepare);
    let reads_messages = |frame: &LoopFrame| !matches!(frame.phase, LoopPhase::Ending(_)) && !is_last(frame);
    if let Some(path) = to {
        return match state.loop_at(path) {
            Some(frame) if frame.path == *path && reads_messages(frame) => Ok(path.clone()),
            _ => Err(Refusal::NoListener(format!("the run has no open loop `{path}`"))),
        };
    }
    let mut brain = state.root.as_deref();
    while let Some(frame) = brain {
        if let Some(inner) = frame.stage.as_loop() {
            // The person talks to the brain that has taken the dialogue over, and the loop ends with it.
            let taken_over = inner.batch.iter().filter(|call| call.hands_over()).find_map(|call| call.inner());
            if taken_over.is_some() {
                brain = taken_over;
                continue;
            }
            if reads_messages(inner) {
                return Ok(inner.path.clone());
            }
        }
        let of_group = frame.stage.as_group().filter(|group| group.open.len() == 1);
        let only = of_group.and_then(|group| group.open.values().next()).map(|brain| &**brain);
        brain = frame.stage.as_brain().or(only);
    }
    let mut open = Vec::new();
    state.for_each_open(|frame| {
        if let OpenFrame::Loop(frame) = frame
            && reads_messages(frame)
        {
            open.push(format!("`{}`", frame.path));
        }
    });
    Err(Refusal::NoListener(if open.is_empty() {
        "no loop of the run is open, so no loop can receive the message".to_owned()
    } else {
        format!(
            "the message could be for any of the brains that run at the same time; name its loop: {}",
            open.join(", ")
        )
    }))
}

/// Refuses tools of the caller for a loop that takes none, or has a tool with the name of one of them.
pub(super) fn check_caller_tools(state: &RunState, listener: &Path, tools: &[CallerTool]) -> Result<(), Refusal> {
    if tools.is_empty() {
        return Ok(());
    }
    let stages = state.owner(listener).map(|owner| owner.stages.0.as_slice()).unwrap_or_default();
    let takes = |stage: &StageShape| stage.caller_tools && listener.last() == Some(Segment::Stage(&stage.name));
    if !stages.iter().any(takes) {
        let how = format!(
            "the loop `{listener}` does not take tools of its caller; its author opts in with `.caller_tools()` after it"
        );
        return Err(Refusal::CallerTools(how));
    }
    let own = state.loop_at(listener).into_iter().flat_map(|frame| frame.prepared.tools.tools());
    let own: Vec<_> = own.filter(|tool| !tool.flags.caller).collect();
    match CallerTool::collision(tools, &own) {
        Some((tool, own)) => Err(Refusal::CallerTools(format!(
            "the caller's tool `{tool}` has the name of the tool `{own}` of the loop `{listener}`; rename it"
        ))),
        None => Ok(()),
    }
}

/// Finds the loop whose plugin with this name is updated: the named one, or the only open loop of a brain that stores a state of the plugin.
pub(super) fn plugin_loop(state: &RunState, to: Option<&Path>, plugin: &str) -> Result<Path, Refusal> {
    let mut loops = Vec::new();
    state.for_each_open(|open| {
        if let OpenFrame::Loop(frame) = open
            && !matches!(frame.phase, LoopPhase::Ending(_))
            && to.is_none_or(|to| *to == frame.path)
            && state.owner(&frame.path).is_some_and(|brain| brain.plugins.get(plugin).is_some())
        {
            loops.push(&frame.path);
        }
    });
    match (loops.as_slice(), to) {
        ([only], _) => Ok(Path::clone(only)),
        ([], None) => Err(Refusal::NoListener(format!("no open loop of the run has a state of the plugin `{plugin}`"))),
        ([], Some(to)) => {
            Err(Refusal::NoListener(format!("the run has no open loop `{to}` with a state of the plugin `{plugin}`")))
        }
        (several, _) => {
            let several: Vec<_> = several.iter().map(|path| format!("`{path}`")).collect();
            let several = several.join(", ");
            Err(Refusal::NoListener(format!("several open loops have the plugin `{plugin}`: {several}; name one")))
        }
    }
}
