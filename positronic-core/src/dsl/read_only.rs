//! The state as tools, loops and plugins see it.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use derive_where::derive_where;

/// A shared view of the state. Cloning is cheap, and `(*cx.state).clone()` copies the state itself.
///
/// It cannot be assigned to, since a change would be lost: calls run concurrently and are repeated after a crash, so a change
/// is recorded with the result of its call. To change the state in a tool, return the change with the result:
///
/// ```
/// # use positronic_core::prelude::*;
/// # let _ = brain("Desk").state(true).r#loop("Chat", |cx| cx.system("Help.").tool("close", |t| {
/// t.execute(async |_: NoArgs, cx| Ok(cx.result("closed").update(|open| *open = false)))
/// # }));
/// ```
///
/// A loop changes the state with its tools and with [`Loop::on_exit`](super::Loop::on_exit); a step owns the state and returns
/// the next one.
#[derive(Debug)]
#[derive_where(Clone)]
pub struct ReadOnly<S>(Arc<S>);

impl<S> ReadOnly<S> {
    pub(super) const fn new(state: Arc<S>) -> Self {
        Self(state)
    }
}

impl<S> Deref for ReadOnly<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.0
    }
}

impl<S: fmt::Display> fmt::Display for ReadOnly<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
