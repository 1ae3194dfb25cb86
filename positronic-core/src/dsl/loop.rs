//! Configuration of a loop, rebuilt before every model call.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use derive_where::derive_where;
use indexmap::map::Entry;
use serde_json::Value;

use super::brain::IntoBrain;
use super::plugin::Plugin;
use super::services::{Services, Within};
use super::tool::{IntoTool, ToolBuilder};
use super::trait_bounds::{Options, Standalone, State};
use super::usage_panic::usage_panic;
use crate::definition::{Link, LoopDefinition, StateValue, ToolDefinition, two_plugins};
use crate::error::{Error, Result};
use crate::record::{
    AskForMore, BatchPolicy, ContextItem, Dialogue, LoopOutcome, Money, MoneyError, OnLimit, ProviderTool, Settings,
    Tier, UserMessage,
};

/// A loop's configuration for one iteration: the prompt and the tools.
#[must_use = "a loop's configuration is what its closure returns"]
#[derive_where(Debug)]
pub struct Loop<O = (), S = (), V = ()> {
    pub(super) definition: LoopDefinition,
    actions: Vec<String>,
    types: PhantomData<fn(O, S, V)>,
}

impl<O: Options, S: State, V: Services> Loop<O, S, V> {
    pub(super) fn new(system: String) -> Self {
        Self {
            definition: LoopDefinition { system: system.into(), ..LoopDefinition::default() },
            actions: Vec::new(),
            types: PhantomData,
        }
    }

    /// Opens the loop with a user message, a text or one with files. If a person has started the run with a message, as in a conversation, that message opens
    /// the first loop of the run's brain in its place; what a model needs to know in both cases belongs in the system prompt or in
    /// [`context`](Self::context). A loop without any opens with `Begin.`, or with the text of the trigger that started the run, since providers
    /// require a user message.
    ///
    /// ```
    /// use positronic_core::prelude::*;
    /// use positronic_core::record::{FileRef, UserMessage};
    ///
    /// let spotter = brain("Spotter").r#loop("Look", |cx| {
    ///     let photo = FileRef::url("https://example.org/bird.jpg", "image/jpeg");
    ///     cx.system("You know all birds.").input(UserMessage::new("Which bird is it?").file(photo))
    /// });
    /// # let _ = spotter;
    /// ```
    pub fn input(mut self, message: impl Into<UserMessage>) -> Self {
        self.definition.input = Some(message.into());
        self
    }

    /// Continues the dialogue of an earlier loop of this brain, with all its calls and results. The loop fails if no loop
    /// with this name has ended.
    ///
    /// ```
    /// use positronic_core::prelude::*;
    ///
    /// let interview = brain("Interview")
    ///     .r#loop("Chat", |cx| cx.system("Ask about the trip.").max_iterations(5))
    ///     .r#loop("Sum up", |cx| cx.system("Write a short report.").continue_from("Chat").input("Sum it up."));
    /// # let _ = interview;
    /// ```
    pub fn continue_from(self, stage: impl Into<String>) -> Self {
        self.continue_part(stage, Dialogue::Whole)
    }

    /// Continues a part of the dialogue of an earlier loop; see [`continue_from`](Self::continue_from).
    pub fn continue_part(mut self, stage: impl Into<String>, part: Dialogue) -> Self {
        self.definition.continue_from = Some((stage.into(), part));
        self
    }

    /// Hides the loop's record from people: chats and lists omit it, but it stays history for the model.
    pub const fn hidden(mut self) -> Self {
        self.definition.hidden = true;
        self
    }

    /// Adds a named text that follows the history. Content that changes between iterations belongs here and not into the
    /// system prompt: providers cache the unchanged prefix of a prompt.
    pub fn context(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.definition.context.push(ContextItem { name: name.into(), text: text.into() });
        self
    }

    /// Adds a tool.
    ///
    /// # Panics
    ///
    /// If the name is invalid, or the loop already has a tool with this name.
    #[track_caller]
    pub fn tool<T: IntoTool<O, S, V>>(self, name: &str, build: impl FnOnce(ToolBuilder<O, S, V>) -> T) -> Self {
        let tool = build(ToolBuilder::new(name)).into_tool();
        self.add(tool.definition)
    }

