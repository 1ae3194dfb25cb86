//! Reads a search as it is typed.

use std::ops::Range;

use super::error::{QueryError, RefusedValue, nearest};
use super::standing::Standing;
use super::term_match::Needle;
use super::value::{costs, time};
use positronic_core::record::Timestamp;
use positronic_core::store::RunFilter;

/// The keys of the language, each with what its value is.
pub const QUERY_KEYS: [(&str, &str); 11] = [
    (
        "status",
        "running, waiting, paused, completed, failed, cancelled, stuck, queued, sleeping, parked or \"cut off\"; several with commas",
    ),
    ("brain", "the title of a brain, or its beginning"),
    ("user", "the user whom a run belongs to"),
    ("tag", "a tag of a run"),
    ("conversation", "the id of a conversation"),
    ("tool", "a tool that a model has called"),
    ("model", "a model that has answered, with or without its provider"),
    ("cost", "a cost such as >0.1, <=5 or 0.1..5"),
    ("since", "runs with an event since then: 24h, 7d, today, yesterday, 2026-11-27"),
    ("before", "runs without an event since then"),
    ("needs", "decision: runs that wait for a person"),
];

/// The most words of a search: each is looked for in the events of each run.
const MAX_WORDS: usize = 32;

/// The time by which a search is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryClock {
    /// The current time.
    pub now: Timestamp,
    /// How many seconds the zone of the person is ahead of UTC, for days.
    pub utc_offset: i32,
}

/// A search of runs.
///
/// A word `key:value` is a condition, and the [keys](QUERY_KEYS) are those of lists. With another key it looks for an event with
/// such a field: `amount:249`. Every other word has to be in an event of the run, each for itself. Double quotes enclose values
/// and texts with spaces, which are looked for as they are; a text with a colon is not a condition if it is in quotes.
///
/// ```
/// use positronic_core::record::{Status, Timestamp};
/// use positronic_query::{QueryClock, RunQuery};
///
/// let clock = QueryClock { now: Timestamp(1_700_000_000_000_000), utc_offset: 0 };
/// let query = RunQuery::parse("brain:support status:failed cost:>0.1 since:7d", clock)?;
/// assert_eq!(query.filter().status, [Status::Failed]);
///
/// let error = RunQuery::parse("stats:failed", clock).unwrap_err();
/// assert_eq!(error.to_string(), "`stats`: there is no such key; did you mean `status`?");
/// # Ok::<(), positronic_query::QueryError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunQuery {
    filter: RunFilter,
    /// How the runs stand, if the filter's statuses do not say all of it.
    pub(super) standings: Vec<Standing>,
    pub(super) needles: Vec<Needle>,
}

impl RunQuery {
    /// Reads a search.
    ///
    /// # Errors
    ///
    /// [`QueryError`] with the word that cannot be read: a key that resembles a known one, a key twice, a wrong value, or one word more than 32.
    pub fn parse(text: &str, clock: QueryClock) -> Result<Self, QueryError> {
        let mut query = Self::default();
        let (mut texts, mut seen) = (Vec::new(), Vec::new());
        for (place, word) in split(text)?.into_iter().enumerate() {
            if place == MAX_WORDS {
                return Err(word.error(text, format!("a search has at most {MAX_WORDS} words")));
            }
            let Some(key) = word.key else {
                texts.push(word.value);
                continue;
            };
            if seen.contains(&key) {
                return Err(word.error(text, "this key is there twice"));
            }
            if QUERY_KEYS.iter().any(|(known, _)| *known == key) {
                query.condition(key, word.value, clock).map_err(|(reason, hint)| {
                    let error = word.error(text, reason);
                    match hint {
                        Some(hint) => error.hint(hint),
                        None => error,
                    }
                })?;
                seen.push(key);
            } else if let Some(near) = nearest(key, QUERY_KEYS.map(|(known, _)| known)) {
                let at = word.at.start..word.at.start + key.len();
                return Err(QueryError::new(at, key, "there is no such key").hint(format!("did you mean `{near}`?")));
            } else {
                query.needles.push(Needle::Field(key.to_owned(), word.value.to_owned()));
            }
        }
        // The first one is looked for in all runs, and the others in its runs only. The longest is the one that the fewest have.
        texts.retain(|text| !text.is_empty());
        texts.sort_by_key(|text| std::cmp::Reverse(text.chars().count()));
        query.needles.extend(texts.into_iter().map(|text| Needle::Text(text.to_owned())));
        Ok(query)
    }

