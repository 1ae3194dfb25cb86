//! The configuration of a loop, made anew before every model call.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::about::tool_id;
use super::bounds::{IntoTool, Options, Services, State, Within};
use super::brain::Brain;
use super::brain_tool::BrainTool;
use super::kept::PluginState as _;
use super::plugin::{Plugin, erased};
use super::skill::SkillBuilder;
use super::tool::{Tool, ToolBuilder};
use super::usage_panic::usage_panic;
use crate::definition::{Link, LoopDefinition, StateValue, ToolDefinition};
use crate::error::{Error, Result};
use crate::record::{
    AskForMore, BatchPolicy, ContextItem, Limits, LoopOutcome, Money, MoneyError, OnLimit, Settings, Tier, micros,
};

/// A loop's configuration for one iteration: what the model is told, and what it can call.
#[must_use = "a loop's configuration is what its closure returns"]
pub struct Loop<O, S, V> {
    pub(super) definition: LoopDefinition,
    actions: Vec<String>,
    types: PhantomData<fn(O, S, V)>,
}

impl<O: Options, S: State, V: Services> Loop<O, S, V> {
    pub(super) fn new(system: String) -> Self {
        Self {
            definition: LoopDefinition {
                system: system.into(),
                input: None,
                message_id: None,
                hidden: false,
                context: Vec::new(),
                tools: IndexMap::new(),
                exit_on: Vec::new(),
                require_exit: false,
                limits: Limits::default(),
                settings: Settings::default(),
                begun: None,
                plugins: IndexMap::new(),
                compaction: None,
                answer: None,
                on_exit: None,
            },
            actions: Vec::new(),
            types: PhantomData,
        }
    }

    /// Opens the loop with a user message. What the run was started with stands behind it, in the first loop of the run's
    /// brain; a loop that nobody opens begins with a message of the engine, `Begin.`, or with what the trigger says that has
    /// started the run, since providers answer no request without a user message.
    pub fn input(mut self, text: impl Into<String>) -> Self {
        self.definition.input = Some(text.into());
        self.definition.message_id = None;
        self
    }

    /// Opens the loop with a user message that has an id of its own where it came from, such as a chat.
    pub fn input_with_id(self, text: impl Into<String>, message_id: impl Into<String>) -> Self {
        let mut opened = self.input(text);
        opened.definition.message_id = Some(message_id.into());
        opened
    }

    /// Hides the loop's record from people: chats and lists leave it out, while it stays history for the model.
    pub const fn hidden(mut self) -> Self {
        self.definition.hidden = true;
        self
    }

    /// Adds a named piece that the model reads behind the history. What changes between iterations belongs here and not into the
    /// system prompt: providers cache the beginning of a prompt as long as it stays the same.
    pub fn context(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.definition.context.push(ContextItem { name: name.into(), text: text.into() });
        self
    }

    /// Adds a tool.
    ///
    /// # Panics
    ///
    /// When the name is no tool name, or the loop has a tool of this name.
    #[track_caller]
    pub fn tool<T: IntoTool<O, S, V>>(self, name: &str, build: impl FnOnce(ToolBuilder<O, S, V>) -> T) -> Self {
        let tool = build(ToolBuilder::new(name)).into_tool();
        self.add(tool.definition)
    }

    /// Adds tools that were built elsewhere.
    ///
    /// # Panics
    ///
    /// When the loop has a tool of one of these names.
    #[track_caller]
    pub fn tools<T: IntoTool<O, S, V>>(mut self, tools: impl IntoIterator<Item = T>) -> Self {
        for tool in tools {
            self = self.add(tool.into_tool().definition);
        }
        self
    }

