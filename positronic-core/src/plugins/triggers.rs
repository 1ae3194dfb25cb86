//! Triggers: the model lets itself be started again, at a time or again and again.

mod when;

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use self::when::{duration, moment, pause};
use crate::dsl::{Options, Plugin, PluginState, Preparation, Services, State};
use crate::error::{Error, Result};
use crate::record::{Busy, Fired, Timer, Timestamp, Trigger, TriggerId};

/// How many characters what is to be done may have.
const LONGEST: usize = 1000;

/// Lets the model set triggers: at its time, each starts a prompt that nobody has written.
///
/// | tool | what it does | flags |
/// |---|---|---|
/// | `trigger.create {what, at, in, every}` | sets a trigger, and answers its id and when it is due | idempotent, sequential |
/// | `trigger.list {}` | answers the triggers, the one that is due first first, and what time it is | read-only |
/// | `trigger.delete {id}` | takes one back | idempotent, sequential |
///
/// `at` is a moment with its offset (`2026-03-01T09:00:00+01:00`), `in` and `every` are durations (`10 minutes`,
/// `1 day 12 hours`). A day has 24 hours: what is to happen at nine each day happens at eight or ten once the clocks change.
/// With `every` alone, the first time is that long from now. No trigger fires more often than once a minute, and nobody has more
/// than 20 triggers, where [`at_least`](Self::at_least) and [`most`](Self::most) say nothing else.
///
/// A trigger starts the brain of the run that set it, with the same options and budget, and for the same user. In a conversation it starts the
/// conversation's next prompt, which knows all before; it waits while the last one is not over, or cancels it, by
/// [`busy`](Self::busy). The started run's first event says which trigger it was, and the model reads it in a piece of context
/// named `trigger`.
///
/// **Whose triggers.** Those of the conversation; in a run that is a part of none, those of the run's user; in a run without a
/// user, those of that run and of what they start. A model sees and deletes no others.
///
/// **Once.** A trigger is set by the append that records the tool's result, and the append that begins its run takes it. So
/// it survives every restart and fires once, also where several processes serve the store. What was due while nobody served
/// it fires once when somebody does. [`Runner::serve`](crate::runner::Runner::serve) and `positronic work` serve a store;
/// they have to know the brain.
///
/// ```
/// use positronic_core::plugins::Triggers;
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
    most: usize,
    at_least: Duration,
    busy: Busy,
    approval: Option<String>,
}

/// What [`Triggers`] keeps: nothing. The triggers themselves are in the store, since they outlive the run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct NoTriggerState {}

impl PluginState for NoTriggerState {
    const NAME: &'static str = "triggers";
}

impl Default for Triggers {
    fn default() -> Self {
        Self { most: 20, at_least: Duration::from_mins(1), busy: Busy::Queue, approval: None }
    }
}

impl Triggers {
    /// Begins with the defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how many triggers there can be at once.
    pub const fn most(mut self, triggers: usize) -> Self {
        self.most = triggers;
        self
    }

    /// Sets how long the pause between two times of a trigger is at least.
    pub const fn at_least(mut self, pause: Duration) -> Self {
        self.at_least = pause;
        self
    }

    /// Sets what a trigger that is due does while the last run of its conversation is not over.
    pub const fn busy(mut self, busy: Busy) -> Self {
        self.busy = busy;
        self
    }

    /// Has a person approve each trigger before it is set, for this reason.
    pub fn approval(mut self, reason: impl Into<String>) -> Self {
        self.approval = Some(reason.into());
        self
    }

    /// Says when a trigger is due, and how long it is from each time to the next.
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

/// A trigger as the model reads it.
#[derive(Debug, Serialize)]
struct Told {
    id: TriggerId,
    what: String,
    due: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    every: Option<String>,
}

impl Told {
    fn of(trigger: &Trigger) -> Self {
        Self {
            id: trigger.id.clone(),
            what: trigger.what.clone(),
            due: when::told(trigger.due),
            every: trigger.every.map(|every| pause(Duration::from_micros(every))),
        }
    }
}

/// Says to the model why it was asked.
fn because(Fired { trigger, .. }: &Fired) -> String {
    let Told { id, what, due, every } = Told::of(trigger);
    let every = every.map(|every| format!("; it fires every {every}")).unwrap_or_default();
    format!("The trigger {id} has started this prompt, due {due}{every}. Nobody has written anything. It says:\n{what}")
}

impl<O: Options, S: State, V: Services> Plugin<O, S, V> for Triggers {
    type State = NoTriggerState;

    fn initial(&self) -> NoTriggerState {
        NoTriggerState {}
    }

    async fn prepare(&self, cx: &mut Preparation<'_, O, S, V, NoTriggerState>) -> Result<()> {
        if let Some(fired) = cx.fired() {
            cx.context("trigger", because(&fired));
        }
        let triggers = self.clone();
        cx.tool("trigger.create", |t| {
            let t = t.description(
                "Sets a trigger: at its time you are asked again, without a message of the user. `trigger.list` says what \
                 time it is",
            );
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
                    if there.iter().filter(|timer| timer.trigger.id != trigger.id).count() >= triggers.most {
                        let most = triggers.most;
                        return Err(Error::new(format!("there are {most} triggers, and no more can be set: delete one")));
                    }
                    Ok(cx.result(Told::of(&trigger)).set_trigger(trigger))
                }
            })
        })?;
        cx.tool("trigger.list", |t| {
            let t = t.description("Lists the triggers that are set, and says what time it is").read_only();
            t.execute(async |List {}, cx| {
                let there = cx.triggers().await?;
                let told: Vec<_> = there.iter().map(|Timer { trigger, .. }| Told::of(trigger)).collect();
                Ok(json!({ "now": when::told(cx.now()), "triggers": told }))
            })
        })?;
        cx.tool("trigger.delete", |t| {
            let t = t.description("Takes a trigger back: it does not fire any more").idempotent().sequential();
            t.execute(async |Delete { id }, cx| {
                let there = cx.triggers().await?;
                let Some(timer) = there.iter().find(|timer| timer.trigger.id.as_str() == id) else {
                    let known = super::listed(there.iter().map(|timer| timer.trigger.id.as_str()));
                    let known =
                        if there.is_empty() { "there are none".to_owned() } else { format!("there are {known}") };
                    return Err(Error::new(format!("there is no trigger `{id}`; {known}")));
                };
                Ok(cx.result(json!({ "deleted": Told::of(&timer.trigger) })).delete_trigger(timer.trigger.id.clone()))
            })
        })
    }
}
