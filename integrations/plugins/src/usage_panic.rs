//! Panics for usage errors of authors that types cannot prevent, at the author's line.

/// Panics at the author's line with a message that says how to fix it.
#[track_caller]
#[expect(clippy::panic, reason = "an author's mistake, reported at its source before anything runs")]
pub(crate) fn usage_panic(sentence: &str) -> ! {
    panic!("{sentence}")
}
