//! Compaction: a summary replaces the older part of a long conversation, and can be undone.

use std::fmt::Write as _;

use positronic_core::dsl::{Options, Plugin, PluginState, Preparation, ResponseInspection, Services, State};
use positronic_core::record::{Assistant, Message, ModelResponse, Path, Tier};
use positronic_core::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The heading of the summary.
const HEADING: &str = "Summary of the conversation before this point:";

const INSTRUCTIONS: &str = "You summarise the earlier part of a conversation between a user, an assistant and the \
    assistant's tools, so that the assistant can continue without it. Keep the task and everything that the user asked for; \
    what was found out and decided; names, numbers, ids and paths; what was done, what failed, and what is still open. Leave \
    out what does not matter any more. Answer with the summary alone.";

/// Summarises the older part of a loop's messages with the model when there are many.
///
/// Before an iteration that would send 20 iterations or more, all but the latest 5 are summarised into one message;
/// [`iterations`](Self::iterations), [`keep`](Self::keep) and [`tokens`](Self::tokens) override this. A call and its
/// results are never separated, since only complete iterations are summarised. The next compaction summarises the
/// summary together with newer messages.
///
/// The record stays complete, in the log and for people. [`enabled`](Self::enabled) restores all messages from
/// the next iteration on: since the configuration closure sees the state, it can be switched while the loop runs.
///
/// The question and its answer are recorded, so a restart needs no second summary. When the question fails, the iteration
/// sends all messages, a warning is logged, and the next iteration asks again.
///
/// ```
/// use positronic_plugins::Compaction;
/// use positronic_core::prelude::*;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Default, Serialize, Deserialize)]
/// struct Research { needs_every_word: bool }
///
/// let brain = brain("Research").state(Research::default()).r#loop("Read", |cx| {
///     cx.system("Read everything.")
///         .plugin(Compaction::new().iterations(30).tokens(100_000).enabled(!cx.state.needs_every_word))
/// });
/// # let _ = brain;
/// ```
#[derive(Debug, Clone)]
#[must_use = "compaction has its effect when it is given to a loop"]
pub struct Compaction {
    iterations: usize,
    keep: usize,
    tokens: Option<u64>,
    enabled: bool,
    tier: Tier,
    instructions: String,
}

/// The state of [`Compaction`]; read it with `cx.plugin_state::<Compacted>()`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Compacted {
    /// The path of its loop.
    pub loop_at: String,
    /// Whether a summary replaces the older messages.
    pub stands: bool,
    /// The tokens of the last request and its answer, if the provider reported them and a limit is set.
    pub tokens: u64,
}

impl PluginState for Compacted {
    const NAME: &'static str = "compaction";
}

impl Compaction {
    /// Creates the plugin with 20 iterations, of which the latest 5 are preserved, and no limit of tokens.
    pub fn new() -> Self {
        let (tier, instructions) = (Tier::default(), INSTRUCTIONS.to_owned());
        Self { iterations: 20, keep: 5, tokens: None, enabled: true, tier, instructions }
    }

    /// Sets after how many iterations the older ones are summarised.
    pub const fn iterations(mut self, iterations: usize) -> Self {
        self.iterations = iterations;
        self
    }

    /// Sets how many of the latest iterations stay unchanged.
    pub const fn keep(mut self, iterations: usize) -> Self {
        self.keep = iterations;
        self
    }

    /// Also summarises when a request would have more tokens than this. They are counted as the provider's report for the
    /// last iteration, plus an estimate of newer messages: a quarter of their bytes, and
    /// a fixed number for each picture. A summary that would save less
    /// than a tenth of the limit is not made.
    pub const fn tokens(mut self, tokens: u64) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// Enables or disables it; while disabled, all messages are sent.
    pub const fn enabled(mut self, enabled: bool) -> Self {
        self.enabled = enabled;
        self
    }

    /// Chooses a tier of the runner's models for the summary.
    pub const fn tier(mut self, tier: Tier) -> Self {
        self.tier = tier;
        self
    }

