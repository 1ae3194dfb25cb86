//! Traffic of a run: its requests to models with their answers, and the answers of people and webhooks.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::earlier_turns::History;
use super::prompts::Prompts;
use super::requests::{iteration_request, question_request};
use crate::machine::{IllegalEvent, REPLY, RunState};
use crate::record::{
    ActionFormat, Decision, Event, EventKind, LoopOutcome, Message, ModelError, ModelErrorKind, ModelRequest,
    ModelResponse, Output, Part, Path, ProposedCall, ResumeCause, Segment, SignalKind, StructuredActions, ToolCall,
    WaitSpec,
};

/// An input of a run from outside.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Traffic {
    /// A request to a model, with its answer or failure.
    Exchange(Box<Exchange>),
    /// A person's or a system's answer to something pending.
    Signal {
        /// What it answers: the path of a call, a loop or a brain.
        after: Path,
        /// Its content.
        signal: SignalKind,
    },
}

/// A request to a model, and its outcome.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Exchange {
    /// The model that was asked, as `provider/model`.
    pub model: String,
    /// The structured actions of the loop, if it uses them.
    pub form: Option<ActionFormat>,
    /// The request.
    pub request: ModelRequest,
    /// The model's answer, or the failure. For a failure that ended the loop the log has only its message.
    pub outcome: Result<ModelResponse, ModelError>,
}

/// Reads the traffic of a run in order of the outcomes, without requests that code answered or that have no outcome.
///
/// `history` is the conversation before the run ([`Client::history`](crate::runner::Client::history)), and `project` the
/// [`Model::project`](crate::model::Model::project) of the model that was asked.
///
/// # Errors
///
/// [`IllegalEvent`] if the log is damaged.
pub fn traffic<'a>(
    events: impl IntoIterator<Item = &'a Event> + Clone,
    history: impl Into<History>,
    mut project: impl FnMut(&[Output]) -> Option<Vec<Message>>,
) -> Result<Vec<Traffic>, IllegalEvent> {
    let calls = events.clone().into_iter().filter_map(|event| match &event.kind {
        EventKind::LoopToolCall(call) => Some((event.path.clone(), &**call)),
        _ => None,
    });
    let mut reader = TrafficReader { calls: calls.collect(), ..TrafficReader::default() };
    let mut state = RunState::default();
    let mut prompts = Prompts::after(history);
    for event in events {
        if let EventKind::LoopModelCall { attempt, model, question } = &event.kind {
            let asked = match (question, state.loop_at(&event.path)) {
                (Some(question), _) => Some((question_request(event.path.clone(), *attempt, question), None)),
                (None, Some(frame)) => {
                    let messages = prompts.transcript_by(&frame.path, &mut project);
                    let decisions = frame.prepared.settings.structured_actions.clone();
                    let request = iteration_request(frame, event.path.clone(), *attempt, messages);
                    Some((request, decisions))
                }
                (None, None) => None,
            };
            if let Some((request, decisions)) = asked.filter(|(request, _)| !request.settings.in_code) {
                reader.open.insert(event.path.clone(), UnansweredRequest { model: model.clone(), request, decisions });
            }
        }
        state.fold(event)?;
        prompts.apply(event);
        reader.read(event);
    }
    Ok(reader.traffic)
}

/// A request without an outcome so far.
struct UnansweredRequest {
    model: String,
    request: ModelRequest,
    decisions: Option<StructuredActions>,
}

#[derive(Default)]
struct TrafficReader<'a> {
    calls: HashMap<Path, &'a ToolCall>,
    open: HashMap<Path, UnansweredRequest>,
    waits: HashMap<Path, &'a [WaitSpec]>,
    traffic: Vec<Traffic>,
}

