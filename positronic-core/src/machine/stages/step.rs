//! The fold of a step: its tries, its questions to models, and its recorded values.

use std::sync::Arc;

use serde_json::Value;

use crate::machine::apply::Reason;
use crate::machine::frames::{Asked, Intent, Stage, StepFrame, Values};
use crate::machine::state::RunState;
use crate::machine::tree::owner_of;
use crate::record::{
    ContentHash, Finish, Part, Path, Question, ResponseMetadata, Segment, StageKind, Timestamp, hash_json,
};

impl RunState {
    pub(in crate::machine) fn start_step(&mut self, path: &Path, attempt: u32) -> Result<(), Reason> {
        self.step(path, |step| match step.intent {
            Intent::Running => Err("the step is running".to_owned()),
            intent if !intent.can_start(step.attempt, attempt) => Err(format!("the next try is {}", step.attempt)),
            Intent::Ready | Intent::Doubtful | Intent::Backoff(_) => {
                step.intent = Intent::Running;
                step.attempt = attempt;
                step.held = false;
                Ok(())
            }
        })
    }

    pub(in crate::machine) fn retry_step(&mut self, path: &Path, attempt: u32, due: Timestamp) -> Result<(), Reason> {
        self.step(path, |step| {
            if step.attempt != attempt {
                return Err(format!("the step is at try {}", step.attempt));
            }
            step.attempt += 1;
            step.intent = Intent::Backoff(due);
            Ok(())
        })
    }

    pub(in crate::machine) fn block_step(&mut self, path: &Path) -> Result<(), Reason> {
        self.step(path, |step| {
            if step.intent != Intent::Running {
                return Err("the step is not running".to_owned());
            }
            (step.intent, step.held) = (Intent::Ready, true);
            Ok(())
        })
    }

    pub(in crate::machine) fn record_step_value(
        &mut self,
        path: &Path,
        name: &str,
        value: &Arc<Value>,
    ) -> Result<(), Reason> {
        self.running_step(path, |step| record_value(&mut step.values, name, value))
    }

    pub(in crate::machine) fn ask(&mut self, path: &Path, question: &Question) -> Result<(), Reason> {
        let hash = question_hash(question);
        self.step_of_question(path, |step, index| {
            match step.asked.get(index) {
                // It is sent again, since the answer was lost.
                Some(asked) if asked.answer.is_none() && asked.hash == hash => {}
                None if index == step.asked.len() => {
                    step.asked.push(Asked { hash, answer: None, finish: Finish::default() });
                }
                _ => return Err(format!("the step's next question is {}", step.asked.len())),
            }
            Ok(())
        })
    }

    pub(in crate::machine) fn answer(
        &mut self,
        path: &Path,
        parts: &Arc<[Part]>,
        metadata: &ResponseMetadata,
    ) -> Result<(), Reason> {
        self.step_of_question(path, |step, index| {
            step.asked.get_mut(index).ok_or("no such question is open")?.take(parts, metadata);
            Ok(())
        })
    }

    fn step(&mut self, path: &Path, f: impl FnOnce(&mut StepFrame) -> Result<(), Reason>) -> Result<(), Reason> {
        let Some(Segment::Stage(name)) = path.last() else { return Err("this is not the path of a stage".to_owned()) };
        let owner = owner_of(path).unwrap_or_default();
        let brain = self.brain_mut(owner, |_| ()).ok_or("the brain around it is not open")?;
        if !brain.is_at(name, StageKind::Step) {
            return Err("the brain is not at this step".to_owned());
        }
        match &mut brain.stage {
            Stage::Step(step) => f(step),
            Stage::Ready => {
                let mut step = StepFrame {
                    attempt: 0,
                    intent: Intent::Ready,
                    asked: Vec::new(),
                    values: Values::new(),
                    held: false,
                };
                f(&mut step)?;
                brain.stage = Stage::Step(step);
                Ok(())
            }
            Stage::Loop(_) | Stage::Brain(_) | Stage::Failed(_) => Err("the stage is not a step".to_owned()),
        }
    }

    pub(in crate::machine) fn is_question(&self, path: &Path) -> bool {
        self.owner(path).is_some_and(|brain| matches!(brain.stage, Stage::Step(_)))
    }

    fn step_of_question(
        &mut self,
        path: &Path,
        f: impl FnOnce(&mut StepFrame, usize) -> Result<(), Reason>,
    ) -> Result<(), Reason> {
        let index = question_index(path)?;
        let stage = path.parent().ok_or("this is not the path of a question")?;
        self.running_step(&stage, |step| f(step, index))
    }

    fn running_step(
        &mut self,
        path: &Path,
        f: impl FnOnce(&mut StepFrame) -> Result<(), Reason>,
    ) -> Result<(), Reason> {
        self.step(path, |step| match step.intent {
            Intent::Running => f(step),
            // Its parallel questions are paid for, and their answers are used when it reruns.
            Intent::Ready if step.held => f(step),
            Intent::Ready | Intent::Doubtful | Intent::Backoff(_) => Err("the step is not running".to_owned()),
        })
    }
}

/// Records a computed value.
pub(in crate::machine) fn record_value(values: &mut Values, name: &str, value: &Arc<Value>) -> Result<(), Reason> {
    if values.contains_key(name) {
        return Err(format!("the value `{name}` is already recorded"));
    }
    values.insert(name.to_owned(), Arc::clone(value));
    Ok(())
}

/// Hashes a question, so that a rerun of the step finds its answer.
pub(in crate::machine) fn question_hash(question: &Question) -> ContentHash {
    hash_json(&serde_json::to_value(question).unwrap_or_default())
}

fn question_index(path: &Path) -> Result<usize, Reason> {
    match path.last() {
        Some(Segment::Iteration(index)) => Ok(usize::try_from(index).unwrap_or(usize::MAX)),
        _ => Err("this is not the path of a question".to_owned()),
    }
}
