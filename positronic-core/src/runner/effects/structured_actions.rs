//! Loops with structured actions: the request, the streamed reasoning and the answer.

use parking_lot::Mutex;

use super::send_request::ask;
use crate::definition::LoopDefinition;
use crate::model::{DeltaSink, Model, NoDeltas, Piece};
use crate::projection::{DecodedActions, ReasoningStream, decode_actions};
use crate::record::{
    AnswerFault, DeltaKind, ModelError, ModelRequest, ModelResponse, Part, Seq, StructuredActions, ToolSet,
};
use crate::runner::worker::shared::Shared;

/// The answer of a model.
pub(super) enum Received {
    /// An answer as the model gave it.
    Plain(ModelResponse),
    /// An answer whose parts contained structured actions, and those parts.
    Actions(ModelResponse, Vec<Part>),
    /// An answer whose structured actions do not match their schema, and the mismatch.
    Misfit(ModelResponse, String),
}

/// Sends a request of a loop with structured actions to a model, and reads them from the answer.
pub(super) async fn ask_for_actions(
    shared: &Shared,
    model: &dyn Model,
    request: &ModelRequest,
    after: Seq,
    (actions, tools): (&StructuredActions, &ToolSet),
    definition: Option<&LoopDefinition>,
    is_guarded: bool,
) -> Result<Received, ModelError> {
    let shown = |show| if is_guarded { Box::new(NoDeltas) as Box<dyn DeltaSink> } else { ReasoningOnly::before(show) };
    let response = ask(shared, model, request, Some(after), shown).await?;
    // It contains no action, and a retry would not help.
    let limit = request.settings.max_output_tokens;
    let fault = AnswerFault::of(&response.parts, &response.metadata.finish, limit);
    if let Some(AnswerFault::Refused | AnswerFault::Filtered) = fault {
        return Ok(Received::Plain(ModelResponse { calls: Vec::new(), ..response }));
    }
    let fits = |tool: &crate::record::ToolDecl, input: &mut serde_json::Value| match definition {
        // A missing tool gives its call a typed result.
        Some(definition) => definition.tools.get(&tool.id).map_or(Ok(()), |tool| tool.accept(input)),
        None => Ok(()),
    };
    Ok(match decode_actions(&response, tools, actions.batches, fits) {
        Ok(DecodedActions { parts, calls }) => {
            Received::Actions(ModelResponse { parts, calls, metadata: response.metadata }, response.parts)
        }
        Err(message) => Received::Misfit(response, message),
    })
}

/// Streams the reasoning of an answer without its JSON.
pub(super) struct ReasoningOnly<'a> {
    show: Box<dyn DeltaSink + 'a>,
    reason: Mutex<ReasoningStream>,
}

impl<'a> ReasoningOnly<'a> {
    fn before(show: Box<dyn DeltaSink + 'a>) -> Box<dyn DeltaSink + 'a> {
        Box::new(Self { show, reason: Mutex::default() })
    }
}

impl DeltaSink for ReasoningOnly<'_> {
    fn piece(&self, piece: Piece) {
        if piece.kind != DeltaKind::Text {
            return self.show.piece(piece);
        }
        let gained = self.reason.lock().feed(&piece.text);
        if !gained.is_empty() {
            self.show.piece(Piece { kind: DeltaKind::Reasoning, text: gained, ..piece });
        }
    }

    fn restart(&self) {
        *self.reason.lock() = ReasoningStream::default();
        self.show.restart();
    }

    fn has_reader(&self) -> bool {
        self.show.has_reader()
    }
}
