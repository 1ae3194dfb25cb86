//! The record of one loop.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::projection::earlier_turns::History;
use crate::projection::messages::{messages, opening};
use crate::projection::normalize_messages::{count, dialogue, extend};
use crate::record::{
    AnswerWithoutText, Approval, BatchPolicy, CallState, ContinuedLoop, Event, EventKind, FileRef, MadeBy, Message,
    Output, OutputKind, Path, PrecedingCalls, Prompt, PromptState, ReplacedInput, ResponseMetadata, Segment, Settings,
    Speaker, ToolCall, ToolOutput, Transcript, Usage, UserMessage,
};

/// The outputs and messages of one loop, folded from its events.
#[derive(Debug, Clone)]
pub(super) struct Record {
    pub(super) prompt: Prompt,
    pub(super) transcript: Transcript,
    pub(super) projected: usize,
    /// Whether a plugin's question is open, whose answer is not part of the conversation.
    pub(super) asking: bool,
    /// Whether a summary replaces some of its messages.
    pub(super) compacted: bool,
    /// The conversation before it.
    pub(super) history: History,
    /// The loop whose dialogue is the end of that conversation.
    pub(super) continues: Option<ContinuedLoop>,
    /// Its compaction: the messages that replace everything before `from`.
    pub(super) standing: Vec<Message>,
    /// The first output that is sent unchanged.
    pub(super) from: usize,
    /// The order in which the calls of a batch run.
    pub(super) policy: BatchPolicy,
    /// The paths of loops in nested brains that wait.
    pub(super) waiting_below: BTreeMap<Path, PromptState>,
    /// The messages of people that guards have replaced, by their numbers.
    pub(super) replaced: BTreeSet<usize>,
    /// How many of its first outputs are saved and do not change any more.
    pub(super) saved: usize,
    /// Whether it is saved with its end.
    pub(super) is_saved: bool,
    /// Whether a saved part has it.
    pub(super) is_in_part: bool,
}

impl Record {
    pub(super) fn new(
        path: Path,
        user_id: Option<String>,
        input: Option<(String, Vec<FileRef>)>,
        visible: bool,
        history: History,
    ) -> Self {
        let (input, files) = input.map_or_else(Default::default, |(text, files)| (Some(text), files));
        let mut record = Self {
            transcript: Transcript::default(),
            projected: 0,
            asking: false,
            compacted: false,
            history,
            continues: None,
            standing: Vec::new(),
            from: 0,
            policy: BatchPolicy::default(),
            waiting_below: BTreeMap::new(),
            replaced: BTreeSet::new(),
            saved: 0,
            is_saved: false,
            is_in_part: false,
            prompt: Prompt {
                id: path.public_id(),
                path,
                user_id,
                model: crate::record::Tier::Normal,
                visible,
                state: PromptState::Running,
                input,
                files,
                output: Vec::new(),
                usage: Usage::default(),
                cost: None,
                outcome: None,
            },
        };
        record.transcript = record.opened();
        record
    }

    /// Returns the messages before those of the outputs, as they are sent without a compaction.
    pub(super) fn opened(&self) -> Transcript {
        let mut transcript = self.history.dialogue();
        extend(&mut transcript, opening(&self.prompt));
        transcript
    }

    /// Sets the conversation before it.
    pub(super) fn set_history(&mut self, history: History) {
        self.history = history;
        if !self.compacted {
            self.transcript = self.opened();
        }
    }

    /// Returns the messages before those of the outputs.
    pub(super) fn before(&self) -> impl Iterator<Item = Message> {
        let whole = (!self.compacted).then(|| self.history.iter().cloned().chain(opening(&self.prompt)));
        self.standing.iter().cloned().chain(whole.into_iter().flatten())
    }

    /// Returns the messages before those of the outputs, for a model with a projection of its own.
    pub(super) fn before_by(&self, project: impl FnMut(&[Output]) -> Option<Vec<Message>>) -> Option<Vec<Message>> {
        if self.compacted {
            return Some(self.standing.clone());
        }
        let mut before = self.history.messages_by(project)?;
        before.extend(opening(&self.prompt));
        Some(before)
    }

    pub(super) fn next_messages(&self) -> Vec<Message> {
        let fresh = messages(self.prompt.output.get(self.projected..).unwrap_or_default());
        dialogue(self.transcript.messages().into_iter().chain(fresh)).messages()
    }