    /// Sets the instructions for the summary.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.instructions = text.into();
        self
    }

    /// Returns how many of the oldest messages to summarise; `None` if there are too few.
    fn cut(&self, messages: &[Message], state: &Compacted) -> Option<usize> {
        let iterations =
            messages.iter().enumerate().filter(|(_, message)| matches!(message, Message::Assistant { .. }));
        let iterations: Vec<_> = iterations.map(|(place, _)| place).collect();
        let older = iterations.len().checked_sub(self.keep)?;
        let mut cut = iterations.get(older).copied().unwrap_or(messages.len());
        // An iteration's input belongs to it.
        while let Some(Message::User { .. }) = cut.checked_sub(1).and_then(|before| messages.get(before)) {
            cut -= 1;
        }
        let gain = estimated(messages.get(usize::from(state.stands)..cut).unwrap_or_default());
        let is_long = self.tokens.is_some_and(|limit| size(messages, state) > limit && gain > limit / 10);
        (cut > 0 && (iterations.len() >= self.iterations || is_long)).then_some(cut)
    }
}

impl Default for Compaction {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the tokens of messages, as far as they are known.
fn size(messages: &[Message], state: &Compacted) -> u64 {
    let answered = messages.iter().rposition(|message| matches!(message, Message::Assistant { .. }));
    match answered.filter(|_| state.tokens > 0).and_then(|place| messages.get(place + 1..)) {
        Some(since) => state.tokens.saturating_add(estimated(since)),
        None => estimated(messages),
    }
}

fn estimated(messages: &[Message]) -> u64 {
    let text = u64::try_from(written(messages).len() / 4).unwrap_or(u64::MAX);
    messages.iter().flat_map(Message::files).map(|file| file.file().estimated_tokens()).fold(text, u64::saturating_add)
}

/// Renders messages for the summarising model.
fn written(messages: &[Message]) -> String {
    let mut text = String::new();
    for message in messages {
        match message {
            Message::User { text: said, files } => {
                _ = writeln!(text, "user: {said}");
                files.iter().for_each(|file| _ = writeln!(text, "user: {}", file.file().line()));
            }
            // The text of a result has a line about each file.
            Message::Tool { name, text: result, .. } => _ = writeln!(text, "result of {name}: {result}"),
            Message::Assistant { parts, .. } => {
                for part in parts {
                    match part {
                        Assistant::Text { text: said } => _ = writeln!(text, "assistant: {said}"),
                        Assistant::Call { name, arguments, .. } => {
                            _ = writeln!(text, "assistant calls {name}: {arguments}");
                        }
                        Assistant::File { file, .. } => _ = writeln!(text, "assistant: {}", file.file().line()),
                        Assistant::Reasoning { .. } | Assistant::Opaque { .. } => {}
                    }
                }
            }
        }
    }
    text
}

impl<O: Options, S: State, V: Services> Plugin<O, S, V> for Compaction {
    type State = Compacted;

    fn initial(&self) -> Compacted {
        Compacted::default()
    }

    async fn prepare(&self, cx: &mut Preparation<'_, O, S, V, Compacted>) -> Result<()> {
        let Self { iterations, keep, .. } = self;
        if iterations <= keep {
            return Err(Error::new(format!(
                "it is to summarise at {iterations} iterations and to keep {keep} of them; let it keep fewer"
            )));
        }
        let loop_at = cx.path().parent().as_ref().map(Path::to_string).unwrap_or_default();
        if cx.state.loop_at != loop_at {
            cx.state = Compacted { loop_at, ..Compacted::default() };
        }
        if !self.enabled {
            if std::mem::take(&mut cx.state.stands) {
                cx.uncompact();
            }
            return Ok(());
        }
        let messages = cx.messages();
        let Some((older, kept)) = self.cut(&messages, &cx.state).and_then(|cut| messages.split_at_checked(cut)) else {
            return Ok(());
        };
        let answer = cx.model().tier(self.tier).system(&self.instructions).ask(written(older)).await;
        let reason = match answer {
            Ok(summary) if !summary.trim().is_empty() => {
                cx.compact(kept.len(), format!("{HEADING}\n\n{}", summary.trim()));
                (cx.state.stands, cx.state.tokens) = (true, 0);
                return Ok(());
            }
            Ok(_) => "the model had nothing to say".to_owned(),
            Err(error) => error.to_string(),
        };
        tracing::warn!(run = %cx.run_id(), path = %cx.path(), reason, "the older messages are not summarised in this iteration");
        Ok(())
    }

    async fn response(
        &self,
        cx: &mut ResponseInspection<'_, O, S, V, Compacted>,
        response: &ModelResponse,
    ) -> Result<()> {
        if self.enabled && self.tokens.is_some() {
            cx.state.tokens = response.metadata.usage.total();
        }
        Ok(())
    }
}
