//! Loops that answer in decisions: what is asked, shown and read of them.

use std::sync::{Mutex, PoisonError};

use super::async_effects::ask;
use super::shared::Shared;
use super::worker::Worker;
use crate::definition::LoopDefinition;
use crate::model::{DeltaSink, Model, Piece};
use crate::projection::{Decided, ReasoningStream, decided};
use crate::record::{
    AnswerFault, DeltaKind, EndReason, EventKind, LoopOutcome, ModelError, ModelRequest, ModelResponse, NewEvent, Path,
    Seq, StructuredActions, ToolSet,
};

/// What a model gave.
pub(super) enum Given {
    /// An answer that fits what was asked for.
    Answer(ModelResponse),
    /// One that does not, and what is wrong with it.
    Refused(ModelResponse, String),
}

/// Asks a model once, and reads its answer as a decision where the loop answers in decisions.
pub(super) async fn given(
    shared: &Shared,
    model: &dyn Model,
    request: &ModelRequest,
    after: Seq,
    decisions: Option<(&StructuredActions, &ToolSet)>,
    definition: Option<&LoopDefinition>,
) -> Result<Given, ModelError> {
    let Some((decisions, tools)) = decisions else {
        return ask(shared, model, request, Some(after), |show| show).await.map(Given::Answer);
    };
    let response = ask(shared, model, request, Some(after), ReasonAlone::before).await?;
    // It decides nothing, and asking for another form of it does not help.
    let limit = request.settings.max_output_tokens;
    let fault = AnswerFault::of(&response.parts, &response.metadata.finish, limit);
    if let Some(AnswerFault::Refused | AnswerFault::Filtered) = fault {
        return Ok(Given::Answer(ModelResponse { calls: Vec::new(), ..response }));
    }
    let fits = |tool: &crate::record::ToolDecl, input: &mut serde_json::Value| match definition {
        // A tool that the code has no more gives its call a typed result.
        Some(definition) => definition.tools.get(&tool.id).map_or(Ok(()), |tool| tool.schema.accept(input)),
        None => Ok(()),
    };
    Ok(match decided(&response, tools, decisions.batches, fits) {
        Ok(Decided { parts, calls }) => Given::Answer(ModelResponse { parts, calls, metadata: response.metadata }),
        Err(message) => Given::Refused(response, message),
    })
}

/// Shows the reason of a decision, and none of its JSON.
pub(super) struct ReasonAlone<'a> {
    show: Box<dyn DeltaSink + 'a>,
    reason: Mutex<ReasoningStream>,
}

impl<'a> ReasonAlone<'a> {
    fn before(show: Box<dyn DeltaSink + 'a>) -> Box<dyn DeltaSink + 'a> {
        Box::new(Self { show, reason: Mutex::default() })
    }
}

impl DeltaSink for ReasonAlone<'_> {
    fn piece(&self, piece: Piece) {
        if piece.kind != DeltaKind::Text {
            return self.show.piece(piece);
        }
        let gained = self.reason.lock().unwrap_or_else(PoisonError::into_inner).feed(&piece.text);
        if !gained.is_empty() {
            self.show.piece(Piece { kind: DeltaKind::Reasoning, text: gained, ..piece });
        }
    }

    fn restart(&self) {
        *self.reason.lock().unwrap_or_else(PoisonError::into_inner) = ReasoningStream::default();
        self.show.restart();
    }

    fn is_heard(&self) -> bool {
        self.show.is_heard()
    }
}

impl Worker {
    /// Records an answer that is no decision that fits; the loop fails when it was the last that the model had.
    pub(super) fn refused_drafts(
        &self,
        path: &Path,
        response: ModelResponse,
        message: String,
        attempt: u32,
        duration: u64,
    ) -> Vec<NewEvent> {
        let loop_at = path.parent().unwrap_or_default();
        let state = self.shared.state();
        let Some(frame) = state.loop_at(path) else { return Vec::new() };
        let retries = frame.prepared.settings.structured_actions.as_ref().map_or(0, |decisions| decisions.retries);
        let refused = frame.refused.len() + 1;
        let mut usage = frame.usage;
        let ModelResponse { parts, metadata, .. } = response;
        let metadata = self.charged(metadata);
        usage += metadata.usage;
        let last = usize::try_from(retries).is_ok_and(|retries| refused > retries).then(|| {
            let times = if refused == 1 { "once".to_owned() } else { format!("{refused} times") };
            format!("the model of the loop `{loop_at}` was asked {times} and gave no decision that fits: {message}")
        });
        let kind = EventKind::LoopAnswerRefused {
            attempt,
            message,
            parts: parts.into(),
            metadata: Box::new(metadata),
            duration,
        };
        let mut new_events = vec![NewEvent::new(path.clone(), kind)];
        if let Some(message) = last {
            let outcome = LoopOutcome::Failed { code: EndReason::Decision, message, retryable: true };
            new_events.push(NewEvent::new(loop_at, EventKind::LoopComplete { outcome, usage, change: None }));
        }
        new_events
    }
}
