//! Decoder for server-sent events (`text/event-stream`), as the WHATWG HTML standard defines the format.
//!
//! Bytes go in as received, complete events come out. The decoder accepts all three line ends (LF, CR LF, CR), ignores a leading
//! byte order mark, comments and fields other than `data` and `event`, and replaces invalid UTF-8. It deviates from the standard
//! as servers do: [`finish`](SseDecoder::finish) returns an event without its final blank line, events with blank data are
//! skipped, and a line that begins with `{` instead of a field's name is data: some servers put an error between the events as it is.
//!
//! ```
//! use positronic_model_http::SseDecoder;
//!
//! let mut decoder = SseDecoder::default();
//! assert_eq!(decoder.feed(b"data: {\"a\":")?, []);
//! assert_eq!(decoder.feed(b"1}\r\n\r\ndata: [DONE]")?[0].data, "{\"a\":1}");
//! assert_eq!(decoder.finish()[0].data, "[DONE]");
//! # Ok::<(), positronic_model_http::SseError>(())
//! ```

use super::scan::find_either;

/// The default maximum size of an event in bytes: 32 MiB, enough for an image in base64.
const LARGEST_EVENT: usize = 32 * 1024 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// An event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent {
    /// Its data; the lines are separated by LF.
    pub data: String,
    /// Whether its name is `error`.
    pub is_error: bool,
}

/// Splits a stream of bytes into its events. It does no I/O.
#[derive(Debug)]
pub struct SseDecoder {
    limit: usize,
    /// The bytes of the unfinished line.
    line: Vec<u8>,
    /// The data of the unfinished event; its lines are separated by LF.
    data: Option<String>,
    /// Whether the name of the unfinished event is `error`.
    is_error: bool,
    /// Whether the unfinished event is a document without field names.
    is_bare: bool,
    /// Whether the last byte was a CR, so that an LF belongs to the same line end.
    after_cr: bool,
    /// Whether the first line, which may begin with a byte order mark, is unfinished.
    at_start: bool,
}

/// The reason why a stream cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SseError {
    /// An event is larger than the limit.
    #[error("an event of the stream is larger than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
}

impl Default for SseDecoder {
    fn default() -> Self {
        Self::with_limit(LARGEST_EVENT)
    }
}

impl SseDecoder {
    /// Creates a decoder that rejects events larger than `limit` bytes.
    #[must_use]
    pub const fn with_limit(limit: usize) -> Self {
        Self { limit, line: Vec::new(), data: None, is_error: false, is_bare: false, after_cr: false, at_start: true }
    }

