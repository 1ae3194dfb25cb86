//! `plan`: a model splits a goal into sub-goals, and each is reached by a brain of the author's.
//!
//! A call holds the frame of one brain, so the tool is a brain of its own, the coordinator: it checks the plan, runs the sub-goals as
//! calls of a loop that is [decided in code](crate::dsl::Loop::scripted), and gathers what came of them. So all that holds of calls holds
//! of sub-goals: they are in the run's one log, wait for people from any depth, and go on after a crash.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use typed_builder::TypedBuilder;

use crate::dsl::{Brain, LoopContext, Options, Services, State, StepContext, Tool, Within, brain};
use crate::error::{Error, Result};
use crate::record::{OutputKind, Path, Prompt, Segment, ToolResult};

/// The stage of the coordinator in which sub-goals run. By its name, plans inside plans are counted.
const STAGE: &str = "Sub-goals";

/// How sub-goals are run.
#[derive(Debug, Clone, PartialEq, Eq, TypedBuilder)]
pub struct PlanOptions {
    /// Whether they run one after the other or at once.
    #[builder(default)]
    pub order: PlanOrder,
    /// What to do when one fails.
    #[builder(default)]
    pub on_failure: OnFailure,
    /// How many sub-goals a plan may have; 8 where nothing is said, as many as calls of a batch run at once.
    #[builder(default = 8)]
    pub max_parts: usize,
    /// How deep plans may be inside plans; 2 where nothing is said: a sub-goal may be split once more. Brains can be nested 16
    /// deep altogether, and every plan is two of them.
    #[builder(default = 2)]
    pub max_depth: usize,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self::builder().build()
    }
}

/// Whether sub-goals run one after the other or at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PlanOrder {
    /// One after the other; each is told what came of those before it.
    #[default]
    InOrder,
    /// So many at once; when all of them have ended, the next so many, which are told what came of those before.
    InParallel(u32),
}

/// What to do when a sub-goal fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFailure {
    /// Begin no other, and hand back what is there.
    #[default]
    Stop,
    /// Go on with the others, and hand back what is there.
    GoOn,
}

/// A part of a goal, as a model has split it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SubGoal {
    /// A title of a few words.
    pub title: String,
    /// What is to be reached, with all that has to be known for it.
    pub goal: String,
}

/// What came of a sub-goal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanPart {
    /// The sub-goal's title.
    pub title: String,
    /// What was to be reached.
    pub goal: String,
    /// How it ended.
    pub status: PartStatus,
    /// What its brain gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How a sub-goal ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PartStatus {
    /// Its brain has reached its end.
    Done,
    /// Its brain has failed, or could not begin.
    Failed,
    /// It was not begun, since one before it failed.
    NotBegun,
}

/// What came of a plan: the result of a call of `plan`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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

/// Makes the tool that runs a plan. `part` makes the options of the brain that reaches a sub-goal, from it and from what came of the
/// parts before it.
///
/// The brain may have the tool itself: its loops are configured when they run, so a plan in a plan is not made before it is
/// needed, and the deepest one is refused.
///
/// ```
/// use positronic_core::prelude::*;
/// use positronic_core::toolbox::{self, PlanOptions, PlanOrder};
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
/// }
/// # let _ = researcher();
/// ```
#[must_use]
pub fn plan<O: Options, S: State, V: Services, O2: Options, S2: 'static, V2: Within<V> + 'static, R>(
    worker: Brain<O2, S2, V2, R>,
    options: PlanOptions,
    part: impl Fn(&SubGoal, &[PlanPart]) -> O2 + Clone + Send + Sync + 'static,
) -> Tool<O, S, V>
where
    R: Serialize + DeserializeOwned + Send + Sync + 'static,
{
    let most = options.max_parts;
    let (checked, run) = (options.clone(), options);
    let coordinator = brain("Plan")
        .options::<Split>()
        .services::<V>()
        .step("Check", move |cx| std::future::ready(check(&cx, &checked)))
        .r#loop(STAGE, move |cx| {
            let known = gathered((*cx.state).clone(), cx.history());
            let parts = known.parts.iter().enumerate().map(|(index, PlanPart { title, goal, .. })| {
                let (part, sub_goal) = (part.clone(), SubGoal { title: title.clone(), goal: goal.clone() });
                // Those that begin together know nothing of one another, also when the run goes on after a crash.
                let before = index / wave(&run) * wave(&run);
                let before = known.parts.get(..before).unwrap_or_default().to_vec();
                Tool::<Split, PlanResult, V>::brain(&name(index), worker.clone(), move |b| {
                    b.title(&sub_goal.title)
                        .description(&sub_goal.goal)
                        .map_input(move |_| part(&sub_goal, &before))
                        .map_output(move |plan, result: R| plan.end(index, Ok(result)))
                })
            });
            let next = next(&cx, &run);
            cx.system("The parts of a plan run here; no model is asked.")
                .max_iterations(u32::try_from(cx.state.parts.len() + 1).unwrap_or(u32::MAX))
                .parallel(u32::try_from(wave(&run)).unwrap_or(u32::MAX))
                .tools(parts)
                .scripted(next.map(|index| (name(index), json!({}))))
        })
        .step("Gather", async |cx| {
            let record = cx.record(STAGE);
            Ok(gathered(cx.state, record))
        });
    Tool::brain("plan", coordinator, move |b| {
        b.title("Plan").description(format!(
            "Splits a goal into at most {most} sub-goals. Each is worked on apart, and what came of it is handed back. A sub-goal is \
             told nothing but its own text, so say in it all that has to be known."
        ))
    })
}