    /// Adds tools that were built elsewhere.
    ///
    /// # Panics
    ///
    /// If the loop already has a tool with one of these names.
    #[track_caller]
    pub fn tools<T: IntoTool<O, S, V>>(mut self, tools: impl IntoIterator<Item = T>) -> Self {
        for tool in tools {
            self = self.add(tool.into_tool().definition);
        }
        self
    }

    /// Adds a tool of the provider, which runs at the provider within an answer: a web search, code execution, or one in the
    /// provider's own words. The record and people see what it did, with its sources.
    ///
    /// ```
    /// use positronic_core::prelude::*;
    /// use positronic_core::record::web_search;
    ///
    /// let reader = brain("Reader").r#loop("Read", |cx| cx.system("Answer with sources.").provider_tool(web_search()));
    /// # let _ = reader;
    /// ```
    ///
    /// An adapter refuses a request with a tool that its API does not have.
    pub fn provider_tool(mut self, tool: ProviderTool) -> Self {
        self.definition.settings.provider_tools.push(tool);
        self
    }

    /// Adds actions of the project that the brain declares with
    /// [`BrainBuilder::actions`](super::BrainBuilder::actions). A name that the brain does not declare before this loop fails
    /// the loop.
    pub fn actions<'n>(mut self, names: impl IntoIterator<Item = &'n str>) -> Self {
        self.actions.extend(names.into_iter().map(str::to_owned));
        self
    }

    /// Adds a brain as a tool. The model fills in the brain's options and reads its result; [`ToolBuilder::brain`] makes a tool with
    /// maps from and to the state, an approval or other settings.
    ///
    /// # Panics
    ///
    /// If the name is invalid, or the loop already has a tool with this name.
    #[track_caller]
    pub fn brain<B: IntoBrain<Services: Within<V>>>(self, name: &str, brain: B) -> Self {
        self.tool(name, |t| t.brain(brain))
    }

    /// Adds brains as tools; each is named after its title, in snake case, and the model fills in its options.
    ///
    /// # Panics
    ///
    /// If a title gives no valid tool name, or the loop already has a tool with one of these names.
    #[track_caller]
    pub fn brains<B: IntoBrain<Options = Value, Services: Within<V>>>(
        mut self,
        brains: impl IntoIterator<Item = B>,
    ) -> Self {
        for brain in brains {
            self = self.brain(&snake_case(&brain.definition().title), brain);
        }
        self
    }

    /// Alias of [`Loop::tool`] for skills: brains with [`prepare`](super::BrainTool::prepare) and
    /// [`handle_result`](super::BrainTool::handle_result), and functions.
    ///
    /// # Panics
    ///
    /// If the name is invalid, or the loop already has a tool with this name.
    #[track_caller]
    pub fn skill<T: IntoTool<O, S, V>>(self, name: &str, build: impl FnOnce(ToolBuilder<O, S, V>) -> T) -> Self {
        self.tool(name, build)
    }

    /// Adds a plugin. It takes part in every iteration, in the order of registration; see [`Plugin`].
    ///
    /// # Panics
    ///
    /// If the loop already has a plugin with this name. [`LoopPlugin::named`](super::LoopPlugin::named) gives it another one.
    #[track_caller]
    pub fn plugin<P: Plugin<O, S, V>>(mut self, plugin: P) -> Self {
        let plugin = plugin.erased();
        match self.definition.plugins.entry(plugin.name) {
            Entry::Vacant(entry) => _ = entry.insert(plugin.plugin),
            Entry::Occupied(entry) => usage_panic(&two_plugins(entry.key())),
        }
        self
    }

    /// Adds plugins, in order. [`plugin`](super::plugin()) makes different ones fit in a list.
    ///
    /// # Panics
    ///
    /// If the loop already has a plugin with one of these names.
    #[track_caller]
    pub fn plugins<P: Plugin<O, S, V>>(mut self, plugins: impl IntoIterator<Item = P>) -> Self {
        for plugin in plugins {
            self = self.plugin(plugin);
        }
        self
    }

    #[track_caller]
    fn add(mut self, tool: Arc<ToolDefinition>) -> Self {
        let id = tool.decl.id.clone();
        if self.definition.tools.insert(id.clone(), tool).is_some() {
            usage_panic(&format!("the loop has two tools named `{id}`; give one of them another name"));
        }
        self
    }

    /// Marks tools as exit tools by name, including those of plugins, also where a plugin offers them later, such as the tools of a
    /// toolset that is not active yet. A name that ends in `*` matches by prefix, and may match nothing. Any other unknown name fails
    /// the loop when its first iteration begins. [`BrainBuilder::exit_on`](super::BrainBuilder::exit_on), for tools that every iteration has,
    /// finds one when the brain is built.
    pub fn exit_on<'n>(mut self, names: impl IntoIterator<Item = &'n str>) -> Self {
        self.definition.exit_on.extend(names.into_iter().map(str::to_owned));
        self
    }

    /// Lets only an exit tool or a limit end the loop, also before an iteration has had one. A text answer never ends it then; the
    /// model is asked to continue with a tool call.
    ///
    /// Without it, that holds from the first iteration on that has an exit tool other than a handoff or one that hands back, or from the beginning if
    /// [`exit_on`](Self::exit_on) names one that may come. [`text_exits`](Self::text_exits) lets a text end such a loop.
    ///
    /// ```
    /// # use positronic_core::prelude::*;
    /// # fn test() -> Tool<(), bool> { Tool::new("test", |t| t.execute(async |_: NoArgs, cx| { cx.update(|tested| *tested = true); Ok("ok") })) }
    /// # fn announce() -> Tool<(), bool> { Tool::new("announce", |t| t.exit().execute(async |_: NoArgs, _| Ok("ok"))) }
    /// let release = brain("Release").state(false).r#loop("Ship", |cx| {
    ///     let tested = *cx.state;
    ///     cx.system("Ship it.").tools((!tested).then(test)).tools(tested.then(announce)).require_exit()
    /// });
    /// # let _ = release;
    /// ```
    ///
    /// An iteration without any tools then fails the loop, since only a limit could end it.
    pub const fn require_exit(mut self) -> Self {
        self.definition.require_exit = true;
        self
    }

    /// Lets a text answer end the loop in each iteration that has no exit tool, although another iteration has one.
    pub const fn text_exits(mut self) -> Self {
        self.definition.text_exits = true;
        self
    }

    /// Sets the maximum number of iterations; 50 by default.
    pub const fn max_iterations(mut self, iterations: u64) -> Self {
        self.definition.limits.budget.max_iterations = Some(iterations);
        self
    }

    /// Removes the limit of iterations. Without another limit, only the model ends the loop.
    pub const fn unlimited(mut self) -> Self {
        self.definition.limits.budget.max_iterations = None;
        self
    }

    /// Sets the effect of reaching any limit: end the loop (the default), or fail the brain.
    pub const fn on_limit(mut self, on_limit: OnLimit) -> Self {
        self.definition.limits.budget.on_limit = Some(on_limit);
        self
    }

    /// Alias of [`Loop::on_limit`].
    pub const fn on_max_iterations(self, on_limit: OnLimit) -> Self {
        self.on_limit(on_limit)
    }

    /// Asks a person for a higher limit when any limit is reached. The run waits until the person grants it, and the
    /// loop continues, or rejects it, and [`Loop::on_limit`] applies.
    pub const fn ask_for_more(mut self) -> Self {
        self.definition.limits.budget.ask = Some(AskForMore { valid_for: None });
        self
    }

    /// Like [`Loop::ask_for_more`], but the request is rejected after this time.
    pub const fn ask_for_more_within(mut self, time: Duration) -> Self {
        self.definition.limits.budget.ask = Some(AskForMore::within(time));
        self
    }

    /// Sets the maximum number of tokens, of requests and answers, of the loop and everything below it.
    pub const fn max_tokens(mut self, tokens: u64) -> Self {
        self.definition.limits.budget.max_tokens = Some(tokens);
        self
    }

    /// Sets the maximum cost of model answers, for the loop and everything below it: `"2.50"`, in the currency of the runner's
    /// prices. An answer of unknown cost also ends the loop, since the limit could not be enforced.
    ///
    /// # Panics
    ///
    /// If the amount is invalid.
    #[track_caller]
    pub fn max_money<M: TryInto<Money, Error: Into<MoneyError>>>(mut self, amount: M) -> Self {
        self.definition.limits.budget.max_money = Some(Money::written(amount));
        self
    }

    /// Sets the maximum active time of the loop; time spent waiting for people does not count.
    pub const fn max_time(mut self, time: Duration) -> Self {
        self.definition.limits.budget.max_time = Some(time);
        self
    }

    /// Sets the maximum number of consecutive failed calls, including unknown tools and invalid arguments. Checked before the next iteration.
    pub const fn max_failures(mut self, calls: u32) -> Self {
        self.definition.limits.max_failures = Some(calls);
        self
    }

    /// Sets the effect of a useless answer: fail the brain, the default ([`EndReason::Answer`]), or end the loop with the
    /// outcome [`LoopOutcome::Stopped`]. Useless answers are refusals, answers that the provider's filter stopped or that
    /// were cut off at the token limit, and empty ones after [`Loop::answer_retries`].
    ///
    /// [`EndReason::Answer`]: crate::record::EndReason::Answer
    pub const fn on_useless_answer(mut self, does: OnLimit) -> Self {
        self.definition.limits.on_useless_answer = does;
        self
    }

    /// Sets how often the model is asked again: in a row after an empty answer or calls with cut-off arguments, each in a new iteration;
    /// and within an iteration after a guard has refused an answer. 2 by default.
    pub const fn answer_retries(mut self, times: u32) -> Self {
        self.definition.limits.answer_retries = times;
        self
    }

    /// Gives the model one more iteration when a limit of the loop is reached, to sum up: it is informed, and has only
    /// the loop's exit tools. A successful exit tool then ends the loop normally; otherwise the limit ends it. The iteration
    /// does not count for the limits of this loop, but for those around it.
    pub const fn wrap_up(mut self) -> Self {
        self.definition.limits.wrap_up = true;
        self
    }

    /// Sets how many calls of a batch run concurrently; 8 by default.
    pub const fn parallel(mut self, calls: u32) -> Self {
        self.definition.limits.parallel = calls;
        self
    }

    /// Sets how the calls of a batch wait for each other's approvals.
    pub const fn policy(mut self, policy: BatchPolicy) -> Self {
        self.definition.limits.policy = policy;
        self
    }

    /// Chooses a tier of the runner's models.
    pub const fn model(mut self, tier: Tier) -> Self {
        self.definition.settings.tier = tier;
        self
    }

    /// Sets the model settings. The tier of [`Loop::model`] and the structured actions are preserved.
    pub fn settings(mut self, settings: Settings) -> Self {
        let Settings { tier, structured_actions, .. } = std::mem::replace(&mut self.definition.settings, settings);
        if self.definition.settings.tier == Tier::default() {
            self.definition.settings.tier = tier;
        }
        if self.definition.settings.structured_actions.is_none() {
            self.definition.settings.structured_actions = structured_actions;
        }
        self
    }

    /// Updates the state with the loop's outcome when the model, an exit tool or a limit ends the loop. It does not run
    /// when the run is cancelled or the loop fails.
    pub fn on_exit(mut self, fold: impl Fn(&mut S, &LoopOutcome) + Standalone) -> Self {
        self.definition.on_exit =
            Some(Arc::new(move |state: &StateValue, outcome: &LoopOutcome, _: Option<&Value>| {
                state.updated(|state| fold(state, outcome))
            }));
        self
    }

    /// Finds an action of the project that the loop uses.
    fn chosen(name: &str, declared: &[String], link: &dyn Link) -> Result<Arc<ToolDefinition>> {
        if !declared.iter().any(|known| known == name) {
            return Err(Error::new(format!(
                "`actions` names `{name}`, which the brain does not declare; add it to the brain's `.actions([…])`, before its loops"
            )));
        }
        link.action(name).ok_or_else(|| {
            Error::new(format!("the project has no action `{name}`; add it with `.action(…)` where the brain is added"))
        })
    }

    pub(super) fn into_definition(mut self, declared: &[String], link: &dyn Link) -> Result<LoopDefinition> {
        for name in &self.actions {
            let tool = Self::chosen(name, declared, link)?;
            if self.definition.tools.insert(tool.decl.id.clone(), tool).is_some() {
                return Err(Error::new(format!("the loop has two tools named `{name}`; choose one of them")));
            }
        }
        self.definition.settings.in_code = self.definition.answer.is_some();
        Ok(self.definition)
    }
}

fn snake_case(title: &str) -> String {
    let words: Vec<_> = title
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    words.join("_")
}
