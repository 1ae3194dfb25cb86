//! The W3C trace context that something came with.

use super::actor::Actor;

impl Actor {
    /// The maximum size in bytes of each of the two parts of a trace context.
    const MAX_TRACE: usize = 512;

    /// Adds the W3C trace context of the request that it came with: the values of the headers `traceparent` and
    /// `tracestate`. As the specification requires, an invalid `traceparent` is ignored together with its `tracestate`.
    ///
    /// ```
    /// use positronic_core::record::Actor;
    ///
    /// let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    /// let ann = Actor::builder().by("ann").build().traced(traceparent, Some("vendor=1"));
    /// assert_eq!(ann.trace.as_deref(), Some(traceparent));
    /// assert_eq!(Actor::default().traced("00-0-0-00", Some("vendor=1")), Actor::default());
    /// ```
    #[must_use]
    pub fn traced(mut self, traceparent: &str, tracestate: Option<&str>) -> Self {
        if is_traceparent(traceparent) {
            let fits = |state: &&str| !state.is_empty() && state.len() <= Self::MAX_TRACE;
            (self.trace, self.trace_state) = (Some(traceparent.to_owned()), tracestate.filter(fits).map(str::to_owned));
        }
        self
    }
}

/// Returns whether a text is a `traceparent`: version, trace id, parent id and flags in lower-case hexadecimal digits. A
/// later version than 00 may have further fields.
fn is_traceparent(text: &str) -> bool {
    let mut fields = text.split('-');
    let mut field = |len: usize| fields.next().filter(|field| field.len() == len && field.bytes().all(is_hex));
    let (Some(version), Some(trace), Some(parent), Some(_)) = (field(2), field(32), field(16), field(2)) else {
        return false;
    };
    let is_id = |id: &str| id.bytes().any(|digit| digit != b'0');
    let is_complete = version != "00" || fields.next().is_none();
    version != "ff" && is_id(trace) && is_id(parent) && is_complete && text.len() <= Actor::MAX_TRACE
}

const fn is_hex(digit: u8) -> bool {
    matches!(digit, b'0'..=b'9' | b'a'..=b'f')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_valid_trace_context_is_recorded() {
        let trace = "0af7651916cd43dd8448eb211c80319c";
        let valid = [format!("00-{trace}-b7ad6b7169203331-01"), format!("cc-{trace}-b7ad6b7169203331-01-more")];
        let invalid = [
            String::new(),
            format!("00-{trace}-b7ad6b7169203331-01-more"),
            format!("ff-{trace}-b7ad6b7169203331-01"),
            format!("00-{}-b7ad6b7169203331-01", "0".repeat(32)),
            format!("00-{trace}-0000000000000000-01"),
            format!("00-{}-b7ad6b7169203331-01", trace.to_uppercase()),
            format!("cc-{trace}-b7ad6b7169203331-01-{}", "x".repeat(512)),
        ];
        for text in valid {
            assert_eq!(Actor::default().traced(&text, None).trace, Some(text));
        }
        for text in invalid {
            assert_eq!(Actor::default().traced(&text, Some("a=1")), Actor::default(), "{text}");
        }
        let long = "a".repeat(513);
        let kept = |state| Actor::default().traced(&format!("00-{trace}-b7ad6b7169203331-01"), state).trace_state;
        assert_eq!((kept(Some("a=1")).as_deref(), kept(Some("")), kept(Some(&long))), (Some("a=1"), None, None));
    }
}
