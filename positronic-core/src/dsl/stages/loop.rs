//! The loop stage of a brain: its closure, which configures each iteration.

use std::sync::Arc;
use std::time::Duration;

use super::tries::{EndsInLoop, Timed};
use crate::definition::{LoopStage, Scope, StageBody};
use crate::dsl::brain_builder::{BrainBuilder, Phase, TakesStages};
use crate::dsl::context::LoopContext;
use crate::dsl::r#loop::Loop;
use crate::dsl::plugin::Plugin;
use crate::dsl::services::{Requirement, Services};
use crate::dsl::tool::IntoTool;
use crate::dsl::trait_bounds::{Options, Payload, State};
use crate::dsl::wait::Webhook;
use crate::error::Result;

/// The return value of a loop's closure: its configuration, or a `Result` of it.
#[diagnostic::on_unimplemented(
    message = "the closure of a loop returns its configuration, not `{Self}`",
    label = "this is neither `cx.system(…)` nor a `Result` of it",
    note = "end the closure with `cx.system(…)`, without a semicolon; one that uses `?` ends with `Ok(cx.system(…))`"
)]
pub trait IntoLoop<O, S, V> {
    /// Returns the configuration.
    ///
    /// # Errors
    ///
    /// The error of the closure.
    fn into_loop(self) -> Result<Loop<O, S, V>>;
}

impl<O, S, V> IntoLoop<O, S, V> for Loop<O, S, V> {
    fn into_loop(self) -> Result<Self> {
        Ok(self)
    }
}

impl<O, S, V> IntoLoop<O, S, V> for Result<Loop<O, S, V>> {
    fn into_loop(self) -> Self {
        self
    }
}

impl<O: Options, S: State, V: Requirement + ?Sized, P: Phase> BrainBuilder<O, S, V, P> {
    /// Adds a loop: a model that calls tools until the work is done. The closure runs again before every model call. It may
    /// return a `Result`; an error fails the loop:
    ///
    /// ```
    /// use positronic_core::prelude::*;
    ///
    /// let reader = brain("Reader").state("Read pages %d to %d".to_owned()).r#loop("Read", |cx| {
    ///     let pages = cx.state.strip_prefix("Read ").ok_or_else(|| Error::new("no pages"))?;
    ///     Ok(cx.system(format!("Summarize {pages}.")))
    /// });
    /// # let _ = reader;
    /// ```
    ///
    /// `loop` is a keyword, so the method is written `.r#loop(…)`. Inside the macro `brain! { "Title" .loop(…) }` of
    /// `positronic-macros`, it is written `.loop(…)`.
    ///
    /// # Panics
    ///
    /// If the name is empty, a number, contains a `/`, or is taken.
    #[track_caller]
    pub fn r#loop<F, L>(self, name: &str, configure: F) -> BrainBuilder<O, S, V, P::Next<Timed<S>>>
    where
        F: Fn(LoopContext<O, S, V::Services>) -> L + Send + Sync + 'static,
        L: IntoLoop<O, S, V::Services>,
        P: TakesStages,
    {
        let declared = self.definition.actions.clone();
        let configured = move |scope: Scope| {
            let link = Arc::clone(&scope.link);
            configure(LoopContext::new(scope)?).into_loop()?.into_definition(&declared, &*link)
        };
        self.stage(name, StageBody::Loop(LoopStage::new(Arc::new(configured), None)))
    }
}

impl<O: Options, S: State, V: Requirement + ?Sized, P> BrainBuilder<O, S, V, P> {
    /// Gives the loop before it tools in every iteration, before those that its closure adds. They are built once, with the brain, so
    /// [`Brain::structure`](crate::dsl::Brain::structure), `positronic show`, the API and the inspector list them before any run.
    ///
    /// ```
    /// use positronic_core::prelude::*;
    ///
    /// fn refund() -> Tool<(), u32> {
    ///     Tool::new("refund", |t| t.approval(|_, _| Some("money".to_owned())).execute(async |_: NoArgs, cx| Ok(format!("paid {}", *cx.state))))
    /// }
    ///
    /// let desk = brain("Desk").state(12_u32).r#loop("Chat", |cx| cx.system("Help the customer.")).tools([refund()]).build();
    /// assert_eq!(desk.structure().stages[0].tools[0].name, "refund");
    /// ```
    ///
    /// Tools that depend on the state belong in the closure ([`Loop::tools`]).
    ///
    /// # Panics
    ///
    /// If the loop has two tools with one name by that, or two that a provider could not tell apart, or if a loop with an output could end by one.
    #[track_caller]
    pub fn tools<T: IntoTool<O, P::State, V::Services>>(self, tools: impl IntoIterator<Item = T>) -> Self
    where
        P: EndsInLoop,
    {
        self.with_checked_loop(|stage| stage.add_tools(tools.into_iter().map(|tool| tool.into_tool().definition)))
    }

