//! Ids of traces and spans, and contexts from other systems.

use std::fmt;
use std::sync::Arc;

use positronic_core::record::{Actor, Path, RunId, Seq, sha256};

/// The id of a trace: 16 bytes, not zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId(pub u128);

/// The id of a span: 8 bytes, not zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(pub u64);

/// A span of this or of another system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpanRef {
    /// Its trace.
    pub trace: TraceId,
    /// The span.
    pub span: SpanId,
    /// Whether its trace is sampled.
    pub sampled: bool,
    /// The vendors' part of its context (`tracestate`).
    pub state: Option<Arc<str>>,
}

impl TraceId {
    /// Returns the id of the trace of the segment that an event begins.
    #[must_use]
    pub fn of(run: &RunId, seq: Seq) -> Self {
        let hash = sha256(format!("trace {run} {seq}").as_bytes());
        let id = hash.get(..32).and_then(|digits| u128::from_str_radix(digits, 16).ok());
        Self(id.unwrap_or_default().max(1))
    }
}

impl SpanId {
    /// Returns the id of the span that an event begins at a path; `role` distinguishes the spans at one path.
    #[must_use]
    pub fn of(run: &RunId, seq: Seq, path: &Path, role: &str) -> Self {
        let hash = sha256(format!("span {run} {seq} {path} {role}").as_bytes());
        let id = hash.get(..16).and_then(|digits| u64::from_str_radix(digits, 16).ok());
        Self(id.unwrap_or_default().max(1))
    }
}

impl SpanRef {
    /// Creates a reference to a span of this system. Whether it is sampled is not known here, and links do not need it.
    #[must_use]
    pub const fn own(trace: TraceId, span: SpanId) -> Self {
        Self { trace, span, sampled: true, state: None }
    }

    /// Reads a `traceparent` with its `tracestate`; `None` if it is invalid.
    #[must_use]
    pub fn parse(traceparent: &str, tracestate: Option<&str>) -> Option<Self> {
        // The record knows which texts are valid.
        Actor::default().traced(traceparent, None).trace?;
        let mut fields = traceparent.split('-').skip(1);
        let trace = u128::from_str_radix(fields.next()?, 16).ok()?;
        let span = u64::from_str_radix(fields.next()?, 16).ok()?;
        let flags = u8::from_str_radix(fields.next()?, 16).ok()?;
        let state = tracestate.map(Into::into);
        Some(Self { trace: TraceId(trace), span: SpanId(span), sampled: flags & 1 == 1, state })
    }

    /// Returns the span with whose context a signal or a start came.
    #[must_use]
    pub fn of_actor(actor: &Actor) -> Option<Self> {
        Self::parse(actor.trace.as_deref()?, actor.trace_state.as_deref())
    }

    /// Returns the value of the header `traceparent`.
    #[must_use]
    pub fn traceparent(&self) -> String {
        format!("00-{}-{}-{:02x}", self.trace, self.span, u8::from(self.sampled))
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traceparent_is_read_and_written() {
        let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

        let read = SpanRef::parse(text, Some("vendor=1")).unwrap();

        assert_eq!((read.traceparent().as_str(), read.sampled, read.state.as_deref()), (text, true, Some("vendor=1")));
        assert_eq!(SpanRef::parse("00-zero", None), None);
    }

    #[test]
    fn ids_depend_on_run_event_path_and_role() {
        let (run, path) = (RunId::new("run-1"), Path::parse("Chat/0").unwrap());
        let id = |seq, role| SpanId::of(&run, Seq(seq), &path, role);

        assert_eq!(id(3, "chat"), id(3, "chat"));
        assert_ne!(id(3, "chat"), id(4, "chat"));
        assert_ne!(id(3, "chat"), id(3, "iteration"));
        assert_ne!(id(3, "chat"), SpanId::of(&RunId::new("run-2"), Seq(3), &path, "chat"));
    }
}
