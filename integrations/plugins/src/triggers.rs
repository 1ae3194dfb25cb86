//! Triggers: the model schedules its own future prompts.

mod when;

use std::time::Duration;

use positronic_core::dsl::{Options, Plugin, PluginState, Preparation, Services, State};
use positronic_core::record::{Busy, Fired, Timer, Timestamp, Trigger, TriggerId};
use positronic_core::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use self::when::{duration, moment, pause};

/// The maximum length of a trigger's task, in characters.
const LONGEST: usize = 1000;

/// Lets the model set triggers, each of which starts a prompt at a given time.
///
/// | tool | what it does | flags |
/// |---|---|---|
/// | `trigger.create {what, at, in, every}` | sets a trigger, and returns its id and due time | idempotent, sequential |
/// | `trigger.list {}` | returns the triggers, earliest due time first, and the current time | read-only |
/// | `trigger.delete {id}` | deletes one | idempotent, sequential |
///
/// `at` is a time with its offset (`2026-03-01T09:00:00+01:00`), `in` and `every` are durations (`10 minutes`,
/// `1 day 12 hours`). A day has 24 hours: a daily trigger at nine fires at eight or ten after a clock change.
/// With only `every`, the first time is after one interval. A trigger fires at most once a minute, and an owner has at most
/// 20 triggers, unless [`at_least`](Self::at_least) and [`limit`](Self::limit) are set.
///
/// A trigger starts the brain of the run that set it, with the same options, budget and user. In a conversation it starts the
/// next prompt, with the conversation's history; it waits for a previous run that is not over, or cancels it, by
/// [`busy`](Self::busy). The first event of the started run names the trigger, and the model reads it in a context item
/// named `trigger`.
///
/// **Owner.** Triggers belong to the conversation; in a run outside of one, to the run's user; in a run without a
/// user, to that run and those that it starts. A model sees and deletes no others.
///
/// **Exactly once.** The append that records the tool's result sets the trigger, and the append that begins its run removes it.
/// So it survives every restart and fires once, even if several processes serve the store. One that was due while no process
/// served the store fires once afterwards. [`Runner::serve`](positronic_core::runner::Runner::serve) and `positronic work` serve a store;
/// they must know the brain.
///
/// ```
/// use positronic_plugins::Triggers;
/// use positronic_core::prelude::*;
///
/// let triggers = Triggers::new();
/// let brain = brain("Gardener").r#loop("Chat", move |cx| {
///     cx.system("You look after a garden. Set triggers for what has to be done later.").plugin(triggers.clone())
/// });
/// # let _ = brain;
/// ```
#[derive(Debug, Clone)]
#[must_use = "triggers have their effect when they are given to a loop"]
pub struct Triggers {
    limit: usize,
    at_least: Duration,
    busy: Busy,
    approval: Option<String>,
}

/// The empty state of [`Triggers`]. The triggers are in the store, since they outlive the run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct NoTriggerState {}

impl PluginState for NoTriggerState {
    const NAME: &'static str = "triggers";
}

impl Default for Triggers {
    fn default() -> Self {
        Self { limit: 20, at_least: Duration::from_mins(1), busy: Busy::Queue, approval: None }
    }
}

impl Triggers {
    /// Creates the plugin with the defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum number of triggers.
    pub const fn limit(mut self, triggers: usize) -> Self {
        self.limit = triggers;
        self
    }

    /// Sets the minimum interval of a trigger.
    pub const fn at_least(mut self, pause: Duration) -> Self {
        self.at_least = pause;
        self
    }

    /// Sets how a due trigger treats a previous run of its conversation that is not over.
    pub const fn busy(mut self, busy: Busy) -> Self {
        self.busy = busy;
        self
    }

    /// Requires a person's approval of each trigger, with this reason.
    pub fn approval(mut self, reason: impl Into<String>) -> Self {
        self.approval = Some(reason.into());
        self
    }

    /// Returns the due time and the interval of a new trigger.
    fn when(&self, create: &Create, now: Timestamp) -> Result<(Timestamp, Option<Duration>)> {
        let Create { at, after, every, .. } = create;
        let every = every.as_deref().map(duration).transpose()?;
        if let Some(every) = every.filter(|every| *every < self.at_least) {
            return Err(Error::new(format!(
                "`every` is {}, and a trigger fires at most every {}",
                pause(every),
                pause(self.at_least)
            )));
        }
        let due = match (at, after, every) {
            (Some(_), Some(_), _) => return Err(Error::new("give `at` or `in`, not both")),
            (Some(at), None, _) => moment(at, now)?,
            (None, Some(after), _) => now.after(duration(after)?),
            (None, None, Some(every)) => now.after(every),
            (None, None, None) => return Err(Error::new("say when: give `at`, `in` or `every`")),
        };
        Ok((due, every))
    }
}