    /// Gives the loop before it a plugin in every iteration, before those that its closure adds. One value serves all runs of the process, so what
    /// belongs to a run is in the plugin's state.
    ///
    /// # Panics
    ///
    /// If the loop has two plugins with one name by that; see [`LoopPlugin::named`](crate::dsl::LoopPlugin::named).
    #[track_caller]
    pub fn plugin(self, plugin: impl Plugin<O, P::State, V::Services>) -> Self
    where
        P: EndsInLoop,
    {
        let plugin = plugin.erased();
        self.with_checked_loop(|stage| stage.add_plugin(plugin.name, plugin.plugin))
    }

    /// Marks tools of the loop before it as exit tools by name: those that [`tools`](Self::tools) has given it, and those that its
    /// plugins ([`plugin`](Self::plugin)) list as ones that they can offer ([`Plugin::tool_names`]). A name that ends in `*` stands for all that
    /// begin so, also for those that the closure adds.
    ///
    /// ```
    /// use positronic_core::prelude::*;
    ///
    /// fn escalate() -> Tool { Tool::new("escalate", |t| t.execute(async |_: NoArgs, _| Ok("a colleague will call"))) }
    ///
    /// let desk = brain("Desk").r#loop("Chat", |cx| cx.system("Help the customer.")).tools([escalate()]).exit_on(["escalate"]);
    /// # let _ = desk;
    /// ```
    ///
    /// Tools that the closure adds are unknown before a run; [`Loop::exit_on`] names these.
    ///
    /// # Panics
    ///
    /// If none of these tools has such a name, or the loop has an output.
    #[track_caller]
    pub fn exit_on<'n>(self, names: impl IntoIterator<Item = &'n str>) -> Self
    where
        P: EndsInLoop,
    {
        self.with_checked_loop(|stage| stage.mark_exits(names))
    }

    /// Lets the loop before it take tools of the run's caller: a message to the run gives them
    /// ([`UserMessage::caller_tools`](crate::record::UserMessage::caller_tools)), the model sees them beside the loop's own, and a call of one waits
    /// for the caller's result, for as long as it takes; [`caller_tools_within`](Self::caller_tools_within) sets a limit. The arguments are checked
    /// against the caller's schema first.
    ///
    /// ```
    /// use positronic_core::prelude::*;
    ///
    /// let helper = brain("Helper").r#loop("Chat", |cx| cx.system("Help the user.")).caller_tools();
    /// # let _ = helper;
    /// ```
    ///
    /// Without it, a run refuses such a message. A caller's tool with the name of one of the loop's tools fails the run when the loop begins, and
    /// a message to an open loop is refused.
    pub fn caller_tools(self) -> Self
    where
        P: EndsInLoop,
    {
        self.with_loop(|stage| (stage.caller_tools, stage.caller_timeout) = (true, None))
    }

    /// Lets the loop before it take tools of the run's caller, as [`caller_tools`](Self::caller_tools), and ends a call without a result after a
    /// time: its result is an error, which the model reads, and the loop continues. A result that comes later is refused.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use positronic_core::prelude::*;
    ///
    /// let helper = brain("Helper").r#loop("Chat", |cx| cx.system("Help the user."));
    /// let helper = helper.caller_tools_within(Duration::from_secs(3600));
    /// # let _ = helper;
    /// ```
    pub fn caller_tools_within(self, time: Duration) -> Self
    where
        P: EndsInLoop,
    {
        self.with_loop(|stage| (stage.caller_tools, stage.caller_timeout) = (true, Some(time)))
    }

    /// Declares a webhook for which tools of the loop before it wait: the waits of a tool are code, so without it only a run shows
    /// that. [`Brain::structure`](crate::dsl::Brain::structure), `positronic show` and the API list it, and a project that lists its webhooks
    /// has it or does not start.
    ///
    /// It changes no run: a tool can wait for other webhooks, too, which the inbox then shows.
    ///
    /// ```
    /// use positronic_core::prelude::*;
    ///
    /// let letter = webhook::<String>("letter");
    /// let ask = letter.clone();
    /// let desk = brain("Desk")
    ///     .r#loop("Chat", move |cx| {
    ///         let letter = ask.clone();
    ///         cx.system("Help the customer.").tool("ask", move |t| {
    ///             t.wait(move |_: &NoArgs, _| [letter.on("desk")]).execute(async |_, _| Ok("asked"))
    ///         })
    ///     })
    ///     .waits_for(&letter)
    ///     .build();
    /// assert_eq!(desk.structure().stages[0].webhooks, ["letter"]);
    /// ```
    pub fn waits_for<T: Payload>(self, webhook: &Webhook<T>) -> Self
    where
        P: EndsInLoop,
    {
        let name = webhook.name();
        self.with_loop(|stage| {
            if !stage.webhooks.iter().any(|known| known == name) {
                stage.webhooks.push(name.to_owned());
            }
        })
    }
}

impl<O: Options, S: State, V: Services> LoopContext<O, S, V> {
    /// Creates the loop's configuration with its system prompt.
    pub fn system(&self, prompt: impl Into<String>) -> Loop<O, S, V> {
        Loop::new(prompt.into())
    }
}