impl PlanResult {
    /// Notes how a part ended.
    fn end(&mut self, index: usize, result: Result<impl Serialize, String>) {
        let Some(part) = self.parts.get_mut(index) else { return };
        let result = result.and_then(|result| serde_json::to_value(result).map_err(|error| error.to_string()));
        match result {
            Ok(result) => (part.status, part.result) = (PartStatus::Done, Some(result)),
            Err(error) => (part.status, part.error) = (PartStatus::Failed, Some(error)),
        }
    }
}

/// Returns how many parts begin together.
const fn wave(options: &PlanOptions) -> usize {
    match options.order {
        PlanOrder::InOrder | PlanOrder::InParallel(0) => 1,
        PlanOrder::InParallel(parts) => parts as usize,
    }
}

fn name(index: usize) -> String {
    format!("part_{}", index + 1)
}

/// Counts the plans that a path is in.
fn depth(path: &Path) -> usize {
    path.segments().filter(|segment| matches!(segment, Segment::Stage(stage) if *stage == STAGE)).count()
}

/// Takes a plan on, or says what is wrong with it.
fn check<V: Services>(cx: &StepContext<Split, (), V>, options: &PlanOptions) -> Result<PlanResult> {
    let Split { goal, parts } = &*cx.options;
    let PlanOptions { max_parts, max_depth, .. } = options;
    let depth = depth(cx.path());
    if depth >= *max_depth {
        return Err(Error::new(format!(
            "plans may be {max_depth} deep, and this one is inside {depth}; reach the goal without one"
        )));
    }
    if parts.is_empty() {
        return Err(Error::new("the plan has no parts"));
    }
    if parts.len() > *max_parts {
        let parts = parts.len();
        return Err(Error::new(format!("the plan has {parts} parts, and may have {max_parts}; put some together")));
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

/// Returns the parts that are to begin now.
fn next<V: Services>(cx: &LoopContext<Split, PlanResult, V>, options: &PlanOptions) -> std::ops::Range<usize> {
    let ended = cx.history().map(ended).unwrap_or_default();
    let begun = ended.len();
    let failed = ended.iter().any(|(_, error)| error.is_some());
    if failed && options.on_failure == OnFailure::Stop {
        return begun..begun;
    }
    begun..begun.saturating_add(wave(options)).min(cx.state.parts.len())
}

/// Reads out of a record which parts have ended, and why those that failed did.
fn ended(record: Prompt) -> Vec<(String, Option<String>)> {
    let calls = record.output.into_iter().filter_map(|output| match output.kind {
        OutputKind::Tool(call) => Some((call.tool, call.result?)),
        _ => None,
    });
    let error = |result| match result {
        ToolResult::Success { .. } => None,
        ToolResult::Error { message } => Some(message),
        ToolResult::Denied { reason, .. } => Some(reason.unwrap_or_else(|| "a person refused it".to_owned())),
        ToolResult::Skipped { reason } | ToolResult::Interrupted { reason } => Some(reason),
    };
    calls.map(|(tool, result)| (tool, error(result))).collect()
}

/// Puts the failures to the results.
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
