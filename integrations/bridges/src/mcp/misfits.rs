//! How many answers of a call did not fit their forms, and why. A client without a connection returns the number in `requestState` and can
//! change it. That gains it nothing: each of its requests counts against its rate limit.

use std::collections::BTreeMap;

use positronic_core::record::RunId;
use positronic_server::Problem;

/// What stands between the id of a run and the number in `requestState`.
const SEPARATOR: char = '\n';

/// The answers of a call that did not fit.
#[derive(Debug, Default)]
pub(super) struct Misfits {
    /// How many since the last decision.
    pub(super) count: usize,
    /// Why the last ones did not fit, by question.
    pub(super) reasons: BTreeMap<String, Problem>,
}

impl Misfits {
    /// Reads `requestState`: the run of a call, and how many of its answers did not fit.
    pub(super) fn of(state: &str) -> (RunId, Self) {
        let (run, count) = state.split_once(SEPARATOR).unwrap_or((state, ""));
        (RunId::new(run), Self { count: count.parse().unwrap_or_default(), ..Self::default() })
    }

    /// Returns `requestState`.
    pub(super) fn state(&self, run: &RunId) -> String {
        match self.count {
            0 => run.to_string(),
            count => format!("{run}{SEPARATOR}{count}"),
        }
    }

    /// Adds an answer.
    pub(super) fn add(&mut self, question: String, reason: Problem) {
        self.count = self.count.saturating_add(1);
        self.reasons.insert(question, reason);
    }
}