    pub(super) fn unsent(&self, iteration: u32) -> Vec<(u32, UserMessage)> {
        let opening = self.prompt.input.as_ref().map(|text| (text, &self.prompt.files, iteration == 0));
        let later = self.prompt.output.iter().enumerate().filter_map(|(place, output)| match &output.kind {
            OutputKind::Message { text, files, engine: false } => Some((text, files, place >= self.projected)),
            _ => None,
        });
        let numbered = (0..).zip(opening.into_iter().chain(later));
        let unsent = numbered.filter(|(_, (.., is_unsent))| *is_unsent);
        unsent
            .map(|(number, (text, files, _))| (number, UserMessage::new(text.as_str()).files(files.iter().cloned())))
            .collect()
    }

    /// Replaces a message that no iteration has sent.
    fn replace(&mut self, ReplacedInput { message, text, files, .. }: &ReplacedInput) {
        let mut number = usize::try_from(*message).unwrap_or(usize::MAX);
        self.replaced.insert(number);
        if self.prompt.input.is_some() {
            if number == 0 {
                (self.prompt.input, self.prompt.files) = (Some(text.clone()), files.clone());
                if !self.compacted {
                    self.transcript = self.opened();
                }
                return;
            }
            number -= 1;
        }
        let mut said = self.prompt.output.iter_mut().filter_map(|output| match &mut output.kind {
            OutputKind::Message { text, files, engine: false } => Some((text, files)),
            _ => None,
        });
        if let Some((known, attached)) = said.nth(number) {
            (*known, *attached) = (text.clone(), files.clone());
        }
    }

    pub(super) fn push(&mut self, event: &Event, duration: Option<Duration>, kind: OutputKind) {
        self.prompt.output.push(Output { at: event.at, duration, id: None, kind });
    }

    pub(super) fn tool(&mut self, path: &Path) -> Option<&mut ToolOutput> {
        self.prompt.output.iter_mut().rev().find_map(|output| match &mut output.kind {
            OutputKind::Tool(tool) if tool.path == *path => Some(&mut **tool),
            _ => None,
        })
    }

    pub(super) fn set_call(&mut self, path: &Path, state: CallState) {
        if let Some(tool) = self.tool(path) {
            tool.state = state;
        }
        self.settle();
    }

    /// Updates the states of the last batch's calls (queued or deferred) and of the prompt, which follow from the
    /// calls and their brains.
    pub(super) fn settle(&mut self) {
        let batch = self.prompt.output.iter().rposition(begins_answer).unwrap_or(0);
        let mut before = PrecedingCalls::default();
        let (mut approval, mut webhook) = (false, false);
        for output in self.prompt.output.iter_mut().skip(batch) {
            let OutputKind::Tool(tool) = &mut output.kind else { continue };
            let undecided = tool.approval.as_deref().is_some_and(Approval::is_open) && tool.result.is_none();
            if matches!(tool.state, CallState::Queued | CallState::Deferred) {
                let starts = !undecided && before.lets_start(tool.flags, tool.approval.is_some(), self.policy);
                tool.state = if starts { CallState::Queued } else { CallState::Deferred };
            }
            before.pass(undecided, tool.result.is_some(), tool.ends_loop());
            approval |= tool.state == CallState::Pending;
            webhook |= tool.state == CallState::Waiting;
        }
        for state in self.waiting_below.values() {
            approval |= *state == PromptState::WaitingForApproval;
            webhook |= *state == PromptState::WaitingForWebhook;
        }
        self.prompt.state = match (approval, webhook) {
            _ if self.prompt.outcome.is_some() => PromptState::Completed,
            (true, _) => PromptState::WaitingForApproval,
            (false, true) => PromptState::WaitingForWebhook,
            (false, false) => PromptState::Running,
        };
    }

