//! How a leg ends: what is open in it, and the outcome.

use positronic_server::Problem;
use positronic_server::extension::OpenQuestion;
use serde_json::Value;

use super::encoder::AgUi;
use super::event::{Event, Interrupt, Outcome, SubagentOutcome, TokenUsage};
use super::interrupt::{interrupt, paused, sleeping};
use crate::leg::LegEnd;
use crate::projection::{Open, Projection};

impl AgUi {
    /// Ends the leg.
    pub(super) fn finish(&mut self, projection: &Projection, end: LegEnd) -> Vec<Event> {
        let mut events = Vec::new();
        let is_called = |question: &&OpenQuestion| question.pending.kind.is_for_caller();
        let called: Vec<_> = match &end {
            LegEnd::Waiting(questions) => {
                questions.iter().filter(is_called).map(|question| projection.call_id(&question.pending.call)).collect()
            }
            LegEnd::Completed { .. } | LegEnd::Failed(_) | LegEnd::Cancelled | LegEnd::Paused | LegEnd::Broken(_) => {
                Vec::new()
            }
        };
        let interrupts = match &end {
            // What people are asked comes after the results.
            LegEnd::Waiting(_) if !called.is_empty() => Vec::new(),
            LegEnd::Waiting(questions) => questions.iter().map(|question| interrupt(projection, question)).collect(),
            LegEnd::Paused => vec![paused()],
            LegEnd::Completed { .. } | LegEnd::Failed(_) | LegEnd::Cancelled | LegEnd::Broken(_) => Vec::new(),
        };
        self.close(projection, &interrupts, &mut events);
        events.push(match end {
            LegEnd::Completed { result, is_state } => {
                let result = Some(result).filter(|result| !is_state && !result.is_null());
                self.finished(Outcome::Success { pending_tool_call_ids: Vec::new() }, result, projection)
            }
            LegEnd::Cancelled => self.finished(Outcome::Cancelled, None, projection),
            LegEnd::Failed(failure) => Event::RunError {
                message: failure.message,
                code: serde_json::to_value(failure.code)
                    .ok()
                    .and_then(|code| code.as_str().map(str::to_owned))
                    .unwrap_or_default(),
            },
            LegEnd::Waiting(_) if !called.is_empty() => {
                self.finished(Outcome::Success { pending_tool_call_ids: called }, None, projection)
            }
            // The protocol has no interrupt without a question: the run waits for a time.
            LegEnd::Waiting(_) if interrupts.is_empty() => {
                self.finished(Outcome::Interrupt { interrupts: vec![sleeping()] }, None, projection)
            }
            LegEnd::Waiting(_) | LegEnd::Paused => self.finished(Outcome::Interrupt { interrupts }, None, projection),
            LegEnd::Broken(problem) => broken(&problem),
        });
        events
    }

    fn finished(&self, outcome: Outcome, result: Option<Value>, projection: &Projection) -> Event {
        let usage = projection.state().root.as_ref().map(|root| root.usage).filter(|usage| usage.total() > 0);
        let usage = usage.map(|usage| TokenUsage {
            input_tokens: usage.input,
            output_tokens: usage.output,
            total_tokens: usage.total(),
            reasoning_tokens: usage.reasoning,
            cached_input_tokens: usage.cached,
            cache_write_input_tokens: usage.cache_write,
        });
        let (thread_id, run_id) = (self.thread.clone(), self.leg.clone());
        Event::RunFinished { thread_id, run_id, result, outcome, usage: usage.into_iter().collect() }
    }

    /// Ends what is open at the end of a leg.
    fn close(&mut self, projection: &Projection, interrupts: &[Interrupt], out: &mut Vec<Event>) {
        self.end_texts(|_| true, out);
        for (tool_call_id, _) in std::mem::take(&mut self.open_calls) {
            out.push(Event::ToolCallEnd { tool_call_id, subagent_run_id: None });
        }
        for open in projection.open().iter().rev() {
            out.push(match open {
                Open::Stage { path } => {
                    Event::StepFinished { step_name: path.to_string(), subagent_run_id: projection.brain_of(path) }
                }
                Open::Brain { id, .. } => {
                    let own = interrupts.iter().filter(|item| item.subagent_run_id.as_ref() == Some(id));
                    let interrupt_ids = own.map(|item| item.id.clone()).collect();
                    let outcome = SubagentOutcome::Suspended { interrupt_ids };
                    Event::SubagentFinished { subagent_run_id: id.clone(), result: None, outcome }
                }
            });
        }
    }
}

/// Says why a leg cannot continue.
fn broken(problem: &Problem) -> Event {
    Event::RunError { message: problem.message(), code: problem.kind().slug().to_owned() }
}
