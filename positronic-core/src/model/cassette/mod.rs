//! Recordings of model traffic, which replay without an API key.
//!
//! A cassette replaces only the model. Steps and tools run for real in a replay, with all their effects: effects that must not
//! happen again belong into services, which a test or a demonstration replaces.
//!
//! A cassette is a text of JSON lines, which can be read and written by hand. The first line is the header:
//!
//! ```json
//! {"cassette": 1, "note": "recorded from openai/gpt-5", "model": "openai/gpt-5", "goal": "Refund order 7"}
//! ```
//!
//! All fields but `cassette` are optional: `note`, `model` (the recorded model's name), `goal`, `options`, `action_format` (the
//! recorded model's action format, default `schema`) and `exact` (whether the cassette is only valid for these `options`).
//! Each further line is one of these; blank lines and lines that begin with `//` are skipped:
//!
//! | line | fields |
//! |---|---|
//! | an exchange | `at`: the path of the request; `attempt`, default 0; `request`; `reply` or `error` |
//! | a signal | `after`: what it responded to, such as a call's path; `signal`: the [`SignalKind`] |
//!
//! A `request` contains its difference from the previous request of the same loop: `system`, `context`, `tools` and
//! `settings` where they changed, and `messages` from number `from` on, which defaults to the number of previous messages. So
//! a cassette grows with the transcript. A `reply` is `{"text": …, "calls": [{"name": …, "arguments": {…}}]}`, or
//! the full form with `parts`; `arguments` may be a string, which need not be JSON. For a loop with structured actions it may
//! be `{"structured": {"reasoning": …, "action": …, "input": {…}}}`, which is the text of the answer. Each may have a
//! `usage`, such as `{"input": 900, "output": 60}`; it then counts as an answer of the header's `model`, with its price. An
//! `error` is a [`ModelError`].
//!
//! A replay finds an exchange by path and attempt, so parallel loops do not affect each other, and requires the same
//! request. The runs of a conversation send requests at the same paths, and get the replies in order. In a hand-written
//! exchange, a missing `request` matches any; its `at` may name the loop (`Chat`), whose replies are given in order, or be
//! missing, for the next request without a reply of its own.
//!
//! Keys, tokens and the texts of [`Cassette::hide`] are replaced before a line is stored. [`Recording`] writes a cassette
//! from past exchanges.

mod cassette_model;
mod format;
mod player;
mod recorder;
mod replay_mismatch;
mod scrub;
mod signals;
#[cfg(test)]
mod tests;

#[cfg(doc)]
use crate::record::{ModelError, SignalKind};

pub use cassette_model::Cassette;
pub use format::{CassetteError, Header};
pub use recorder::Recording;
pub use scrub::MIN_SECRET;
pub use signals::AwaitedSignal;