    /// Returns the conditions on runs. The title of a brain is as it was typed.
    #[must_use]
    pub const fn filter(&self) -> &RunFilter {
        &self.filter
    }

    /// Returns the conditions on runs, to change them.
    pub const fn filter_mut(&mut self) -> &mut RunFilter {
        &mut self.filter
    }

    /// Lists only runs that stand in one of some ways; without any, all.
    pub fn set_standings(&mut self, standings: Vec<Standing>) {
        self.filter.status.clear();
        for status in standings.iter().flat_map(|standing| standing.statuses()) {
            if !self.filter.status.contains(&status) {
                self.filter.status.push(status);
            }
        }
        let is_said = standings.iter().all(|standing| matches!(standing, Standing::Status(_)));
        self.standings = if is_said { Vec::new() } else { standings };
    }

    /// Returns whether there is no condition.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the texts and values that it looks for in events.
    pub fn typed(&self) -> impl Iterator<Item = &str> {
        self.needles.iter().map(Needle::typed)
    }

    /// Returns whether the store counts the runs by its indexes, without a look at their events or at how each of them stands.
    #[must_use]
    pub const fn is_counted_by_store(&self) -> bool {
        self.needles.is_empty() && self.standings.is_empty()
    }

    fn condition(&mut self, key: &str, value: &str, clock: QueryClock) -> Result<(), RefusedValue> {
        let filter = &mut self.filter;
        if value.is_empty() {
            let expected = QUERY_KEYS.iter().find(|(known, _)| *known == key).map_or("a value", |(_, what)| what);
            return Err((format!("the value is missing: {expected}"), None));
        }
        let text = || Some(value.to_owned());
        match key {
            "status" => self.set_standings(Standing::parse(value)?),
            "brain" => filter.brain = text(),
            "user" => filter.user = text(),
            "tag" => filter.tag = text(),
            "conversation" => filter.conversation = text(),
            "tool" => filter.tool = text(),
            "model" => filter.model = text(),
            "cost" => (filter.min_cost, filter.max_cost) = costs(value)?,
            "since" => filter.since = Some(time(value, clock)?),
            "before" => filter.before = Some(time(value, clock)?),
            _ if value == "decision" => filter.person = true,
            _ => return Err(("expected decision".to_owned(), Some("write needs:decision".to_owned()))),
        }
        Ok(())
    }
}

/// A word of a search.
struct Word<'t> {
    at: Range<usize>,
    key: Option<&'t str>,
    /// The value without its quotes.
    value: &'t str,
}

impl Word<'_> {
    fn error(&self, text: &str, reason: impl Into<String>) -> QueryError {
        QueryError::new(self.at.clone(), text.get(self.at.clone()).unwrap_or_default(), reason)
    }
}

/// Splits a search at the spaces outside of quotes.
fn split(text: &str) -> Result<Vec<Word<'_>>, QueryError> {
    let mut words = Vec::new();
    let mut start = 0;
    while let Some(rest) = text.get(start..) {
        let trimmed = rest.trim_start();
        if trimmed.is_empty() {
            break;
        }
        start = text.len() - trimmed.len();
        let (key, value) = keyed(trimmed);
        let value_at = start + key.map_or(0, |key| key.len() + 1);
        let (value, end) = match value.strip_prefix('"') {
            Some(quoted) => match quoted.find('"') {
                Some(length) => (quoted.get(..length).unwrap_or_default(), value_at + length + 2),
                None => {
                    let word = text.get(start..).unwrap_or_default();
                    return Err(QueryError::new(start..text.len(), word, "the closing quote is missing"));
                }
            },
            None => {
                let length = value.find(char::is_whitespace).unwrap_or(value.len());
                (value.get(..length).unwrap_or_default(), value_at + length)
            }
        };
        words.push(Word { at: start..end, key, value });
        start = end;
    }
    Ok(words)
}

/// Splits the key off the first word. An address such as `https://…` has none.
fn keyed(rest: &str) -> (Option<&str>, &str) {
    let word = rest.split(char::is_whitespace).next().unwrap_or_default();
    let Some((key, _)) = word.split_once(':') else { return (None, rest) };
    let is_key = key.starts_with(|first: char| first.is_ascii_lowercase())
        && key.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    let value = rest.get(key.len() + 1..).unwrap_or_default();
    if is_key && !value.starts_with("//") { (Some(key), value) } else { (None, rest) }
}
