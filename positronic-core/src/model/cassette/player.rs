//! Replay: finds the recorded answer to a request, and rejects a request that differs.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::format::{CassetteError, RecordedExchange, RequestLine};
use super::replay_mismatch::difference;
use super::scrub::Scrubber;
use crate::record::{
    ModelError, ModelErrorKind, ModelRequest, ModelResponse, Path, ResponseMetadata, Segment, Settings, ToolSet,
    Transcript,
};

type RecordedOutcome = Result<ModelResponse, ModelError>;

/// The recorded exchanges, and the last comparison of each loop.
#[derive(Debug, Default)]
pub(super) struct Player {
    /// Several answers per request: each run of a conversation asks at the same path, and they are given in order.
    exact: HashMap<(Path, u32), VecDeque<RecordedAnswer>>,
    order: Vec<(Path, u32)>,
    by_loop: HashMap<Path, VecDeque<RecordedOutcome>>,
    anywhere: VecDeque<RecordedOutcome>,
    compared: HashMap<Path, Compared>,
}

#[derive(Debug)]
struct RecordedAnswer {
    request: Option<ModelRequest>,
    outcome: RecordedOutcome,
    used: bool,
}

/// The last equal requests of a loop, whose messages need no second comparison.
#[derive(Debug)]
struct Compared {
    recorded: Transcript,
    attempted: Transcript,
}

impl Player {
    pub(super) fn new(exchanges: Vec<(usize, RecordedExchange)>) -> Result<Self, CassetteError> {
        let mut player = Self::default();
        let mut last: HashMap<Path, ModelRequest> = HashMap::new();
        for (line, exchange) in exchanges {
            let refuse = |reason: String| CassetteError::Line { line, reason };
            let outcome = match (exchange.reply, exchange.error) {
                (_, Some(error)) => Err(error),
                (reply, None) => Ok(reply.unwrap_or_default().into()),
            };
            let Some(at) = exchange.at else {
                player.anywhere.push_back(outcome);
                continue;
            };
            let at = Path::parse(&at).map_err(|error| refuse(error.to_string()))?;
            if exchange.request.is_none() && matches!(at.last(), Some(Segment::Stage(_))) {
                player.by_loop.entry(at).or_default().push_back(outcome);
                continue;
            }
            let asker = at.parent().unwrap_or_default();
            let request = exchange.request.map(|new| rebuild(&at, exchange.attempt, new, last.get(&asker)));
            let request = request.transpose().map_err(refuse)?;
            if let Some(request) = &request {
                last.insert(asker, request.clone());
            }
            let key = (at, exchange.attempt);
            let recorded = player.exact.entry(key.clone()).or_default();
            if recorded.is_empty() {
                player.order.push(key);
            }
            recorded.push_back(RecordedAnswer { request, outcome, used: false });
        }
        Ok(player)
    }

    pub(super) fn answer(&mut self, request: &ModelRequest, scrubber: &Scrubber) -> RecordedOutcome {
        let asker = request.path.parent().unwrap_or_default();
        let key = (request.path.clone(), request.attempt);
        // The last answer repeats, for a run that sends its request again after a crash.
        let recorded = self.exact.get_mut(&key).and_then(|all| {
            let next = all.iter().position(|one| !one.used).unwrap_or(all.len().saturating_sub(1));
            all.get_mut(next)
        });
        if let Some(recorded) = recorded {
            if let Some(known) = &recorded.request {
                let seen = self.compared.get(&asker);
                let equal = seen
                    .filter(|seen| known.messages.extends(&seen.recorded) && request.messages.extends(&seen.attempted));
                let skip = equal.map_or(0, |seen| seen.recorded.len());
                if let Some(difference) = difference(known, request, skip, scrubber) {
                    let sentence = format!("{} differs from the recorded one: {difference}", named(request));
                    return Err(ModelError::new(ModelErrorKind::Unscripted, sentence));
                }
                let compared = Compared { recorded: known.messages.clone(), attempted: request.messages.clone() };
                self.compared.insert(asker, compared);
            }
            recorded.used = true;
            return recorded.outcome.clone();
        }
        let own = self.by_loop.get_mut(&asker).and_then(VecDeque::pop_front);
        own.or_else(|| self.anywhere.pop_front()).unwrap_or_else(|| {
            let next = match self.next_unused() {
                Some(next) => format!("its next unused answer is at {next}"),
                None => "all of its answers are used".to_owned(),
            };
            let sentence = format!("the cassette has no answer for {}; {next}", named(request));
            Err(ModelError::new(ModelErrorKind::Unscripted, sentence))
        })
    }

