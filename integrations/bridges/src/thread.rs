//! What a client may say: which run its thread is at, and what the user has said since. Its history, its state and its system texts are not
//! read; they come from the log. Its decisions are those of [`crate::decisions`].

use std::collections::{HashMap, HashSet};

use positronic_core::machine::pending;
use positronic_core::record::{Event, EventKind, Pending, PendingKind, RunId, RunSummary};
use positronic_server::extension::{OpenQuestion, RequestContext};
use positronic_server::{Problem, ProblemType};

use crate::history::{LogReader, MAX_RUNS};
use crate::projection::asks_for_text;

/// Says that a message has no text.
pub(crate) const EMPTY_MESSAGE: &str = "the message of the user is empty";

/// A thread of a client: a conversation, or a single run that began elsewhere, by its id.
#[derive(Debug)]
pub(crate) struct Thread {
    /// Its runs, the last one first.
    rows: Vec<RunSummary>,
    is_conversation: bool,
}

impl Thread {
    /// Finds the runs of a thread; none if it has not begun.
    ///
    /// # Errors
    ///
    /// `NotFound` if it belongs to another user.
    pub(crate) async fn find(cx: &RequestContext, id: &str) -> Result<Self, Problem> {
        let rows = cx.conversation_rows(id).await?;
        if !rows.is_empty() {
            return Ok(Self { rows, is_conversation: true });
        }
        match cx.run_row(&RunId::new(id)).await {
            Ok(row) => Ok(Self { rows: vec![row], is_conversation: false }),
            Err(problem) if problem.kind() == ProblemType::UnknownRun => {
                Ok(Self { rows: Vec::new(), is_conversation: true })
            }
            Err(problem) => Err(problem),
        }
    }

    /// Returns the last run.
    pub(crate) fn last(&self) -> Option<&RunSummary> {
        self.rows.first()
    }

    /// Returns whether a message can be sent to it. A run that is in no conversation takes none over a bridge.
    pub(crate) const fn is_conversation(&self) -> bool {
        self.is_conversation
    }

    /// Returns the runs that have asked some questions, by the ids of these: also earlier ones, whose questions a client may still have.
    /// It reads each log once.
    pub(crate) async fn askers<'a>(
        &self,
        cx: &RequestContext,
        mut questions: HashSet<&'a str>,
    ) -> Result<HashMap<&'a str, &RunSummary>, Problem> {
        let (viewer, mut askers) = (cx.viewer()?, HashMap::new());
        for row in self.rows.iter().take(MAX_RUNS) {
            if questions.is_empty() {
                break;
            }
            let mut log = LogReader::new(cx.client(), &row.run);
            while let Some(events) = log.next().await? {
                for event in events {
                    let id = viewer.question_id(&row.run, &event.path, event.seq);
                    askers.extend(questions.take(id.as_str()).map(|question| (question, row)));
                }
            }
        }
        Ok(askers)
    }

    /// Returns its runs, the last one first.
    pub(crate) fn rows(&self) -> &[RunSummary] {
        &self.rows
    }

    /// Returns whether the log of one of the latest runs has a message with an id: one that the client got from a bridge.
    pub(crate) async fn has_message(&self, cx: &RequestContext, id: &str) -> Result<bool, Problem> {
        Ok(!self.known_messages(cx, HashSet::from([id])).await?.is_empty())
    }

    /// Returns what the user has said that no run has read: the messages at the end of a client's list, each with its id, as one with
    /// the id of the last one. `None` if a run has the last one, or there is none.
    pub(crate) async fn unsaid<'a>(
        &self,
        cx: &RequestContext,
        mut said: Vec<(&'a str, String)>,
    ) -> Result<Option<(&'a str, String)>, Problem> {
        let known = self.known_messages(cx, said.iter().map(|(id, _)| *id).collect()).await?;
        let first = said.iter().rposition(|(id, _)| known.contains(id)).map_or(0, |last| last + 1);
        let unsaid = said.split_off(first);
        let texts: Vec<_> = unsaid.iter().map(|(_, text)| text.as_str()).collect();
        Ok(unsaid.last().map(|(id, _)| (*id, texts.join("\n\n"))))
    }

    /// Returns the ids among these that are those of messages in the logs of the latest runs. It reads each log at most once.
    async fn known_messages<'a>(
        &self,
        cx: &RequestContext,
        mut ids: HashSet<&'a str>,
    ) -> Result<HashSet<&'a str>, Problem> {
        let mut known = HashSet::new();
        for row in self.rows.iter().take(MAX_RUNS) {
            let mut log = LogReader::new(cx.client(), &row.run);
            while !ids.is_empty()
                && let Some(events) = log.next().await?
            {
                for event in events {
                    known.extend(message_id(&row.run, &event).and_then(|id| ids.take(id.as_str())));
                }
            }
        }
        Ok(known)
    }
}

/// Says where a client gives the options of a brain, if they are missing or do not fit.
pub(crate) fn with_place_of_options(problem: Problem, place: &str) -> Problem {
    if problem.kind() != ProblemType::OptionsInvalid {
        return problem;
    }
    let detail = format!("{}\nThe options of the brain are {place}.", problem.message());
    Problem::new(ProblemType::OptionsInvalid).detail(detail)
}

/// Returns the id of the message that an event has.
fn message_id(run: &RunId, event: &Event) -> Option<String> {
    let of_log = || format!("{run}:{}", event.seq);
    match &event.kind {
        EventKind::LoopStart { message_id, .. } | EventKind::LoopMessage { message_id, .. } => {
            Some(message_id.clone().unwrap_or_else(of_log))
        }
        EventKind::LoopResume { .. } | EventKind::StageResume { .. } => Some(of_log()),
        _ => None,
    }
}

/// Finds a pending question of a run; `None` if it is no longer open.
pub(crate) async fn question(cx: &RequestContext, row: &RunSummary, id: &str) -> Result<Option<OpenQuestion>, Problem> {
    let state = cx.client().state(&row.run).await?;
    let viewer = cx.viewer()?;
    let mut open = pending(&state).into_iter().map(|item| viewer.question(&row.run, &state, &item));
    Ok(open.find(|question| question.id == id))
}

/// Returns the calls of the caller's own tools that wait for their results.
pub(crate) async fn open_calls(cx: &RequestContext, row: &RunSummary) -> Result<Vec<Pending>, Problem> {
    if row.status.is_over() {
        return Ok(Vec::new());
    }
    let items = pending(&cx.client().state(&row.run).await?);
    Ok(items.into_iter().filter(|item| item.kind.is_for_caller()).collect())
}

/// Returns the only open question to a person whose answer is a text.
pub(crate) async fn text_question(cx: &RequestContext, row: &RunSummary) -> Result<Option<String>, Problem> {
    if row.status.is_over() {
        return Ok(None);
    }
    let state = cx.client().state(&row.run).await?;
    let items = pending(&state);
    let [item] = items.as_slice() else { return Ok(None) };
    let PendingKind::Answer { waits } = &item.kind else { return Ok(None) };
    let is_asked = matches!(waits.as_slice(), [wait] if asks_for_text(wait));
    is_asked.then(|| cx.viewer().map(|viewer| viewer.question(&row.run, &state, item).id)).transpose()
}
