//! The state and the options as an author's closures see them.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use derive_where::derive_where;
use serde::{Serialize, Serializer};

/// A shared view of the state or the options. Cloning is cheap, `(*cx.state).clone()` copies the value itself, and it is encoded
/// and displayed as the value is.
///
/// It cannot be assigned to, since a change would be lost: calls run concurrently and are repeated after a crash, so a change
/// is recorded with the result of its call. To change the state in a tool, update it:
///
/// ```
/// # use positronic_core::prelude::*;
/// # let _ = brain("Desk").state(true).r#loop("Chat", |cx| cx.system("Help.").tool("close", |t| {
/// t.execute(async |_: NoArgs, cx| {
///     cx.update(|open| *open = false);
///     Ok("closed")
/// })
/// # }));
/// ```
///
/// A loop changes the state with its tools and with [`Loop::on_exit`](super::Loop::on_exit); a step owns the state and returns
/// the next one.
///
/// `How` does nothing at run time. The compiler shows it in its errors, so its name says how the value is set.
#[derive_where(Clone)]
pub struct ReadOnly<T, How>(Arc<T>, PhantomData<fn() -> How>);

/// Marks the state in a tool: `cx.update(|state| state.open = false)` changes it.
#[derive(Debug)]
pub struct ChangedWithUpdate(());

/// Marks the state in a loop's closure and in a plugin: the loop's tools change it, and
/// [`Loop::on_exit`](super::Loop::on_exit).
#[derive(Debug)]
pub struct ChangedByToolsAndOnExit(());

/// Marks the options: `brain("Hello").options::<Options>()` declares their type, before the first stage. They are `()` in a
/// brain that declares none.
#[derive(Debug)]
pub struct DeclaredWithOptions(());

impl<T, How> ReadOnly<T, How> {
    pub(super) const fn new(value: Arc<T>) -> Self {
        Self(value, PhantomData)
    }
}

impl<T, How> Deref for ReadOnly<T, How> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: fmt::Debug, How> fmt::Debug for ReadOnly<T, How> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: fmt::Display, How> fmt::Display for ReadOnly<T, How> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: Serialize, How> Serialize for ReadOnly<T, How> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_is_written_into_a_prompt_as_its_value_is() {
        #[derive(Debug, Serialize)]
        struct Ticket {
            open: bool,
        }
        let state = ReadOnly::<_, ChangedWithUpdate>::new(Arc::new(Ticket { open: true }));

        assert_eq!(serde_json::to_string(&state).unwrap(), r#"{"open":true}"#);
        assert_eq!(format!("{state:?}"), "Ticket { open: true }");
        assert_eq!(ReadOnly::<_, DeclaredWithOptions>::new(Arc::new("text")).to_string(), "text");
    }
}