    fn next_unused(&self) -> Option<String> {
        let is_unused = |key: &&(Path, u32)| self.exact.get(key).is_some_and(|all| all.iter().any(|one| !one.used));
        let exact = self.order.iter().find(is_unused).map(|(path, attempt)| location(path, *attempt));
        let of_loop = || self.by_loop.iter().filter(|(_, left)| !left.is_empty()).map(|(path, _)| path).min();
        exact.or_else(|| of_loop().map(|path| location(path, 0)))
    }

    pub(super) fn metadata(&self) -> Vec<ResponseMetadata> {
        let exact = self.exact.values().flatten().map(|recorded| &recorded.outcome);
        let others = self.by_loop.values().flatten().chain(&self.anywhere);
        exact.chain(others).filter_map(|outcome| Some(outcome.as_ref().ok()?.metadata.clone())).collect()
    }

    pub(super) fn unused(&self) -> Vec<String> {
        let unused =
            |key: &(Path, u32)| self.exact.get(key).map_or(0, |all| all.iter().filter(|one| !one.used).count());
        let exact = self.order.iter().flat_map(|key| std::iter::repeat_n(key.0.to_string(), unused(key)));
        let mut loops: Vec<_> = self.by_loop.iter().filter(|(_, replies)| !replies.is_empty()).collect();
        loops.sort_by_key(|(path, _)| *path);
        let loops = loops.into_iter().flat_map(|(path, replies)| replies.iter().map(|_| path.to_string()));
        let anywhere = self.anywhere.iter().map(|_| "an exchange without a path".to_owned());
        exact.chain(loops).chain(anywhere).collect()
    }
}

fn named(request: &ModelRequest) -> String {
    format!("the request at {}", location(&request.path, request.attempt))
}

fn location(path: &Path, attempt: u32) -> String {
    if attempt == 0 { format!("`{path}`") } else { format!("`{path}` (attempt {attempt})") }
}

/// Applies a difference to the previous request.
fn rebuild(at: &Path, attempt: u32, new: RequestLine, last: Option<&ModelRequest>) -> Result<ModelRequest, String> {
    let mut messages = last.map(|last| last.messages.clone()).unwrap_or_default();
    if let Some(from) = new.from.filter(|from| *from != messages.len()) {
        if from > messages.len() {
            return Err(format!("`from` is {from}, but only {} messages are known", messages.len()));
        }
        messages = Transcript::new(messages.messages().into_iter().take(from));
    }
    for message in new.messages {
        messages.push(message);
    }
    Ok(ModelRequest {
        path: at.clone(),
        attempt,
        system: new.system.map(Arc::from).or_else(|| last.map(|last| Arc::clone(&last.system))).unwrap_or_default(),
        context: new.context.map(Arc::from).or_else(|| last.map(|last| Arc::clone(&last.context))).unwrap_or_default(),
        tools: new
            .tools
            .map(|tools| Arc::new(ToolSet::new(tools)))
            .or_else(|| last.map(|last| Arc::clone(&last.tools)))
            .unwrap_or_default(),
        messages,
        settings: new
            .settings
            .map(Arc::new)
            .or_else(|| last.map(|last| Arc::clone(&last.settings)))
            .unwrap_or_else(|| Arc::new(Settings::default())),
    })
}
