//! `plan`: a model splits a goal into sub-goals, each for a nested brain.
//!
//! A call has the frame of one brain, so the tool is a brain itself, the coordinator: it validates the plan, runs the sub-goals as
//! calls of a loop that is [scripted in code](positronic_core::dsl::Loop::scripted), and gathers the results. So sub-goals behave
//! like all calls: they are in the run's log, can wait for people at any depth, and resume after a crash.

use positronic_core::dsl::{IntoBrain, LoopContext, Options, Services, State, StepContext, Tool, Within, brain};
use positronic_core::record::{OutputKind, Path, Prompt, Segment};
use positronic_core::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use typed_builder::TypedBuilder;

/// The coordinator's stage for the sub-goals. Its name is used to count nested plans.
const STAGE: &str = "Sub-goals";

/// Options for running sub-goals.
#[derive(Debug, Clone, PartialEq, Eq, TypedBuilder)]
#[non_exhaustive]
pub struct PlanOptions {
    /// Whether they run sequentially or concurrently.
    #[builder(default)]
    pub order: PlanOrder,
    /// What to do when one fails.
    #[builder(default)]
    pub on_failure: OnFailure,
    /// The maximum number of sub-goals; 8 by default, the number of concurrent calls of a batch.
    #[builder(default = 8)]
    pub max_parts: usize,
    /// The maximum nesting of plans; 2 by default: a sub-goal may be split once more. Brains can nest 16
    /// deep, and every plan is two of them.
    #[builder(default = 2)]
    pub max_depth: usize,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self::builder().build()
    }
}

/// Whether sub-goals run sequentially or concurrently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PlanOrder {
    /// Sequentially; each gets the results of the earlier ones.
    #[default]
    InOrder,
    /// In groups of this size; each group gets the results of the earlier groups.
    InParallel(u32),
}

/// What to do when a sub-goal fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFailure {
    /// Begin no further ones, and return the results.
    #[default]
    Stop,
    /// Continue with the others, and return the results.
    GoOn,
}

/// A part of a goal, from a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SubGoal {
    /// A title of a few words.
    pub title: String,
    /// What is to be reached, with all that has to be known for it.
    pub goal: String,
}

/// The result of a sub-goal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct PlanPart {
    /// The sub-goal's title.
    pub title: String,
    /// The sub-goal.
    pub goal: String,
    /// Its status.
    pub status: PartStatus,
    /// The result of its brain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The status of a sub-goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PartStatus {
    /// Its brain completed.
    Done,
    /// Its brain failed, or could not begin.
    Failed,
    /// It was not begun, since an earlier one failed.
    NotBegun,
}

/// The result of a plan: the result of a call of `plan`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct PlanResult {
    /// The goal.
    pub goal: String,
    /// Whether all parts are done.
    pub complete: bool,
    /// The parts, in the order of the plan.
    pub parts: Vec<PlanPart>,
}

/// The arguments of the tool.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Split {
    /// The goal as a whole.
    goal: String,
    /// The parts into which it is split, in order.
    parts: Vec<SubGoal>,
}

/// Creates the tool that runs a plan. `part` computes the options of a sub-goal's brain, from the sub-goal and the results of
/// the earlier ones.
///
/// The brain may have the tool itself: its loops are configured when they run, so nested plans are only created when
/// needed, and too deep ones are rejected.
///
/// ```
/// use positronic_core::prelude::*;
/// use positronic_toolbox::{self as toolbox, PlanOptions, PlanOrder};
///
/// fn researcher() -> Brain<String, String> {
///     brain("Researcher")
///         .options::<String>()
///         .state(String::new())
///         .r#loop("Work", |cx| {
///             let options = PlanOptions::builder().order(PlanOrder::InParallel(4)).build();
///             cx.system("Reach the goal.").input(cx.options.as_str()).tools([toolbox::plan(
///                 researcher(),
///                 options,
///                 |part, _| part.goal.clone(),
///             )])
///         })
///         .build()
/// }
/// # let _ = researcher();
/// ```
#[must_use]
pub fn plan<O: Options, S: State, V: Services, B>(
    worker: B,
    options: PlanOptions,
    part: impl Fn(&SubGoal, &[PlanPart]) -> B::Options + Clone + Send + Sync + 'static,
) -> Tool<O, S, V>
where
    B: IntoBrain<Services: Within<V>, Result: Serialize>,
{
    let worker = worker.into_brain();
    let most = options.max_parts;
    let (checked, run) = (options.clone(), options);
    let coordinator = brain("Plan")
        .options::<Split>()
        .services::<V>()
        .step("Check", move |cx| std::future::ready(check(&cx, &checked)))
        .r#loop(STAGE, move |cx| {
            let known = gathered((*cx.state).clone(), cx.history());
            let parts = known.parts.iter().enumerate().map(|(index, PlanPart { title, goal, .. })| {
                let (part, worker, sub_goal) =
                    (part.clone(), worker.clone(), SubGoal { title: title.clone(), goal: goal.clone() });
                // Parts of a group do not see each other's results, even if the run resumes after a crash.
                let before = index / wave(&run) * wave(&run);
                let before = known.parts.get(..before).unwrap_or_default().to_vec();
                Tool::<Split, PlanResult, V>::new(&name(index), move |t| {
                    t.brain(worker)
                        .title(&sub_goal.title)
                        .description(&sub_goal.goal)
                        .map_input(move |_| part(&sub_goal, &before))
                        .map_output(move |plan, result| plan.end(index, Ok(result)))
                })
            });
            let next = next(&cx, &run);
            cx.system("The parts of a plan run here; no model is asked.")
                .max_iterations(u64::try_from(cx.state.parts.len() + 1).unwrap_or(u64::MAX))
                .parallel(u32::try_from(wave(&run)).unwrap_or(u32::MAX))
                .tools(parts)
                .scripted(next.map(|index| (name(index), json!({}))))
        })
        .step("Gather", async |cx| {
            let record = cx.record(STAGE);
            Ok(gathered(cx.state, record))
        });
    Tool::new("plan", move |t| {
        t.brain(coordinator).title("Plan").description(format!(
            "Splits a goal into at most {most} sub-goals. Each one is worked on separately, and you get its result. The worker of a \
             sub-goal sees only the text of that sub-goal, so include everything it needs to know."
        ))
    })
}

