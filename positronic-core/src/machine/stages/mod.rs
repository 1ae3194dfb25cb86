//! The kinds of stages: what each does with its events, and what it needs next.

pub(super) mod r#loop;
pub(super) mod step;