    /// Decodes bytes and returns the events that they complete.
    ///
    /// # Errors
    ///
    /// [`SseError::TooLarge`] when an event exceeds the limit; the stream cannot be decoded further.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<Vec<SseEvent>, SseError> {
        let mut events = Vec::new();
        while let Some((&first, rest)) = bytes.split_first() {
            if std::mem::take(&mut self.after_cr) && first == b'\n' {
                bytes = rest;
                continue;
            }
            let end = find_either(bytes, [b'\n', b'\r']);
            let (part, further) = bytes.split_at(end.unwrap_or(bytes.len()));
            if part.len() > self.limit.saturating_sub(self.size()) {
                return Err(SseError::TooLarge { limit: self.limit });
            }
            let Some((line_end, further)) = further.split_first() else {
                self.line.extend_from_slice(part);
                break;
            };
            self.after_cr = *line_end == b'\r';
            if self.line.is_empty() {
                events.extend(self.end_line(part));
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(part);
                events.extend(self.end_line(&line));
            }
            bytes = further;
        }
        Ok(events)
    }

    /// Ends the stream and returns the events whose final blank line is missing.
    #[must_use]
    pub fn finish(mut self) -> Vec<SseEvent> {
        let line = std::mem::take(&mut self.line);
        let before = if line.is_empty() { None } else { self.end_line(&line) };
        before.into_iter().chain(self.end_event()).collect()
    }

    fn size(&self) -> usize {
        self.line.len() + self.data.as_ref().map_or(0, String::len)
    }

    /// Processes a complete line; a blank one ends the event.
    fn end_line(&mut self, bytes: &[u8]) -> Option<SseEvent> {
        let at_start = std::mem::take(&mut self.at_start);
        let line = bytes.strip_prefix(BYTE_ORDER_MARK).filter(|_| at_start).unwrap_or(bytes);
        if line.is_empty() {
            return self.end_event();
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = line.split_at(colon.unwrap_or(line.len()));
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        if line.starts_with(b"{") {
            let before = self.end_event();
            self.is_bare = true;
            self.add(line);
            return before;
        }
        match name {
            b"data" | b"event" | b"id" | b"retry" if self.is_bare => {
                let before = self.end_event();
                self.field(name, value);
                return before;
            }
            _ if self.is_bare => self.add(line),
            _ => self.field(name, value),
        }
        None
    }

    fn field(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"data" => self.add(value),
            b"event" => self.is_error = value == b"error",
            _ => {}
        }
    }

    fn add(&mut self, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        match &mut self.data {
            Some(data) => {
                data.push('\n');
                data.push_str(&line);
            }
            None => self.data = Some(line.into_owned()),
        }
    }

    fn end_event(&mut self) -> Option<SseEvent> {
        self.is_bare = false;
        let is_error = std::mem::take(&mut self.is_error);
        let data = self.data.take().filter(|data| !data.trim().is_empty())?;
        Some(SseEvent { data, is_error })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Decodes a stream that arrives in the given pieces.
    fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
        let mut decoder = SseDecoder::default();
        let mut events: Vec<_> = pieces.into_iter().flat_map(|piece| decoder.feed(piece).unwrap()).collect();
        events.extend(decoder.finish());
        events.into_iter().map(|event| event.data).collect()
    }

    #[test]
    fn reads_every_line_end_a_byte_order_mark_comments_and_other_fields() {
        for (stream, events) in [
            ("data: a\n\ndata: b\n\n", &["a", "b"][..]),
            ("data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]),
            ("data: a\r\rdata: b\r\r", &["a", "b"]),
            ("data: a\r\ndata: b\n\r", &["a\nb"]),
            ("\u{feff}data: a\n\ndata: \u{feff}b\n\n", &["a", "\u{feff}b"]),
            ("\u{feff}\u{feff}data: a\n\n", &[]),
            (": keep-alive\n\nevent: x\nid: 1\nretry: 5\ndata:a\n\n", &["a"]),
            ("data: one\ndata\ndata:  two\n\n", &["one\n\n two"]),
            ("database: a\nDATA: b\n data: c\n\n", &[]),
        ] {
            assert_eq!(decode([stream.as_bytes()]), events, "{stream:?}");
        }
    }

    #[test]
    fn skips_blank_data_and_returns_an_event_whose_blank_line_is_missing() {
        for (stream, events) in [
            ("data:\n\ndata: \n\ndata\n\ndata: a\n\n", &["a"][..]),
            ("data: a", &["a"]),
            ("data: a\n", &["a"]),
            ("data: a\r", &["a"]),
            ("data: a\n\ndata:", &["a"]),
            ("", &[]),
        ] {
            assert_eq!(decode([stream.as_bytes()]), events, "{stream:?}");
        }
    }

    #[test]
    fn a_document_between_the_events_is_an_event() {
        for (stream, events) in [
            ("data: a\n\n{\"error\":1}\n", &["a", "{\"error\":1}"][..]),
            ("data: a\n{\"error\":1}\n\ndata: b\n\n", &["a", "{\"error\":1}", "b"]),
            ("{\"n\":1}\n{\"n\":2}", &["{\"n\":1}", "{\"n\":2}"]),
            ("{\n  \"n\": 1\n}\ndata: a\n\n", &["{\n  \"n\": 1\n}", "a"]),
        ] {
            assert_eq!(decode([stream.as_bytes()]), events, "{stream:?}");
        }
    }

    #[test]
    fn an_event_named_error_is_marked() {
        let mut decoder = SseDecoder::default();
        let events =
            decoder.feed(b"event: error\ndata: a\n\nevent: message\ndata: b\n\ndata: c\nevent: error\n\n").unwrap();

        let marks: Vec<_> = events.iter().map(|event| (event.data.as_str(), event.is_error)).collect();
        assert_eq!(marks, [("a", true), ("b", false), ("c", true)]);
    }

    #[test]
    fn replaces_invalid_utf_8() {
        assert_eq!(decode([&b"data: a\xFFb\n\n"[..]]), ["a\u{fffd}b"]);
    }

    #[test]
    fn refuses_an_event_that_is_larger_than_the_limit() {
        let too_large = Err(SseError::TooLarge { limit: 16 });
        for stream in [&b"data: 0123456789abcdef"[..], b"data: 01234\ndata: 56789abcdef\n\n", b": 0123456789abcdef"] {
            let mut decoder = SseDecoder::with_limit(16);
            let outcome = stream.chunks(3).try_for_each(|piece| decoder.feed(piece).map(drop));
            assert_eq!(outcome, too_large, "{stream:?}");
        }
        let mut decoder = SseDecoder::with_limit(16);
        for _ in 0..9 {
            let [event] = &decoder.feed(b"data: 0123456\n\n").unwrap()[..] else {
                panic!("the limit is that of one event")
            };
            assert_eq!(event.data, "0123456");
        }
    }

    proptest! {
        #[test]
        fn where_a_stream_is_cut_does_not_matter(
            stream in "(data|event|: x|\u{feff}|[:\r\n ü]){0,40}",
            cuts in prop::collection::vec(0_usize..120, 0..8),
        ) {
            let bytes = stream.as_bytes();
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).chain([0, bytes.len()]).collect();
            cuts.sort_unstable();
            let pieces = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
            prop_assert_eq!(decode(pieces), decode([bytes]));
        }
    }
}