impl PlanResult {
    /// Records the result of a part.
    fn end(&mut self, index: usize, result: Result<impl Serialize, String>) {
        let Some(part) = self.parts.get_mut(index) else { return };
        let result = result.and_then(|result| serde_json::to_value(result).map_err(|error| error.to_string()));
        match result {
            Ok(result) => (part.status, part.result) = (PartStatus::Done, Some(result)),
            Err(error) => (part.status, part.error) = (PartStatus::Failed, Some(error)),
        }
    }
}

/// Returns the size of a group.
const fn wave(options: &PlanOptions) -> usize {
    match options.order {
        PlanOrder::InOrder | PlanOrder::InParallel(0) => 1,
        PlanOrder::InParallel(parts) => parts as usize,
    }
}

fn name(index: usize) -> String {
    format!("part_{}", index + 1)
}

/// Returns the number of plans around a path.
fn depth(path: &Path) -> usize {
    path.segments().filter(|segment| matches!(segment, Segment::Stage(stage) if *stage == STAGE)).count()
}

/// Validates a plan.
fn check<V: Services>(cx: &StepContext<Split, (), V>, options: &PlanOptions) -> Result<PlanResult> {
    let Split { goal, parts } = &*cx.options;
    let PlanOptions { max_parts, max_depth, .. } = options;
    let depth = depth(cx.path());
    if depth >= *max_depth {
        return Err(Error::new(format!(
            "plans may nest {max_depth} levels deep, and this call is already at level {depth}; reach the goal without a plan"
        )));
    }
    if parts.is_empty() {
        return Err(Error::new("the plan has no parts"));
    }
    if parts.len() > *max_parts {
        let parts = parts.len();
        return Err(Error::new(format!("the plan has {parts} parts, but at most {max_parts} are allowed; merge some")));
    }
    if let Some(part) = parts.iter().find(|part| part.title.trim().is_empty() || part.goal.trim().is_empty()) {
        return Err(Error::new(format!("the part `{}` has no title or no goal", part.title)));
    }
    let part = |SubGoal { title, goal }: &SubGoal| PlanPart {
        title: title.clone(),
        goal: goal.clone(),
        status: PartStatus::NotBegun,
        result: None,
        error: None,
    };
    Ok(PlanResult { goal: goal.clone(), complete: false, parts: parts.iter().map(part).collect() })
}

/// Returns the parts of the next group.
fn next<V: Services>(cx: &LoopContext<Split, PlanResult, V>, options: &PlanOptions) -> std::ops::Range<usize> {
    let ended = cx.history().map(ended).unwrap_or_default();
    let begun = ended.len();
    let failed = ended.iter().any(|(_, error)| error.is_some());
    if failed && options.on_failure == OnFailure::Stop {
        return begun..begun;
    }
    begun..begun.saturating_add(wave(options)).min(cx.state.parts.len())
}

/// Returns the completed parts of a record, with the errors of failed ones.
fn ended(record: Prompt) -> Vec<(String, Option<String>)> {
    let calls = record.output.into_iter().filter_map(|output| match output.kind {
        OutputKind::Tool(call) => Some((call.tool, call.result?)),
        _ => None,
    });
    calls.map(|(tool, result)| (tool, result.into_failure())).collect()
}

/// Merges the failures into the results.
fn gathered(mut plan: PlanResult, record: Option<Prompt>) -> PlanResult {
    let failed = record.map(ended).unwrap_or_default().into_iter().filter_map(|(tool, error)| Some((tool, error?)));
    for (tool, error) in failed {
        if let Some(index) = (0..plan.parts.len()).find(|index| name(*index) == tool) {
            plan.end(index, Err::<Value, _>(error));
        }
    }
    plan.complete = plan.parts.iter().all(|part| part.status == PartStatus::Done);
    plan
}