    /// Adds actions of the project, by the names that the brain says with [`Brain::actions`]. A name that the brain does not
    /// say before this loop fails the loop.
    pub fn actions<'n>(mut self, names: impl IntoIterator<Item = &'n str>) -> Self {
        self.actions.extend(names.into_iter().map(str::to_owned));
        self
    }

    /// Adds a brain as a tool. Without a map, the model fills the brain's options.
    ///
    /// # Panics
    ///
    /// When the name is no tool name, or the loop has a tool of this name.
    #[track_caller]
    pub fn brain<O2: Options, S2, V2: Within<V>, R: DeserializeOwned + 'static>(
        self,
        name: &str,
        brain: Brain<O2, S2, V2, R>,
        build: impl FnOnce(BrainTool<O, S, V, O2, R>) -> BrainTool<O, S, V, O2, R>,
    ) -> Self {
        let tool = Tool::<O, S, V>::brain(name, brain, build);
        self.add(tool.definition)
    }

    /// Adds brains as tools; each is named after its title, in snake case, and the model fills its options.
    ///
    /// # Panics
    ///
    /// When a title gives no tool name, or the loop has a tool of one of these names.
    #[track_caller]
    pub fn brains<S2, V2: Within<V>, R: DeserializeOwned + 'static>(
        mut self,
        brains: impl IntoIterator<Item = Brain<Value, S2, V2, R>>,
    ) -> Self {
        for brain in brains {
            let id = tool_id(&snake_case(&brain.definition.title));
            let tool: Tool<O, S, V> = BrainTool::new(id, brain).into();
            self = self.add(tool.definition);
        }
        self
    }

    /// Adds a skill: a brain or a function with a way in and a way out of the state.
    ///
    /// # Panics
    ///
    /// When the name is no tool name, or the loop has a tool of this name.
    #[track_caller]
    pub fn skill<T: Into<Tool<O, S, V>>>(self, name: &str, build: impl FnOnce(SkillBuilder<O, S, V>) -> T) -> Self {
        let tool = build(SkillBuilder::new(name)).into();
        self.add(tool.definition)
    }

    /// Adds a plugin. It takes part in every iteration, in the order of registration; see [`Plugin`].
    ///
    /// # Panics
    ///
    /// When the loop has a plugin of this name.
    #[track_caller]
    pub fn plugin<P: Plugin<O, S, V>>(mut self, plugin: P) -> Self {
        let name = P::State::NAME;
        if self.definition.plugins.insert(name, erased(plugin)).is_some() {
            usage_panic(&format!("the loop has two plugins named `{name}`"));
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

    /// Marks tools as exit tools by their names, those of the loop's plugins included. A name that ends in `*` stands for all
    /// tools that begin with it, of which there may be none. Any other name that no tool has fails the loop.
    pub fn exit_on<'n>(mut self, names: impl IntoIterator<Item = &'n str>) -> Self {
        self.definition.exit_on.extend(names.into_iter().map(str::to_owned));
        self
    }

    /// Lets only an exit tool end the loop, or a limit. A text answer then never ends it, not even in an iteration that
    /// offers no exit tool; the model is asked to go on with a tool call. Without this, a text ends a loop whose current
    /// iteration offers no exit tool.
    ///
    /// Set it where the exit tool appears late, as the work gets further:
    ///
    /// ```
    /// # use positronic_core::prelude::*;
    /// # use positronic_core::dsl::Tool;
    /// # fn test() -> Tool<(), bool, ()> { Tool::new("test", |t| t.execute(async |_: NoArgs, cx| Ok(cx.result("ok").update(|tested| *tested = true)))) }
    /// # fn announce() -> Tool<(), bool, ()> { Tool::new("announce", |t| t.exit().execute(async |_: NoArgs, _| Ok("ok"))) }
    /// let release = brain("Release").state(false).r#loop("Ship", |cx| {
    ///     let tested = *cx.state;
    ///     cx.system("Ship it.").tools((!tested).then(test)).tools(tested.then(announce)).require_exit()
    /// });
    /// # let _ = release;
    /// ```
    ///
    /// An iteration that offers no tool at all then fails the loop, since nothing could end it but a limit.
    pub const fn require_exit(mut self) -> Self {
        self.definition.require_exit = true;
        self
    }

    /// Sets how many iterations the loop may have; 50 where nothing is said.
    pub const fn max_iterations(mut self, iterations: u32) -> Self {
        self.definition.limits.max_iterations = Some(iterations);
        self
    }

    /// Lifts the limit of iterations. Without another limit, only the model ends the loop.
    pub const fn unlimited(mut self) -> Self {
        self.definition.limits.max_iterations = None;
        self
    }

    /// Sets what reaching a limit does, whichever it is: end the loop (the default), or fail the brain.
    pub const fn on_limit(mut self, on_limit: OnLimit) -> Self {
        self.definition.limits.on_limit = on_limit;
        self
    }

    /// Sets what reaching a limit does; another name of [`Loop::on_limit`].
    pub const fn on_max_iterations(self, on_limit: OnLimit) -> Self {
        self.on_limit(on_limit)
    }

    /// Asks a person for more where a limit is reached, whichever it is. The run waits until the person grants it, and the
    /// loop goes on, or refuses it, and what [`Loop::on_limit`] says is done.
    pub const fn ask_for_more(mut self) -> Self {
        self.definition.limits.ask = Some(AskForMore { valid_for: None });
        self
    }

    /// Asks a person for more as [`Loop::ask_for_more`] does. Where nobody answers within this time, it is refused.
    pub fn ask_for_more_within(mut self, time: Duration) -> Self {
        self.definition.limits.ask = Some(AskForMore::within(time));
        self
    }

    /// Sets how many tokens, of requests and answers, the loop and all below it may use.
    pub const fn max_tokens(mut self, tokens: u64) -> Self {
        self.definition.limits.max_tokens = Some(tokens);
        self
    }

    /// Sets what the answers of models may cost, for the loop and all below it: `"2.50"`, in the currency of the runner's
    /// prices. An answer whose cost nobody knows ends the loop, too, since the limit could not be kept.
    ///
    /// # Panics
    ///
    /// When this is no amount of money.
    #[track_caller]
    pub fn max_money<M: TryInto<Money, Error: Into<MoneyError>>>(mut self, amount: M) -> Self {
        self.definition.limits.max_money = Some(Money::written(amount));
        self
    }

    /// Sets how long the loop may be active; time spent waiting for people does not count.
    pub fn max_time(mut self, time: Duration) -> Self {
        self.definition.limits.max_time = Some(micros(time));
        self
    }

    /// Sets how many calls in a row may fail, an unknown tool and unfit arguments among them. It binds before the next iteration.
    pub const fn max_failures(mut self, calls: u32) -> Self {
        self.definition.limits.max_failures = Some(calls);
        self
    }

    /// Sets what an answer of no use does: fail the brain, which is the default ([`EndReason::Answer`]), or end the loop, whose
    /// outcome is [`LoopOutcome::Stopped`] then. A refusal, an answer that the provider's filter stopped, and one that was cut
    /// off at its largest number of tokens are of no use; an empty one is after [`Loop::answer_retries`].
    ///
    /// [`EndReason::Answer`]: crate::record::EndReason::Answer
    pub const fn on_useless_answer(mut self, does: OnLimit) -> Self {
        self.definition.limits.on_useless_answer = does;
        self
    }

    /// Sets how often in a row the model is asked again for an empty answer, and for calls whose arguments were cut off; 2
    /// where nothing is said. Each is an iteration.
    pub const fn answer_retries(mut self, times: u32) -> Self {
        self.definition.limits.answer_retries = times;
        self
    }

    /// Gives the model one more iteration where a limit of the loop is reached, to sum up what it has: it is told so, and has
    /// the loop's exit tools and no others. An exit tool that succeeds then ends the loop well; otherwise the loop ends by
    /// its limit. The iteration is on top of every limit of this loop, and of none around it.
    pub const fn wrap_up(mut self) -> Self {
        self.definition.limits.wrap_up = true;
        self
    }

    /// Sets how many calls of one batch run at once; 8 where nothing is said.
    pub const fn parallel(mut self, calls: u32) -> Self {
        self.definition.limits.parallel = calls;
        self
    }

    /// Sets how the calls of a batch wait for one another's approvals.
    pub const fn policy(mut self, policy: BatchPolicy) -> Self {
        self.definition.limits.policy = policy;
        self
    }

    /// Chooses which of the runner's models answers.
    pub const fn model(mut self, tier: Tier) -> Self {
        self.definition.settings.tier = tier;
        self
    }

    /// Sets how the model is to answer. It keeps the tier that [`Loop::model`] chose before, and how the loop decides.
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

    /// Folds the loop's outcome into the state when the loop ends by its model, an exit tool or a limit. It does not run
    /// when the run is cancelled or the loop fails: then nothing comes after the loop.
    pub fn on_exit(mut self, fold: impl Fn(&mut S, &LoopOutcome) + Send + Sync + 'static) -> Self {
        self.definition.on_exit = Some(Arc::new(move |state: &StateValue, outcome: &LoopOutcome| {
            state.updated(|state| fold(state, outcome))
        }));
        self
    }

    /// Finds an action of the project that the loop names.
    fn chosen(name: &str, declared: &[String], link: &dyn Link) -> Result<Arc<ToolDefinition>> {
        if !declared.iter().any(|known| known == name) {
            return Err(Error::new(format!(
                "`actions` names `{name}`, which the brain does not; name it in the brain's `.actions([…])`, before its loops"
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

impl<O, S, V> fmt::Debug for Loop<O, S, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.definition.fmt(f)
    }
}
