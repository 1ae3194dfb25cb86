//! Mistakes of an author that types cannot catch: they panic where the author wrote them.

/// Panics at the author's line with a sentence that says the mend.
#[track_caller]
#[expect(clippy::panic, reason = "an author's mistake is told where it was written, before anything runs")]
pub(crate) fn usage_panic(sentence: &str) -> ! {
    panic!("{sentence}")
}
