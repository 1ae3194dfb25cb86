//! Marks at the ends of prefixes that the provider caches.
//!
//! The provider reads tools, system prompt and messages in this order, and finds what it has cached of a prefix only where a
//! `cache_control` mark is or was, at most 20 blocks before a mark of the request; a request may have four. So they are at
//!
//! 1. the last tool, since the system prompt may change with the state,
//! 2. the end of the system prompt,
//! 3. the end of the history of the request before, which is where that request wrote the cache: a turn of many parallel
//!    calls can have more than 20 blocks,
//! 4. the end of the history, which the next request reads.
//!
//! The context of a request follows the last mark, since it changes. Thinking cannot have a mark.

use std::sync::Arc;

use positronic_core::record::{Assistant, Message, TranscriptEntry};

use crate::config::CacheLife;

impl CacheLife {
    /// Returns a list of blocks or tools whose last element has a mark. The list is encoded and may be empty.
    pub(crate) fn mark(self, list: &str) -> String {
        let mark = match self {
            Self::Off => return list.to_owned(),
            Self::FiveMinutes => r#"{"type":"ephemeral"}"#,
            Self::OneHour => r#"{"type":"ephemeral","ttl":"1h"}"#,
        };
        match list.strip_suffix("}]") {
            Some(start) => format!(r#"{start},"cache_control":{mark}}}]"#),
            None => list.to_owned(),
        }
    }
}

/// Returns the indexes of the messages whose last block gets a mark.
pub(crate) fn marked(history: &[Arc<TranscriptEntry>]) -> [Option<usize>; 2] {
    let last = history.len().checked_sub(1);
    let answer = history.iter().rposition(|entry| matches!(entry.message, Message::Assistant { .. }));
    let before = answer.and_then(|answer| answer.checked_sub(1));
    [before, last].map(|index| index.filter(|index| history.get(*index).is_some_and(|entry| can_be_marked(entry))))
}

fn can_be_marked(entry: &TranscriptEntry) -> bool {
    match &entry.message {
        Message::Assistant { parts, .. } => !matches!(parts.last(), Some(Assistant::Reasoning { .. })),
        Message::User { .. } | Message::Tool { .. } => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_element_gets_the_mark() {
        let list = r#"[{"a":1},{"b":2}]"#;

        assert_eq!(CacheLife::Off.mark(list), list);
        assert_eq!(CacheLife::FiveMinutes.mark(list), r#"[{"a":1},{"b":2,"cache_control":{"type":"ephemeral"}}]"#);
        assert_eq!(CacheLife::OneHour.mark("[]"), "[]");
    }
}
