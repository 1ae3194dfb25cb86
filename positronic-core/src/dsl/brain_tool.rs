//! Brains as tools of a loop.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::bounds::{Options, Services, State, ToolArgs, Within};
use super::brain::Brain;
use super::reply::NoArgs;
use super::tool::{RETRIES, TIMEOUT, Tool, decode, require_object};
use crate::error::Error;
use crate::plan::{Document, GateFn, InputFn, NestedPlan, OutputFn, Plan, ToolBody, ToolPlan, encode};
use crate::record::{CallFlags, Gate, ToolDecl, ToolId};
use crate::tools::Schema;

/// Builds a tool that runs a brain with options `O2` and result `R`. Without a map, the model fills the brain's options.
#[must_use = "a brain becomes a tool when the closure returns it"]
pub struct BrainTool<O, S, V, O2, R> {
    id: ToolId,
    title: Option<String>,
    description: String,
    flags: CallFlags,
    gate: Option<GateFn>,
    plan: Arc<Plan>,
    schema: Arc<Schema>,
    input: InputFn,
    output: Option<OutputFn>,
    around: PhantomData<fn(O, S, V)>,
    inner: PhantomData<fn(O2, R)>,
}

impl<O: Options, S: State, V: Services, O2: Options, R: DeserializeOwned + 'static> BrainTool<O, S, V, O2, R> {
    pub(super) fn new<S2, V2: Within<V>>(id: ToolId, brain: Brain<O2, S2, V2, R>) -> Self {
        let plan = brain.plan;
        let check = Arc::clone(&plan.read_options);
        Self {
            id,
            title: Some(plan.title.clone()),
            description: plan.description.clone(),
            flags: CallFlags { brain: true, ..CallFlags::default() },
            gate: None,
            schema: Arc::clone(&plan.options),
            plan,
            input: Arc::new(move |_, arguments| check(arguments)),
            output: None,
            around: PhantomData,
            inner: PhantomData,
        }
    }

    /// Says what the brain does; the model reads it. Without it, the brain's own description stands.
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = text.into();
        self
    }

    /// Names the tool for people; without it, the brain's title stands.
    pub fn title(mut self, text: impl Into<String>) -> Self {
        self.title = Some(text.into());
        self
    }

    /// Ends the loop around when the brain has ended well.
    pub const fn exit(mut self) -> Self {
        self.flags.exit = true;
        self
    }

    /// Says that the brain changes nothing outside, so it waits for no other call's approval.
    pub const fn read_only(mut self) -> Self {
        self.flags.read_only = true;
        self
    }

    /// Says that the brain may destroy something; people and bridges are told so.
    pub const fn destructive(mut self) -> Self {
        self.flags.destructive = true;
        self
    }

    /// Runs the brain while no other call of the loop runs.
    pub const fn sequential(mut self) -> Self {
        self.flags.sequential = true;
        self
    }

    /// Asks a person before every call, and says why.
    pub fn requires_approval(mut self, reason: impl Into<String>) -> Self {
        let reason: Arc<str> = reason.into().into();
        self.gate = Some(Arc::new(move |_, _| {
            let gate = Gate { reason: (*reason).to_owned(), valid_for: None, editable: true };
            Box::pin(std::future::ready(Ok(Some(gate))))
        }));
        self
    }

    /// Makes the brain's options from the state alone; the model is asked for nothing.
    pub fn map_input(mut self, map: impl Fn(&S) -> O2 + Send + Sync + 'static) -> Self {
        self.schema = Schema::of::<NoArgs>();
        self.input = Arc::new(move |state, _| encode(&map(&*state.shared::<S>()?)));
        self
    }

    /// Makes the brain's options from the state and from what the model is asked for.
    ///
    /// # Panics
    ///
    /// When `T` is no object in JSON.
    #[track_caller]
    pub fn map_input_with<T: ToolArgs>(mut self, map: impl Fn(&S, T) -> O2 + Send + Sync + 'static) -> Self {
        require_object::<T>(&self.id);
        self.schema = Schema::of::<T>();
        self.input = Arc::new(move |state, arguments| encode(&map(&*state.shared::<S>()?, decode::<T>(arguments)?)));
        self
    }

    /// Changes the state around by the brain's result.
    pub fn map_output(mut self, map: impl Fn(&mut S, R) + Send + Sync + 'static) -> Self {
        self.output = Some(Arc::new(move |state: &Document, result: &Value| {
            let result = R::deserialize(result).map_err(|error| {
                Error::new(format!("the brain's result is no `{}`: {error}", std::any::type_name::<R>()))
            })?;
            state.updated(|state| map(state, result))
        }));
        self
    }

    /// Is [`BrainTool::map_input`] in a skill's words.
    pub fn prepare(self, map: impl Fn(&S) -> O2 + Send + Sync + 'static) -> Self {
        self.map_input(map)
    }

    /// Is [`BrainTool::map_output`] in a skill's words.
    pub fn handle_result(self, map: impl Fn(&mut S, R) + Send + Sync + 'static) -> Self {
        self.map_output(map)
    }
}

impl<O, S, V, O2, R> From<BrainTool<O, S, V, O2, R>> for Tool<O, S, V> {
    fn from(tool: BrainTool<O, S, V, O2, R>) -> Self {
        let plan = ToolPlan {
            decl: ToolDecl {
                id: tool.id,
                title: tool.title,
                description: tool.description,
                parameters: Arc::clone(tool.schema.json()),
                flags: tool.flags,
            },
            schema: tool.schema,
            timeout: TIMEOUT,
            retries: RETRIES,
            gate: tool.gate,
            body: ToolBody::Brain(NestedPlan { plan: tool.plan, input: tool.input, output: tool.output }),
        };
        Self { plan: Arc::new(plan), types: PhantomData }
    }
}

impl<O, S, V, O2, R> fmt::Debug for BrainTool<O, S, V, O2, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BrainTool").field("id", &self.id).field("brain", &self.plan).finish_non_exhaustive()
    }
}
