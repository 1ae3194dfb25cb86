//! Guards that find secrets and personal data by their form.
//!
//! [`Patterns`] is a value that makes the functions which the guards of a loop take: `.guard_answer("No secrets", patterns.answers())`,
//! `.guard_call(…, patterns.calls())` and `.guard_result(…, patterns.results())`. It needs no plugin, since a guard needs no state.

mod api_keys;
mod cards;
mod emails;
mod ibans;

use std::fmt;
use std::future::{Ready, ready};
use std::ops::Range;
use std::sync::Arc;

use positronic_core::dsl::{GuardContext, Options, Services, State, Verdict};
use positronic_core::record::{ModelResponse, Part, UserMessage};
use regex::Regex;
use serde_json::{Map, Value};

use crate::listed;
use crate::usage_panic::usage_panic;

/// Patterns of what must not be in an answer, a call or a result.
///
/// A text with a match is refused, and the reason names the pattern but not the match. After [`redact`](Self::redact), the name of the
/// pattern replaces each match instead, such as `[card number]`; the log keeps what was replaced. A tool would take the name of a pattern for
/// an argument, so [`calls`](Self::calls) always refuses.
///
/// | pattern | rule | source of the rule |
/// |---|---|---|
/// | [`api_keys`](Self::api_keys) | prefix, characters and length of the keys of AWS, GitHub, GitLab, Google, OpenAI, Anthropic, Slack and Stripe; private keys in PEM | each has its source in a comment beside the expression; providers do not specify all of these forms; RFC 7468 |
/// | [`cards`](Self::cards) | 14 to 19 digits in groups, the Luhn check digit, a range of a card network | ISO/IEC 7812-1, annex B, for the check digit; the published ranges of the networks |
/// | [`ibans`](Self::ibans) | the country's length, and the remainder 1 of a division by 97 | ISO 13616-1 and SWIFT's IBAN registry (release 101); ISO/IEC 7064, MOD 97-10 |
/// | [`emails`](Self::emails) | a dot-atom, `@`, and a domain name with two labels or more | RFC 5322, section 3.4.1; RFC 6531 for letters beyond ASCII |
/// | [`pattern`](Self::pattern) | your regular expression | – |
///
/// A pattern finds what has the usual form, and no more: a number in words, in Base64, or split over two fields passes. About one of ten
/// numbers with the length and the range of a card has a right check digit by chance.
///
/// ```
/// use positronic_core::prelude::*;
/// use positronic_plugins::Patterns;
/// # use positronic_core::model::scripted::{Reply, ScriptedModel};
///
/// let secrets = Patterns::new().api_keys().cards().pattern("customer number", r"\bC-\d{6}\b").redact();
/// let support = brain("Support").r#loop("Chat", move |cx| {
///     cx.system("Help the customer.").input("Which card?").guard_answer("No secrets", secrets.answers())
/// });
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// # let model = ScriptedModel::new([Reply::text("C-123456 pays with 4111 1111 1111 1111.")]);
/// # let runner = Runner::new(model);
/// let run = runner.start(support, ()).await?;
/// run.result().await?;
/// assert_eq!(run.answer().as_deref(), Some("[customer number] pays with [card number]."));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
#[must_use = "patterns have their effect when they are given to a guard of a loop"]
pub struct Patterns {
    patterns: Vec<Pattern>,
    redacts: bool,
}

#[derive(Clone)]
struct Pattern {
    name: Arc<str>,
    find: Find,
}

#[derive(Clone)]
enum Find {
    Known(fn(&str) -> Vec<Range<usize>>),
    Own(Regex),
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.find {
            Find::Known(_) => write!(f, "{}", self.name),
            Find::Own(expression) => write!(f, "{} /{expression}/", self.name),
        }
    }
}

impl Patterns {
    /// Creates an empty list, which lets everything pass.
    pub fn new() -> Self {
        Self::default()
    }

    /// Finds keys and tokens of well-known providers, and private keys in PEM.
    pub fn api_keys(self) -> Self {
        self.known("API key", api_keys::find)
    }

    /// Finds payment card numbers, whose digits may have single spaces or hyphens between them.
    pub fn cards(self) -> Self {
        self.known("card number", cards::find)
    }

    /// Finds IBANs, in upper or lower case, whose characters may have single spaces or hyphens between them.
    pub fn ibans(self) -> Self {
        self.known("IBAN", ibans::find)
    }

    /// Finds e-mail addresses. An address of a Git server, such as `git@example.com`, has the same form.
    pub fn emails(self) -> Self {
        self.known("e-mail address", emails::find)
    }

    /// Finds what a regular expression matches, in the syntax of the crate `regex`. The name is what the model and people read.
    ///
    /// # Panics
    ///
    /// If the expression is invalid, or matches the empty text.
    #[track_caller]
    pub fn pattern(mut self, name: &str, expression: &str) -> Self {
        let expression = match Regex::new(expression) {
            Ok(expression) => expression,
            Err(error) => usage_panic(&format!("the pattern `{name}` is invalid: {error}")),
        };
        if expression.is_match("") {
            usage_panic(&format!(
                "the pattern `{name}` matches the empty text, and so every text; let it require a character"
            ));
        }
        self.patterns.push(Pattern { name: name.into(), find: Find::Own(expression) });
        self
    }

    /// Replaces what matches by the name of its pattern in brackets, instead of refusing the whole.
    pub const fn redact(mut self) -> Self {
        self.redacts = true;
        self
    }

    fn known(mut self, name: &str, find: fn(&str) -> Vec<Range<usize>>) -> Self {
        self.patterns.push(Pattern { name: name.into(), find: Find::Known(find) });
        self
    }

