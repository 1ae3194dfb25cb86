//! What code asks of its worker while it runs: a model's answer, or to keep a value.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::oneshot;

use super::async_effects::{Asker, Outcome, Report, Turn, ask, took};
use super::shared::Stop;
use super::worker::Worker;
use crate::error::{Error, Result};
use crate::machine::{LoopPhase, Stage, Verdict, keeps_values, may_ask, question_hash};
use crate::projection::question_request;
use crate::record::{
    EventKind, ModelError, ModelErrorKind, ModelResponse, NewEvent, Path, Question, ResponseMetadata, Segment,
};

impl Worker {
    /// Records a value that a step or a tool has computed once, and answers with it; with the one that was recorded
    /// before, where a try that was given up has computed it, too.
    pub(super) async fn keep_value(
        &mut self,
        path: &Path,
        name: String,
        value: Arc<Value>,
        reply: oneshot::Sender<Result<Arc<Value>>>,
    ) -> Result<(), Stop> {
        let known = self.shared.state().value(path, &name);
        let kept = if let Some(known) = known {
            Ok(known)
        } else {
            let runs = keeps_values(&self.shared.state(), path);
            let recorded = EventKind::ValueRecorded { name, value: Arc::clone(&value) };
            // While it runs, nobody else can do anything with it but end it.
            match runs && self.append_outcome(path, vec![NewEvent::new(path.clone(), recorded)]).await? {
                true => Ok(value),
                false => Err(Error::new(format!("`{path}` does not run now, so nothing is recorded for it"))),
            }
        };
        // Whoever gave up waiting does not want to know.
        _ = reply.send(kept);
        Ok(())
    }

    /// Answers the question of a step, or of a plugin that prepares an iteration: from the record if it was answered before,
    /// else by asking.
    pub(super) async fn question(
        &mut self,
        asks: Path,
        question: Question,
        mut reply: oneshot::Sender<Result<ModelResponse>>,
        turn: Option<Turn>,
    ) -> Result<(), Stop> {
        if !self.is_in_time(&asks) {
            _ = reply.send(Err(Error::new(
                "a plugin asks a model while it prepares an iteration, and this iteration has begun",
            )));
            return Ok(());
        }
        let hash = question_hash(&question);
        let asked = match self.shared.state().owner(&asks).map(|brain| &brain.stage) {
            Some(Stage::Step(frame)) => frame.asked.clone(),
            Some(Stage::Loop(frame)) => frame.asked.clone(),
            _ => Vec::new(),
        };
        // The questions of an iteration have no numbers: they are asked one after the other.
        let numbered = |index: usize| match asks.last() {
            Some(Segment::Iteration(_)) => asks.clone(),
            _ => asks.iteration(u32::try_from(index).unwrap_or(u32::MAX)),
        };
        let used = self.answered.get(&asks);
        let fits = |index: &usize| {
            asked.get(*index).is_some_and(|asked| asked.hash == hash) && used.is_none_or(|used| !used.contains(index))
        };
        let answer_of = |index: usize| {
            let asked = asked.get(index)?;
            let metadata = ResponseMetadata { finish: asked.finish.clone(), ..ResponseMetadata::default() };
            Some(ModelResponse { parts: asked.answer.as_ref()?.to_vec(), calls: Vec::new(), metadata })
        };
        let known = (0..asked.len()).filter(fits).find_map(|index| Some((index, answer_of(index)?)));
        // What was asked by a worker that is gone is asked again as it was.
        let unanswered = || {
            (0..asked.len()).filter(fits).find(|index| answer_of(*index).is_none() && !self.flies(&numbered(*index)))
        };
        let index = known.as_ref().map(|(index, _)| *index).or_else(unanswered).unwrap_or(asked.len());
        let path = numbered(index);
        self.answered.entry(asks.clone()).or_default().insert(index);
        if let Some((_, answer)) = known {
            _ = reply.send(Ok(answer));
            return Ok(());
        }
        let verdict = may_ask(&self.shared.state(), &asks);
        match verdict {
            Verdict::Allowed => {}
            Verdict::Blocked => return self.hold(asks).await,
            Verdict::Refused(reason) => {
                _ = reply.send(Err(Error::new(reason)));
                return Ok(());
            }
        }
        let model = Arc::clone(self.shared.runner.model_of(question.settings.tier));
        let request = question_request(path.clone(), 0, &question);
        let intent = EventKind::LoopModelCall { attempt: 0, model: model.name(), question: Some(question) };
        if !self.append_outcome(&asks, vec![NewEvent::new(path.clone(), intent)]).await? {
            return Ok(());
        }
        let shared = Arc::clone(&self.shared);
        let reports = self.reports.clone();
        // A plugin's question is not what the iteration says.
        let after = (path != asks).then(|| shared.state().next);
        self.launch(path.clone(), false, async move {
            let started = shared.now();
            let retry = shared.runner.retry;
            let mut request = request;
            let asking = async {
                loop {
                    let result = ask(&shared, &*model, &request, after, |show| show).await;
                    let Err(error) = &result else { break result };
                    let pause = retry.delay(error, request.attempt, shared.runner.ids.jitter());
                    let Some(pause) = pause else { break result };
                    let (attempt, due) = (request.attempt, shared.now().after(pause));
                    // The worker is gone when the run was stopped; then nobody wants to know.
                    let retry = Report::Retry { path: path.clone(), attempt, error: error.clone(), due };
                    _ = reports.send(Box::new(retry));
                    tokio::time::sleep(pause).await;
                    request.attempt += 1;
                }
            };
            let result = if turn.is_some() {
                tokio::select! {
                    result = asking => result,
                    // The next question of the iteration waits for this one.
                    () = reply.closed() => Err(ModelError::new(ModelErrorKind::BadRequest, "nobody waits for the answer")),
                }
            } else {
                asking.await
            };
            Outcome::Question { result, took: took(&shared, started), asker: Asker { reply, turn } }
        });
        Ok(())
    }

