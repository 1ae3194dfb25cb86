//! Fixed action spaces: an enum whose variants are the tools of a loop.

use std::sync::Arc;

use futures::future::BoxFuture;

use super::context::ToolContext;
use super::r#loop::Loop;
use super::services::Services;
use super::tool::Tool;
use super::tool_reply::IntoReply;
use super::trait_bounds::{Options, Standalone, State};
use crate::error::Result;

/// The implementation of the actions `A`, in a loop with options `O`, state `S` and services `V`; the model reads an `R`.
pub type Act<A, O, S, V, R> = Arc<dyn Fn(A, ToolContext<O, S, V>) -> BoxFuture<'static, Result<R>> + Send + Sync>;

/// A fixed action space: an enum that derives `positronic_macros::Actions`. Each variant is an action, its fields are the
/// input, and its doc comment is the description.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not derive `Actions`",
    label = "this is not an enum that derives `Actions`",
    note = "write `#[derive(positronic_macros::Actions)]` over the enum, and state its type: `async |act: Act, cx| match act {{ … }}`"
)]
pub trait Actions: Sized + Send + 'static {
    /// Makes a tool for each action.
    fn tools<O: Options, S: State, V: Services, R: IntoReply<S> + 'static>(
        act: Act<Self, O, S, V, R>,
    ) -> Vec<Tool<O, S, V>>;
}

impl<O: Options, S: State, V: Services> Loop<O, S, V> {
    /// Adds the actions of an enum that derives `positronic_macros::Actions`. One function implements them all, so that its match
    /// is exhaustive: a new action does not compile until it is handled. The docs of the derive show a complete brain.
    ///
    /// # Panics
    ///
    /// If the loop has a tool with one of these names.
    #[track_caller]
    pub fn act<A, F, Fut, R>(self, act: F) -> Self
    where
        A: Actions,
        F: Fn(A, ToolContext<O, S, V>) -> Fut + Standalone,
        Fut: Future<Output = Result<R>> + Send + 'static,
        R: IntoReply<S> + 'static,
    {
        self.tools(A::tools(Arc::new(move |action, cx| Box::pin(act(action, cx)))))
    }
}