    pub(super) fn apply(&mut self, event: &Event) {
        let path = &event.path;
        match &event.kind {
            EventKind::LoopIteration(iteration) => {
                self.asking = false;
                if let Some(settings) = iteration.settings.as_ref().and_then(|settings| settings.body.as_ref()) {
                    let Settings { tier, .. } = settings;
                    self.prompt.model = *tier;
                }
                if let Some(limits) = &iteration.limits {
                    self.policy = limits.policy;
                }
                let fresh = self.prompt.output.get(self.projected..).unwrap_or_default();
                extend(&mut self.transcript, messages(fresh));
                self.projected = self.prompt.output.len();
            }
            EventKind::LoopGuardReplaced { input: Some(input), .. } => self.replace(input),
            EventKind::LoopModelCall { .. } if path.is_question() => {}
            EventKind::LoopModelResult { metadata, .. } if path.is_question() => self.count(metadata),
            EventKind::LoopModelCall { question: Some(_), .. } => self.asking = true,
            EventKind::LoopModelResult { metadata, .. } if std::mem::take(&mut self.asking) => {
                self.count(metadata);
            }
            EventKind::LoopAnswerRefused { metadata, .. } | EventKind::LoopAnswerBroken { metadata } => {
                self.count(metadata);
            }
            EventKind::LoopModelResult { parts, metadata, duration } => {
                let iteration = match path.last() {
                    Some(Segment::Iteration(iteration)) => iteration,
                    _ => 0,
                };
                let (parts, cost) = (Arc::clone(parts), metadata.cost.clone());
                let earlier = self.prompt.output.iter().rev().find_map(|output| output.kind.made_by());
                let by = MadeBy::shared(earlier, &metadata.provider, &metadata.model, metadata.server.as_deref());
                let kind = OutputKind::Text { iteration, parts, cost, by };
                let output = Output { at: event.at, duration: Some(*duration), id: None, kind };
                // A message that arrived while the model answered follows the answer: the next request
                // refers to it.
                self.prompt.output.insert(self.projected.min(self.prompt.output.len()), output);
                self.count(metadata);
            }
            EventKind::LoopToolCall(call) => {
                let mut call = proposed(path, call);
                let place = self.batch_end();
                call.answer = self.take_answer_without_text(place);
                let place = place - usize::from(call.answer.is_some());
                let kind = OutputKind::Tool(Box::new(call));
                self.prompt.output.insert(place, Output { at: event.at, duration: None, id: None, kind });
                self.settle();
            }
            EventKind::LoopToolStart { .. } | EventKind::LoopBrainStart { .. } | EventKind::LoopResume { .. } => {
                self.set_call(path, CallState::Running);
            }
            EventKind::LoopToolRetry { .. } => self.set_call(path, CallState::Queued),
            EventKind::LoopApprovalRequested { .. } => {
                self.approval(path, event);
                self.set_call(path, CallState::Pending);
            }
            EventKind::LoopApprovalDecided { .. }
            | EventKind::LoopApprovalWithdrawn { .. }
            | EventKind::LoopApprovalExpired {} => {
                self.approval(path, event);
                self.set_call(path, CallState::Queued);
            }
            EventKind::LoopWait { .. } => self.set_call(path, CallState::Waiting),
            EventKind::LoopBrainComplete { handed_back: true, .. } => {
                if let Some(tool) = self.tool(path) {
                    tool.handed_back = true;
                }
                self.settle();
            }
            EventKind::LoopToolResult { result, duration, .. } => {
                if let Some(tool) = self.tool(path) {
                    tool.result = Some(result.clone());
                }
                if let Some(entry) = self.place(path).and_then(|(entry, _)| self.prompt.output.get_mut(entry)) {
                    entry.duration = *duration;
                }
                self.waiting_below.retain(|below, _| !below.is_within(path));
                self.set_call(path, CallState::Done);
            }
            EventKind::LoopOutput { id, output } => {
                let (id, kind) = (Some(id.clone()), output.kind());
                self.insert_after(path, Output { at: event.at, duration: None, id, kind });
            }
            EventKind::LoopMessage { text, files, from, .. } => {
                let (text, engine, files) = (text.clone(), *from != Speaker::Person, files.clone());
                self.push(event, None, OutputKind::Message { text, engine, files });
            }
            EventKind::LoopCompacted { keep, summary } => self.compact(*keep, summary.as_deref()),
            EventKind::LoopComplete { outcome, .. } => {
                self.prompt.outcome = Some(outcome.clone());
                self.waiting_below.clear();
                self.settle();
            }
            _ => {}
        }
    }

    /// Counts the tokens and the recorded cost of an answer.
    fn count(&mut self, metadata: &ResponseMetadata) {
        self.prompt.usage += metadata.usage;
        let Some(charge) = &metadata.cost else { return };
        match &mut self.prompt.cost {
            Some(cost) if cost.currency == charge.currency => cost.amount += charge.amount,
            // A run has one currency.
            Some(_) => {}
            cost => *cost = Some((**charge).clone()),
        }
    }

    /// Moves the ends of open questions for approvals.
    pub(super) fn postpone(&mut self, by: Duration) {
        for output in &mut self.prompt.output {
            if let OutputKind::Tool(tool) = &mut output.kind {
                tool.approval.iter_mut().for_each(|approval| approval.postpone(by));
            }
        }
    }

