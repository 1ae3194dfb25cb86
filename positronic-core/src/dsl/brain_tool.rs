//! Brains as tools of a loop.

use std::marker::PhantomData;
use std::sync::Arc;

use derive_where::derive_where;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::approval::{reading, verdict};
use super::context::ToolContext;
use super::services::Services;
use super::tool::{IntoTool, Tool, arguments_as, decodes};
use super::tool_reply::NoArgs;
use super::tool_settings::{About, about_methods};
use super::trait_bounds::{IntoVerdict, Options, Standalone, State, ToolArgs};
use crate::definition::{BrainDefinition, DecodesFn, NestedDefinition, StateValue, ToolBody, decode, encode};
use crate::record::Dialogue;
use crate::tools::Schema;

/// Builds a tool that runs a brain with options `O2` and result `R`; see [`ToolBuilder::brain`](super::ToolBuilder::brain).
#[must_use = "a brain becomes a tool when the closure returns it"]
#[derive_where(Debug)]
pub struct BrainTool<O, S, V, O2, R> {
    pub(super) about: About,
    schema: Arc<Schema>,
    #[derive_where(skip)]
    decodes: DecodesFn,
    #[derive_where(skip)]
    nested: NestedDefinition,
    pub(super) dialogue: Dialogue,
    types: BrainToolTypes<O, S, V, O2, R>,
}

/// The types of the outer brain's code, and of the inner brain's options and result.
type BrainToolTypes<O, S, V, O2, R> = PhantomData<fn(O, S, V, O2, R)>;

about_methods!(BrainTool<O, S, V, O2, R>);

impl<O: Options, S: State, V: Services, O2: Options, R: DeserializeOwned + 'static> BrainTool<O, S, V, O2, R> {
    pub(super) fn new(mut about: About, definition: Arc<BrainDefinition>) -> Self {
        let (check, decodes) = (Arc::clone(&definition.read_options), Arc::clone(&definition.read_options));
        about.title.get_or_insert_with(|| definition.title.clone());
        if about.description.is_empty() {
            about.description.clone_from(&definition.description);
        }
        about.flags.brain = true;
        Self {
            about,
            schema: Arc::clone(&definition.options),
            decodes: Arc::new(move |arguments| decodes(arguments, usize::MAX).map(drop)),
            nested: NestedDefinition {
                definition,
                input: Arc::new(move |state, arguments| check(arguments, state.max_bytes())),
                output: None,
            },
            dialogue: Dialogue::Whole,
            types: PhantomData,
        }
    }

    /// Requires an approval for calls for which the closure returns `Some(reason)`. The closure may return a future.
    ///
    /// It sees the options of the brain, filled in by the model or by a map, and is called
    /// once, after the model's answer; its verdict is recorded. If it panics, the call fails.
    ///
    /// ```
    /// # use positronic_core::prelude::*;
    /// # #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    /// # struct Topic { depth: u32 }
    /// # let research = brain("Research").options::<Topic>().step("Open", async |_| Ok(1));
    /// # let _ = brain("Desk").r#loop("Chat", move |cx| cx.system("Help.").tool("research", |t| {
    /// t.brain(research.clone()).approval(|topic, _| (topic.depth > 3).then(|| format!("{} levels deep", topic.depth)))
    /// # }));
    /// ```
    pub fn approval<F, D, When>(mut self, approval: F) -> Self
    where
        F: Fn(&O2, &ToolContext<O, S, V>) -> D + Standalone,
        D: IntoVerdict<When>,
    {
        self.about
            .approval
            .only_if(reading(verdict(approval), |options: &Arc<Value>, _| decode("the arguments", options)));
        self
    }

    /// Computes the brain's options from the state; the model provides no arguments.
    pub fn map_input(mut self, map: impl Fn(&S) -> O2 + Standalone) -> Self {
        self.schema = Schema::of_arguments::<NoArgs>();
        self.decodes = decodes::<NoArgs>();
        self.nested.input = Arc::new(move |state, _| encode(&map(&*state.shared::<S>()?), state.max_bytes()));
        self
    }

    /// Computes the brain's options from the state and the model's arguments.
    pub fn map_input_with<T: ToolArgs>(mut self, map: impl Fn(&S, T) -> O2 + Standalone) -> Self {
        self.schema = Schema::of_arguments::<T>();
        self.decodes = decodes::<T>();
        self.nested.input = Arc::new(move |state, arguments| {
            encode(&map(&*state.shared::<S>()?, arguments_as::<T>(arguments)?), state.max_bytes())
        });
        self
    }

    /// Updates the outer state with the brain's result.
    pub fn map_output(
        mut self,
        map: impl Fn(&mut S, R) + Standalone, // R is the brain's result: its last state, or what its `.result(…)` returns
    ) -> Self {
        self.nested.output = Some(Arc::new(move |state: &StateValue, result: &Value| {
            let result = decode("the brain's result", result)?;
            state.updated(|state| map(state, result))
        }));
        self
    }

    /// Alias of [`BrainTool::map_input`] for skills.
    pub fn prepare(self, map: impl Fn(&S) -> O2 + Standalone) -> Self {
        self.map_input(map)
    }

    /// Alias of [`BrainTool::map_output`] for skills.
    pub fn handle_result(self, map: impl Fn(&mut S, R) + Standalone) -> Self {
        self.map_output(map)
    }
}

impl<O, S, V, O2, R> IntoTool<O, S, V> for BrainTool<O, S, V, O2, R> {
    fn into_tool(self) -> Tool<O, S, V> {
        let mut definition = self.about.into_definition(self.schema, ToolBody::Brain(self.nested), self.decodes);
        Arc::make_mut(&mut definition).dialogue = self.dialogue;
        Tool::of_definition(definition)
    }
}
