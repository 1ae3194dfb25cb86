//! E-mail addresses.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// A dot-atom that begins with a letter or a digit, so that an opening quote is not part of it, and a domain name whose last label has
/// letters only: a version, such as `tool@1.2.3`, is no address.
#[expect(clippy::expect_used, reason = "a constant expression, which a test compiles")]
static ADDRESSES: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\w[\w.!#$%&'*+/=?^`{|}~-]*@(?:[\w-]+\.)+(?:\p{L}{2,63}|xn--[A-Za-z0-9-]{1,59})\b")
        .expect("a valid expression")
});

/// Returns the places of addresses.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    ADDRESSES.find_iter(text).map(|address| address.range()).collect()
}
