//! Who decides a pending item, among the callers with the scope that it needs.

use std::fmt;
use std::str::FromStr;

use positronic_core::machine::RunState;
use positronic_core::record::{Pending, RunId};
use positronic_core::store::PendingItem;

use super::Caller;

/// A pending item about which a caller wants to decide.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Question<'a> {
    /// The run.
    pub run: &'a RunId,
    /// The title of its brain.
    pub brain: &'a str,
    /// The user that the run belongs to.
    pub user: Option<&'a str>,
    /// The subject that has started the run, has forked it, or has asked for the tick of its schedule.
    pub starter: Option<&'a str>,
    /// The user for whom that subject acts, if it is another name.
    pub starter_user: Option<&'a str>,
    /// Who had set the schedule that started the run.
    pub scheduler: Option<&'a str>,
    /// The item, with its tool and its arguments.
    pub pending: &'a Pending,
}

impl<'a> Question<'a> {
    /// Creates the question of an item as the store keeps it. It is for what lists show; a decision asks with the run's state.
    pub(crate) fn listed(item: &'a PendingItem) -> Self {
        let (user, starter) = (item.about.user.as_deref(), item.about.starter.as_deref());
        Self {
            run: &item.run,
            brain: &item.brain,
            user,
            starter: starter.and_then(|starter| starter.by.as_deref()),
            starter_user: starter.and_then(|starter| starter.user.as_deref()),
            scheduler: starter.and_then(|starter| starter.scheduler.as_deref()),
            pending: &item.pending,
        }
    }

    pub(crate) fn of(run: &'a RunId, state: &'a RunState, pending: &'a Pending) -> Self {
        let brain = state.root.as_deref().map_or("", |root| &root.title);
        let (user, actor) = (state.start.user.as_deref(), &state.start.actor);
        let (starter, starter_user) = (actor.by.as_deref(), actor.user.as_deref());
        let scheduler = state.start.scheduled.as_ref().and_then(|tick| tick.by.as_deref());
        Self { run, brain, user, starter, starter_user, scheduler, pending }
    }
}

/// Says who may decide a pending item, among the callers with the scope that it needs. [`DeciderPolicy`] has the common
/// rules; a closure with the signature of [`Deciders::may_decide`] is another one.
///
/// It holds for every way to decide over HTTP: one decision, several, and forks. A fork decides if it gives the result of a call,
/// also of one that has not asked yet, or acts again on an approval, an answer or a grant by a person. Signed webhooks have their
/// signature instead.
pub trait Deciders: Send + Sync + 'static {
    /// Returns whether a caller may decide an item.
    ///
    /// # Errors
    ///
    /// The reason why not, which the caller sees.
    fn may_decide(&self, caller: &Caller, question: &Question<'_>) -> Result<(), String>;
}