    /// Folds an approval event of a call.
    pub(super) fn approval(&mut self, path: &Path, event: &Event) {
        if let Some(tool) = self.tool(path) {
            Approval::follow(&mut tool.approval, event);
            tool.edited = tool.approval.as_deref().and_then(Approval::edited).cloned();
        }
    }

    /// Returns the position after the calls of the last answer.
    pub(super) fn batch_end(&self) -> usize {
        let outputs = &self.prompt.output;
        let answer = outputs.iter().rposition(begins_answer);
        let Some(begin) = answer.map(|answer| answer + 1) else { return outputs.len() };
        let is_call = |output: &&Output| matches!(output.kind, OutputKind::Tool(_)) || output.kind.is_aside();
        begin + outputs.iter().skip(begin).take_while(is_call).count()
    }

    /// Removes the answer before a position, if it has no text: its first call, which is inserted there, then contains it.
    fn take_answer_without_text(&mut self, before: usize) -> Option<Box<AnswerWithoutText>> {
        let place = before.checked_sub(1)?;
        let answer = self.prompt.output.get(place)?.answer_without_text()?;
        self.prompt.output.remove(place);
        Some(Box::new(answer))
    }

    /// Inserts a side output after its tool's entry and earlier side outputs.
    pub(super) fn insert_after(&mut self, path: &Path, output: Output) {
        if let Some((tool, aside)) = self.place(path) {
            self.prompt.output.insert(tool + 1 + aside, output);
        }
    }

    /// Finds a tool's entry and the number of its side outputs.
    pub(super) fn place(&self, path: &Path) -> Option<(usize, usize)> {
        let outputs = &self.prompt.output;
        let is_entry = |output: &Output| matches!(&output.kind, OutputKind::Tool(tool) if tool.path == *path);
        let tool = outputs.iter().rposition(is_entry)?;
        let after = outputs.iter().skip(tool + 1);
        let aside = after.take_while(|output| output.kind.is_aside());
        Some((tool, aside.count()))
    }

    /// The requester of the compaction has read the outputs since the last iteration, so they count, too.
    pub(super) fn compact(&mut self, keep: u64, summary: Option<&str>) {
        let next = self.next_messages();
        let before = dialogue(self.before()).messages();
        self.compacted = summary.is_some();
        match summary {
            Some(summary) => {
                let keep = usize::try_from(keep).unwrap_or(usize::MAX);
                let mut cut = next.len().saturating_sub(keep);
                while cut > 0 && matches!(next.get(cut), Some(Message::Tool { .. })) {
                    cut -= 1;
                }
                let (summary, kept) = (Message::user(summary), next.get(cut..).unwrap_or_default());
                if cut > before.len() {
                    self.from = self.latest(kept.len());
                }
                let stays = before.get(cut..).unwrap_or_default();
                self.standing = [std::slice::from_ref(&summary), stays].concat();
                self.transcript = Transcript::new(dialogue([&[summary], kept].concat()).messages());
            }
            None => {
                (self.standing, self.from) = (Vec::new(), 0);
                let all = self.before().chain(messages(&self.prompt.output));
                self.transcript = Transcript::new(dialogue(all).messages());
            }
        }
        self.projected = self.prompt.output.len();
    }

    /// Finds the output with which the latest messages begin.
    pub(super) fn latest(&self, kept: usize) -> usize {
        let output = &self.prompt.output;
        let begins = |index: &usize| {
            let is_message = |output: &Output| matches!(output.kind, OutputKind::Message { .. });
            output.get(*index).is_some_and(|output| begins_answer(output) || is_message(output))
        };
        let is_enough = |index: &usize| count(messages(output.get(*index..).unwrap_or_default())) >= kept;
        let begin = (self.from..output.len()).rev().filter(begins).find(is_enough);
        begin.filter(|_| kept > 0).unwrap_or(output.len())
    }
}

fn begins_answer(output: &Output) -> bool {
    output.kind.parts().is_some()
}

fn proposed(path: &Path, call: &ToolCall) -> ToolOutput {
    ToolOutput {
        path: path.clone(),
        tool: call.tool.clone(),
        arguments: Arc::clone(&call.arguments),
        edited: None,
        state: if call.gate.is_some() { CallState::Deferred } else { CallState::Queued },
        flags: call.flags,
        handed_back: false,
        approval: call.gate.as_ref().map(|gate| Box::new(Approval::of_gate(gate))),
        result: None,
        provider_id: call.provider_id.clone(),
        data: call.data.clone(),
        answer: None,
    }
}