fn checked(what: &str) -> Result<&str> {
    let what = what.trim();
    match what.chars().count() {
        0 => Err(Error::new("`what` is empty: say what is to be done then")),
        long if long > LONGEST => {
            Err(Error::new(format!("`what` has at most {LONGEST} characters, and this has {long}: say it shorter")))
        }
        _ => Ok(what),
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Create {
    /// What is to be done then, so that it can be understood without this conversation
    what: String,
    /// A moment with its offset, such as 2026-03-01T09:00:00+01:00
    at: Option<String>,
    /// How long from now, such as 10 minutes
    #[serde(rename = "in")]
    after: Option<String>,
    /// How long between two times of a trigger that fires again and again, such as 1 day
    every: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct List {}

#[derive(Debug, Deserialize, JsonSchema)]
struct Delete {
    /// The trigger's id
    id: String,
}

/// A trigger, for the model.
#[derive(Debug, Serialize)]
struct TriggerView {
    id: TriggerId,
    what: String,
    due: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    every: Option<String>,
}

impl TriggerView {
    fn of(trigger: &Trigger) -> Self {
        Self {
            id: trigger.id.clone(),
            what: trigger.what.clone(),
            due: trigger.due.to_string(),
            every: trigger.every.map(pause),
        }
    }
}

/// Returns the text that tells the model about the trigger.
fn because(Fired { trigger, .. }: &Fired) -> String {
    let TriggerView { id, what, due, every } = TriggerView::of(trigger);
    let every = every.map(|every| format!("; it fires every {every}")).unwrap_or_default();
    format!("The trigger {id} fired, due {due}{every}. The user did not write anything. Its text:\n{what}")
}

impl<O: Options, S: State, V: Services> Plugin<O, S, V> for Triggers {
    type State = NoTriggerState;

    fn initial(&self) -> NoTriggerState {
        NoTriggerState {}
    }

    fn tool_names(&self, own: &dyn Fn(&str) -> String) -> Vec<String> {
        ["trigger.create", "trigger.list", "trigger.delete"].map(own).to_vec()
    }

    async fn prepare(&self, cx: &mut Preparation<'_, O, S, V, NoTriggerState>) -> Result<()> {
        if let Some(fired) = cx.fired() {
            cx.context("trigger", because(&fired));
        }
        let triggers = self.clone();
        let list = cx.tool_name("trigger.list");
        cx.tool("trigger.create", |t| {
            let t = t.description(format!(
                "Sets a trigger: at its time you are asked again, without a message of the user. `{list}` says what time it is"
            ));
            let gate = triggers.approval.clone();
            let t = t.idempotent().sequential().approval(move |_: &Create, _| gate.clone());
            t.execute(move |create: Create, cx| {
                let triggers = triggers.clone();
                async move {
                    let what = checked(&create.what)?;
                    let (due, every) = triggers.when(&create, cx.now())?;
                    let trigger = Trigger { busy: triggers.busy, ..cx.trigger(what, due) };
                    let trigger = match every {
                        Some(every) => trigger.every(every),
                        None => trigger,
                    };
                    let there = cx.triggers().await?;
                    if there.iter().filter(|timer| timer.trigger.id != trigger.id).count() >= triggers.limit {
                        let most = triggers.limit;
                        return Err(Error::new(format!("there are {most} triggers, and no more can be set: delete one")));
                    }
                    Ok(cx.result(TriggerView::of(&trigger)).set_trigger(trigger))
                }
            })
        })?;
        cx.tool("trigger.list", |t| {
            let t = t.description("Lists the triggers that are set, and says what time it is").read_only();
            t.execute(async |List {}, cx| {
                let there = cx.triggers().await?;
                let views: Vec<_> = there.iter().map(|Timer { trigger, .. }| TriggerView::of(trigger)).collect();
                Ok(json!({ "now": cx.now().to_string(), "triggers": views }))
            })
        })?;
        cx.tool("trigger.delete", |t| {
            let t = t.description("Deletes a trigger, so that it no longer fires").idempotent().sequential();
            t.execute(async |Delete { id }, cx| {
                let there = cx.triggers().await?;
                let Some(timer) = there.iter().find(|timer| timer.trigger.id.as_str() == id) else {
                    let known = super::listed(there.iter().map(|timer| timer.trigger.id.as_str()));
                    let known =
                        if there.is_empty() { "there are none".to_owned() } else { format!("there are {known}") };
                    return Err(Error::new(format!("there is no trigger `{id}`; {known}")));
                };
                Ok(cx
                    .result(json!({ "deleted": TriggerView::of(&timer.trigger) }))
                    .delete_trigger(timer.trigger.id.clone()))
            })
        })
    }
}