    /// Says whether a question can be asked now: a step's at any time, a plugin's until its iteration begins.
    fn is_in_time(&self, asks: &Path) -> bool {
        let Some(Segment::Iteration(iteration)) = asks.last() else { return true };
        self.shared
            .state()
            .loop_at(asks)
            .is_some_and(|frame| frame.iteration == iteration && matches!(frame.phase, LoopPhase::Prepare))
    }

    /// Stops whoever asks a model that a limit does not allow: a step, which runs again once there is more, or an iteration that
    /// is being prepared, which the limit ends or has prepared anew.
    async fn hold(&mut self, asks: Path) -> Result<(), Stop> {
        let flight = match asks.last() {
            Some(Segment::Iteration(_)) => asks.parent().unwrap_or_default(),
            _ => {
                self.append_outcome(&asks, vec![NewEvent::new(asks.clone(), EventKind::StepBlocked {})]).await?;
                asks.clone()
            }
        };
        self.drop_flight(&flight);
        self.answered.remove(&asks);
        Ok(())
    }

    pub(super) async fn record_question(
        &mut self,
        path: &Path,
        result: Result<ModelResponse, ModelError>,
        Asker { reply, turn }: Asker,
        duration: u64,
    ) -> Result<(), Stop> {
        let answer = match result {
            Ok(response) => {
                let (parts, metadata) = (response.parts.as_slice().into(), self.charged(response.metadata.clone()));
                let kind = EventKind::LoopModelResult { parts, metadata, duration };
                self.append_outcome(path, vec![NewEvent::new(path.clone(), kind)]).await?;
                Ok(response)
            }
            Err(error) => Err(Error::new(format!("the model failed: {error}"))),
        };
        // A step that gave up waiting does not want the answer any more.
        _ = reply.send(answer);
        drop(turn);
        Ok(())
    }
}
