//! Skills: higher-level capabilities, each a brain or a function, with maps from and to the state.

use std::marker::PhantomData;
use std::sync::Arc;

use derive_where::derive_where;
use serde::Serialize;

use super::about::{About, about_methods, tool_id, tries_methods};
use super::approval::verdict;
use super::brain::IntoBrain;
use super::brain_tool::BrainTool;
use super::context::ToolContext;
use super::reply::{NoArgs, ToolReply};
use super::services::{Services, Within};
use super::tool::{Tool, ToolBuilder, arguments_as};
use super::trait_bounds::{IntoVerdict, Options, Standalone, State, ToolArgs};
use crate::error::Result;

/// Builds a skill: a brain with [`SkillBuilder::brain`], or a function with [`SkillBuilder::execute`].
#[must_use = "a skill is made by `brain` or `execute`"]
#[derive_where(Debug)]
pub struct SkillBuilder<O, S, V> {
    name: String,
    description: String,
    types: PhantomData<fn(O, S, V)>,
}

impl<O: Options, S: State, V: Services> SkillBuilder<O, S, V> {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), description: String::new(), types: PhantomData }
    }

    /// Sets the description for the model.
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = text.into();
        self
    }

    /// Makes the skill from a brain; `.prepare(…)` and `.handle_result(…)` map its options and its result.
    #[track_caller]
    pub fn brain<B: IntoBrain<Services: Within<V>>>(self, brain: B) -> BrainTool<O, S, V, B::Options, B::Result> {
        let tool = BrainTool::new(tool_id(&self.name), brain);
        if self.description.is_empty() { tool } else { tool.description(self.description) }
    }

    /// Makes the skill from a function whose arguments come from the model or from `.prepare(…)`.
    #[track_caller]
    pub fn execute<T, F, Fut, R>(self, execute: F) -> FunctionSkill<O, S, V, T, R>
    where
        T: ToolArgs,
        F: Fn(T, ToolContext<O, S, V>) -> Fut + Standalone,
        Fut: Future<Output = Result<R>> + Send + 'static,
        R: Serialize + Send + 'static,
    {
        let execute: SkillFn<O, S, V, T, R> = Arc::new(move |input, cx| Box::pin(execute(input, cx)));
        let mut about = About::new(tool_id(&self.name));
        about.description = self.description;
        FunctionSkill { about, execute, prepare: None, handle: None }
    }
}

type SkillFn<O, S, V, T, R> =
    Arc<dyn Fn(T, ToolContext<O, S, V>) -> futures::future::BoxFuture<'static, Result<R>> + Send + Sync>;
type PrepareFn<S, T> = Arc<dyn Fn(&S) -> T + Send + Sync>;
type HandleFn<S, R> = Arc<dyn Fn(&mut S, R) + Send + Sync>;

/// A skill that is a function.
#[must_use = "a skill becomes a tool when the closure returns it"]
#[derive_where(Debug)]
pub struct FunctionSkill<O, S, V, T, R> {
    about: About<T>,
    #[derive_where(skip)]
    execute: SkillFn<O, S, V, T, R>,
    #[derive_where(skip)]
    prepare: Option<PrepareFn<S, T>>,
    #[derive_where(skip)]
    handle: Option<HandleFn<S, R>>,
}

about_methods!(FunctionSkill<O, S, V, T, R>);
tries_methods!(FunctionSkill<O, S, V, T, R>);

impl<O: Options, S: State, V: Services, T, R> FunctionSkill<O, S, V, T, R> {
    /// Computes the function's input from the state; the model provides no arguments.
    pub fn prepare(mut self, prepare: impl Fn(&S) -> T + Standalone) -> Self {
        self.prepare = Some(Arc::new(prepare));
        self
    }

    /// Updates the state with the function's result.
    pub fn handle_result(mut self, handle: impl Fn(&mut S, R) + Standalone) -> Self {
        self.handle = Some(Arc::new(handle));
        self
    }

    /// Requires an approval for calls for which the closure returns `Some(reason)`. The closure may return a future.
    ///
    /// It sees the function's input, from the model or from [`FunctionSkill::prepare`], and is called
    /// once, after the model's answer; its verdict is recorded. If it panics, the call fails.
    pub fn approval<F, D, When>(mut self, approval: F) -> Self
    where
        F: Fn(&T, &ToolContext<O, S, V>) -> D + Standalone,
        D: IntoVerdict<When>,
    {
        self.about.approval.only_if(verdict(approval));
        self
    }
}

impl<O: Options, S: State, V: Services, T: ToolArgs, R: Serialize + Send + 'static> From<FunctionSkill<O, S, V, T, R>>
    for Tool<O, S, V>
{
    fn from(skill: FunctionSkill<O, S, V, T, R>) -> Self {
        let FunctionSkill { about, execute, prepare, handle } = skill;
        match prepare {
            None => ToolBuilder::of(about.reading(|arguments, _| arguments_as(arguments))).execute(
                move |input: T, cx: ToolContext<O, S, V>| finish(execute(input, cx.clone()), cx, handle.clone()),
            ),
            Some(prepare) => {
                let shown = Arc::clone(&prepare);
                let about = about.reading(move |_, scope| Ok(shown(&*scope.state.shared::<S>()?)));
                ToolBuilder::of(about).execute(move |_: NoArgs, cx: ToolContext<O, S, V>| {
                    finish(execute(prepare(&cx.state), cx.clone()), cx, handle.clone())
                })
            }
        }
    }
}

async fn finish<O, S: State, V, R: Serialize + Send + 'static>(
    running: futures::future::BoxFuture<'static, Result<R>>,
    cx: ToolContext<O, S, V>,
    handle: Option<HandleFn<S, R>>,
) -> Result<ToolReply<S>> {
    let result = running.await?;
    let reply = cx.result(&result);
    Ok(match handle {
        Some(handle) => reply.update(move |state| handle(state, result)),
        None => reply,
    })
}
