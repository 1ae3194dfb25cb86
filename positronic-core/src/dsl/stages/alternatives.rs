//! Alternatives of which the first ends a stage: the brains of a race, the answers of a wait.

use std::sync::Arc;

use derive_where::derive_where;
use serde_json::Value;

use crate::dsl::usage_panic::usage_panic;
use crate::error::Result;

/// Alternatives, and the end `T` of their time. The first of them, or that end, becomes an `E`.
#[derive_where(Debug; A)]
pub(super) struct Alternatives<A, T, E> {
    pub(super) members: Vec<A>,
    #[derive_where(skip)]
    events: Vec<EventFn<E>>,
    #[derive_where(skip)]
    end: Option<(T, EndFn<E>)>,
}

/// Makes an event of an alternative's value.
type EventFn<E> = Box<dyn Fn(&Value) -> Result<E> + Send + Sync>;
/// Makes an event of the end of the time.
type EndFn<E> = Box<dyn Fn() -> E + Send + Sync>;

impl<A, T, E: 'static> Alternatives<A, T, E> {
    pub(super) fn one(member: A, event: impl Fn(&Value) -> Result<E> + Send + Sync + 'static) -> Self {
        Self { members: vec![member], events: vec![Box::new(event)], end: None }
    }

    /// Makes another event of each.
    pub(super) fn to<E2: 'static>(self, event: impl Fn(E) -> E2 + Send + Sync + 'static) -> Alternatives<A, T, E2> {
        let event = Arc::new(event);
        let of_value = |own: EventFn<E>| {
            let event = Arc::clone(&event);
            Box::new(move |value: &Value| Ok(event(own(value)?))) as EventFn<E2>
        };
        let events = self.events.into_iter().map(of_value).collect();
        let end = self.end.map(|(time, over)| (time, Box::new(move || event(over())) as EndFn<E2>));
        Alternatives { members: self.members, events, end }
    }

    /// Adds others. It panics with `one_time` if both have an end.
    #[track_caller]
    pub(super) fn or(mut self, other: Self, one_time: &str) -> Self {
        self.members.extend(other.members);
        self.events.extend(other.events);
        match other.end {
            Some((time, event)) => self.end(time, event, one_time),
            None => self,
        }
    }

    /// Sets the end of the time. It panics with `one_time` if there is one.
    #[track_caller]
    pub(super) fn end(mut self, time: T, event: impl Fn() -> E + Send + Sync + 'static, one_time: &str) -> Self {
        if self.end.is_some() {
            usage_panic(one_time);
        }
        self.end = Some((time, Box::new(event)));
        self
    }

    pub(super) fn time(&self) -> Option<&T> {
        self.end.as_ref().map(|(time, _)| time)
    }

    /// Returns the event of the first alternative and its value, or of the end of the time; `None` if there is no such alternative.
    pub(super) fn event(&self, first: Option<(u32, &Value)>) -> Option<Result<E>> {
        match first {
            Some((index, value)) => Some(self.events.get(usize::try_from(index).ok()?)?(value)),
            None => self.end.as_ref().map(|(_, event)| Ok(event())),
        }
    }
}