    /// Returns a check for [`Loop::guard_input`](positronic_core::dsl::Loop::guard_input). It reads the text of a message.
    pub fn inputs<O: Options, S: State, V: Services>(
        &self,
    ) -> impl Fn(GuardContext<O, S, V>, Arc<UserMessage>) -> Ready<Verdict> + Send + Sync + use<O, S, V> {
        let patterns = self.clone();
        move |_, message| {
            let mut found = Vec::new();
            let text = patterns.redacted(&message.text, &mut found);
            ready(patterns.verdict(&found, Value::String(text)))
        }
    }

    /// Returns a check for [`Loop::guard_answer`](positronic_core::dsl::Loop::guard_answer). It reads the text of an answer, its reasoning
    /// and its refusal. Calls are checked by [`calls`](Self::calls).
    pub fn answers<O: Options, S: State, V: Services>(
        &self,
    ) -> impl Fn(GuardContext<O, S, V>, Arc<ModelResponse>) -> Ready<Verdict> + Send + Sync + use<O, S, V> {
        let patterns = self.clone();
        move |_, answer| ready(patterns.of_answer(&answer))
    }

    /// Returns a check for [`Loop::guard_call`](positronic_core::dsl::Loop::guard_call), which refuses a call whose arguments have a match.
    pub fn calls<O: Options, S: State, V: Services>(
        &self,
    ) -> impl Fn(GuardContext<O, S, V>, String, Arc<Value>) -> Ready<Verdict> + Send + Sync + use<O, S, V> {
        let patterns = Self { redacts: false, ..self.clone() };
        move |_, _, arguments| ready(patterns.of_value(&arguments))
    }

    /// Returns a check for [`Loop::guard_result`](positronic_core::dsl::Loop::guard_result). It reads all texts, names of fields and numbers of an
    /// output.
    pub fn results<O: Options, S: State, V: Services>(
        &self,
    ) -> impl Fn(GuardContext<O, S, V>, String, Arc<Value>) -> Ready<Verdict> + Send + Sync + use<O, S, V> {
        let patterns = self.clone();
        move |_, _, result| ready(patterns.of_value(&result))
    }

    fn of_answer(&self, answer: &ModelResponse) -> Verdict {
        let mut found = Vec::new();
        let text = self.redacted(&answer.text(), &mut found);
        for part in &answer.parts {
            if let Part::Reasoning { text, .. } | Part::Refusal { text } = part {
                self.redacted(text, &mut found);
            }
        }
        // A replaced answer has neither reasoning nor a refusal.
        self.verdict(&found, Value::String(text))
    }

    fn of_value(&self, value: &Value) -> Verdict {
        let mut found = Vec::new();
        let redacted = self.redacted_value(value, &mut found);
        self.verdict(&found, redacted)
    }

    fn verdict(&self, found: &[&str], redacted: Value) -> Verdict {
        match (found, self.redacts) {
            ([], _) => Verdict::Pass,
            (_, true) => Verdict::Replace(redacted),
            (found, false) => Verdict::Refuse(format!("it contains what is not allowed: {}", listed(found))),
        }
    }

    /// Returns a text with the names of the patterns in place of their matches, and adds each name once to `found`.
    fn redacted<'p>(&'p self, text: &str, found: &mut Vec<&'p str>) -> String {
        let mut matches = Vec::new();
        for pattern in &self.patterns {
            let places = match &pattern.find {
                Find::Known(find) => find(text),
                Find::Own(expression) => expression.find_iter(text).map(|found| found.range()).collect(),
            };
            matches.extend(places.into_iter().map(|place| (place, &*pattern.name)));
        }
        // Of two that begin at the same place, the longer one.
        matches.sort_by_key(|(place, _)| (place.start, std::cmp::Reverse(place.end)));
        let (mut redacted, mut end) = (String::with_capacity(text.len()), 0);
        for (place, name) in matches {
            if !found.contains(&name) {
                found.push(name);
            }
            if place.start >= end {
                redacted.push_str(text.get(end..place.start).unwrap_or_default());
                redacted.extend(["[", name, "]"]);
            }
            end = end.max(place.end);
        }
        redacted.push_str(text.get(end..).unwrap_or_default());
        redacted
    }

    fn redacted_value<'p>(&'p self, value: &Value, found: &mut Vec<&'p str>) -> Value {
        match value {
            Value::Null | Value::Bool(_) => value.clone(),
            Value::String(text) => Value::String(self.redacted(text, found)),
            Value::Number(number) => {
                let text = number.to_string();
                let redacted = self.redacted(&text, found);
                if redacted == text { value.clone() } else { Value::String(redacted) }
            }
            Value::Array(values) => values.iter().map(|value| self.redacted_value(value, found)).collect(),
            Value::Object(fields) => {
                let mut redacted = Map::new();
                for (name, value) in fields {
                    let mut name = self.redacted(name, found);
                    // Two names can become the same one.
                    while redacted.contains_key(&name) {
                        name.push('+');
                    }
                    redacted.insert(name, self.redacted_value(value, found));
                }
                Value::Object(redacted)
            }
        }
    }
}

/// Returns whether a match that has these surroundings is a word of its own.
fn is_apart(text: &str, place: &Range<usize>) -> bool {
    let before = text.as_bytes().get(..place.start).and_then(<[u8]>::last);
    let after = text.as_bytes().get(place.end);
    !before.is_some_and(u8::is_ascii_alphanumeric) && !after.is_some_and(u8::is_ascii_alphanumeric)
}