impl<F> Deciders for F
where
    F: Fn(&Caller, &Question<'_>) -> Result<(), String> + Send + Sync + 'static,
{
    fn may_decide(&self, caller: &Caller, question: &Question<'_>) -> Result<(), String> {
        self(caller, question)
    }
}

const NOT_THE_STARTER: &str = "not-the-starter";

/// Rules that all must allow a caller. Without a rule, every caller with the scope decides.
///
/// ```
/// use positronic_server::DeciderPolicy;
///
/// // Ann and Ben decide about refunds, and no person decides about a run that they have started themselves.
/// let policy: DeciderPolicy = ["refund=ann,ben", "not-the-starter"].iter().map(|rule| rule.parse().unwrap()).collect();
/// ```
#[derive(Debug, Clone, Default)]
pub struct DeciderPolicy(Vec<DeciderRule>);

/// A rule of a [`DeciderPolicy`]: `[TOOL=]WHO`, where `WHO` is `not-the-starter` or a list of names, separated by commas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeciderRule {
    tool: Option<String>,
    who: Who,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Who {
    Listed(Vec<String>),
    NotTheStarter,
}

/// Error from parsing a [`DeciderRule`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected `not-the-starter` or names, separated by commas; `TOOL=` in front limits it to the calls of a tool")]
pub struct InvalidDeciderRule;

impl DeciderRule {
    /// Creates a rule that allows only these people: the users for whom callers act, or the subjects of callers without a user.
    pub fn listed(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { tool: None, who: Who::Listed(names.into_iter().map(Into::into).collect()) }
    }

    /// Creates a rule that excludes the subject that has started the run, who has set the schedule that did, and the run's user.
    #[must_use]
    pub const fn not_the_starter() -> Self {
        Self { tool: None, who: Who::NotTheStarter }
    }

    /// Limits the rule to the calls of a tool.
    #[must_use]
    pub fn of_tool(self, tool: impl Into<String>) -> Self {
        Self { tool: Some(tool.into()), ..self }
    }

    fn check(&self, caller: &Caller, question: &Question<'_>) -> Result<(), String> {
        if self.tool.as_ref().is_some_and(|tool| *tool != question.pending.tool) {
            return Ok(());
        }
        match &self.who {
            Who::Listed(names) if names.iter().any(|name| name == caller.person()) => Ok(()),
            Who::Listed(_) => {
                let (name, tool) = (caller.person(), &question.pending.tool);
                Err(format!("the rules of this server do not list `{name}` for `{tool}`"))
            }
            Who::NotTheStarter => {
                let own = [Some(caller.subject()), caller.user_id()];
                let is_own = |of: Option<&str>| of.is_some() && own.contains(&of);
                let starters = [question.starter, question.starter_user, question.scheduler, question.user];
                if starters.into_iter().any(is_own) {
                    Err("the person who has started the run does not decide about it".to_owned())
                } else {
                    Ok(())
                }
            }
        }
    }
}

impl FromIterator<DeciderRule> for DeciderPolicy {
    fn from_iter<T: IntoIterator<Item = DeciderRule>>(rules: T) -> Self {
        Self(rules.into_iter().collect())
    }
}

impl Deciders for DeciderPolicy {
    fn may_decide(&self, caller: &Caller, question: &Question<'_>) -> Result<(), String> {
        self.0.iter().try_for_each(|rule| rule.check(caller, question))
    }
}

impl FromStr for DeciderRule {
    type Err = InvalidDeciderRule;

    fn from_str(text: &str) -> Result<Self, InvalidDeciderRule> {
        let (tool, who) = text.split_once('=').map_or((None, text), |(tool, who)| (Some(tool.trim()), who));
        let names: Vec<_> = who.split(',').map(str::trim).collect();
        // A name that is almost the rule would exclude all people of that rule.
        let is_slip = |name: &&str| *name != NOT_THE_STARTER && name.eq_ignore_ascii_case(NOT_THE_STARTER);
        let is_wrong = |name: &&str| name.is_empty() || name.contains('=') || is_slip(name);
        if tool.is_some_and(str::is_empty) || names.iter().any(is_wrong) {
            return Err(InvalidDeciderRule);
        }
        let rule = match names.as_slice() {
            [NOT_THE_STARTER] => Self::not_the_starter(),
            names if names.contains(&NOT_THE_STARTER) => return Err(InvalidDeciderRule),
            names => Self::listed(names.iter().copied()),
        };
        Ok(match tool {
            Some(tool) => rule.of_tool(tool),
            None => rule,
        })
    }
}

impl fmt::Display for DeciderRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(tool) = &self.tool {
            write!(f, "{tool}=")?;
        }
        match &self.who {
            Who::Listed(names) => f.write_str(&names.join(",")),
            Who::NotTheStarter => f.write_str(NOT_THE_STARTER),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_written_as_they_are_read() {
        for text in ["ann", "ann,ben", "not-the-starter", "refund=ann,ben", "refund=not-the-starter"] {
            assert_eq!(text.parse::<DeciderRule>().unwrap().to_string(), text);
        }
        for text in ["", "=ann", "refund=", "ann,", "ann,not-the-starter", "Not-The-Starter", "a=b=c"] {
            assert_eq!(text.parse::<DeciderRule>(), Err(InvalidDeciderRule), "{text}");
        }
    }
}
