//! A fixed space of actions: an enum, whose variants are the tools of a loop.

use std::sync::Arc;

use futures::future::BoxFuture;

use super::bounds::{Options, Services, State};
use super::context::ToolContext;
use super::r#loop::Loop;
use super::reply::IntoReply;
use super::tool::Tool;
use crate::error::Result;

/// What an action of `A` does, in a loop with options `O`, state `S` and services `V`; the model reads an `R`.
pub type Act<A, O, S, V, R> = Arc<dyn Fn(A, ToolContext<O, S, V>) -> BoxFuture<'static, Result<R>> + Send + Sync>;

/// A fixed space of actions: an enum that derives `positronic_macros::Actions`. Each variant is an action, its fields are the
/// input, its doc comment says what it does.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no space of actions",
    label = "this is no enum that derives `Actions`",
    note = "write `#[derive(positronic_macros::Actions)]` over the enum, and say its type: `async |act: Act, cx| match act {{ … }}`"
)]
pub trait Actions: Sized + Send + 'static {
    /// Makes a tool of each action.
    fn tools<O: Options, S: State, V: Services, R: IntoReply<S> + 'static>(
        act: Act<Self, O, S, V, R>,
    ) -> Vec<Tool<O, S, V>>;
}

impl<O: Options, S: State, V: Services> Loop<O, S, V> {
    /// Adds the actions of an enum that derives `positronic_macros::Actions`. One function does them all, so that the match over
    /// them is exhaustive: an action that is added later does not compile until something is done about it.
    /// The docs of the derive show a whole brain.
    ///
    /// # Panics
    ///
    /// When the loop has a tool of one of these names.
    #[track_caller]
    pub fn act<A, F, Fut, R>(self, act: F) -> Self
    where
        A: Actions,
        F: Fn(A, ToolContext<O, S, V>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R>> + Send + 'static,
        R: IntoReply<S> + 'static,
    {
        self.tools(A::tools(Arc::new(move |action, cx| Box::pin(act(action, cx)))))
    }
}