impl<'a> TrafficReader<'a> {
    fn read(&mut self, event: &'a Event) {
        let path = &event.path;
        match &event.kind {
            EventKind::LoopModelResult { parts, metadata, .. } => {
                let response = self.response(path, parts, metadata.clone());
                self.close(path, |asked| Ok(as_given(response, asked.decisions.as_ref())));
            }
            EventKind::LoopAnswerRefused { parts, calls, metadata, .. } => {
                let response =
                    ModelResponse { parts: parts.to_vec(), calls: calls.clone(), metadata: (**metadata).clone() };
                self.close(path, |_| Ok(response));
            }
            EventKind::LoopModelRetry { error, .. } => self.close(path, |_| Err(error.clone())),
            EventKind::LoopComplete { outcome: LoopOutcome::Failed { message, .. }, .. } => self.fail(path, message),
            EventKind::BrainError(failure) => self.fail(path, &failure.message),
            EventKind::LoopApprovalDecided { decision: Decision::Approved, arguments, .. } => {
                self.signal(path, SignalKind::Approve { call: path.clone(), arguments: arguments.clone() });
            }
            EventKind::BudgetDecided { decision: Decision::Approved, more, .. } => {
                self.signal(path, SignalKind::Grant { to: path.clone(), more: *more });
            }
            EventKind::LoopApprovalDecided { decision: Decision::Rejected, reason, .. }
            | EventKind::BudgetDecided { decision: Decision::Rejected, reason, .. } => {
                self.signal(path, SignalKind::Reject { call: path.clone(), reason: reason.clone() });
            }
            EventKind::LoopWait { waits, .. } | EventKind::StageWait { waits, .. } => {
                _ = self.waits.insert(path.clone(), waits);
            }
            EventKind::LoopResume { cause: ResumeCause::Answered, wait, payload, signal: Some(_), .. }
            | EventKind::StageResume { cause: ResumeCause::Answered, wait, payload, signal: Some(_), .. } => {
                let wait = usize::try_from(*wait).ok().and_then(|wait| self.waits.get(path)?.get(wait));
                if let Some(wait) = wait {
                    self.signal(path, delivery(path, wait, payload.clone()));
                }
            }
            _ => {}
        }
    }

    fn signal(&mut self, after: &Path, signal: SignalKind) {
        self.traffic.push(Traffic::Signal { after: after.clone(), signal });
    }

    fn close(&mut self, path: &Path, outcome: impl FnOnce(&UnansweredRequest) -> Result<ModelResponse, ModelError>) {
        if let Some(asked) = self.open.remove(path) {
            let outcome = outcome(&asked);
            let form = asked.decisions.map(|decisions| decisions.form.unwrap_or_default());
            let exchange = Exchange { model: asked.model, form, request: asked.request, outcome };
            self.traffic.push(Traffic::Exchange(Box::new(exchange)));
        }
    }

    /// Completes the request with which a loop or a brain failed.
    fn fail(&mut self, owner: &Path, message: &str) {
        let mut failed: Vec<_> = self.open.keys().filter(|path| path.is_within(owner)).cloned().collect();
        failed.sort();
        for path in failed {
            self.close(&path, |_| Err(ModelError::new(ModelErrorKind::BadRequest, message)));
        }
    }

    /// Returns an answer with its calls, which are separate events.
    fn response(&self, path: &Path, parts: &[Part], metadata: crate::record::ResponseMetadata) -> ModelResponse {
        let (Some(loop_at), Some(Segment::Iteration(iteration))) = (path.parent(), path.last()) else {
            return ModelResponse { parts: parts.to_vec(), calls: Vec::new(), metadata };
        };
        let calls = (0..).map_while(|index| self.calls.get(&loop_at.call(iteration, index)));
        let calls = calls.map(|call| ProposedCall {
            provider_id: call.provider_id.clone(),
            name: call.tool.clone(),
            arguments: match &*call.arguments {
                Value::String(text) => text.clone(),
                arguments => arguments.to_string(),
            },
            data: call.data.clone(),
        });
        ModelResponse { parts: parts.to_vec(), calls: calls.collect(), metadata }
    }
}

/// Converts reasoning and calls back into the structured actions that the model wrote.
fn as_given(response: ModelResponse, decisions: Option<&StructuredActions>) -> ModelResponse {
    let Some(decisions) = decisions.filter(|_| response.refusal().is_none()) else { return response };
    let is_reason = |part: &Part| matches!(part, Part::Reasoning { data: None, .. });
    let Some(place) = response.parts.iter().rposition(is_reason) else { return response };
    let actions = response.calls.iter().map(|call| {
        let input: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
        (call.name.clone(), input)
    });
    let actions: Vec<_> = actions.collect();
    let parts = response.parts.into_iter().enumerate().filter_map(|(index, part)| match part {
        Part::Reasoning { text, .. } if index == place => {
            let document = match (decisions.batches, actions.first()) {
                (false, Some((action, input))) => json!({ "reasoning": text, "action": action, "input": input }),
                (false, None) => json!({ "reasoning": text }),
                (true, _) => {
                    let actions = actions.iter().map(|(action, input)| json!({ "action": action, "input": input }));
                    json!({ "reasoning": text, "actions": actions.collect::<Vec<_>>() })
                }
            };
            Some(Part::Text { text: document.to_string() })
        }
        Part::Call { .. } => None,
        part => Some(part),
    });
    ModelResponse { parts: parts.collect(), calls: Vec::new(), metadata: response.metadata }
}

fn delivery(call: &Path, wait: &WaitSpec, payload: Value) -> SignalKind {
    if wait.webhook == REPLY {
        SignalKind::Reply { call: call.clone(), payload }
    } else {
        SignalKind::Webhook { name: wait.webhook.clone(), identifier: wait.identifier.clone(), payload }
    }
}
