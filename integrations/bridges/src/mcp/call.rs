//! A call of a brain: its run is followed until it has a result, or until only a person can continue it.
//!
//! ```text
//! tasks declared      ──▶ a task, unless the run is over at once, which the client reads, answers and cancels
//! 2026-07-28, forms   ──▶ `input_required` with a form for each question; the client calls again with the answers
//! before that, forms  ──▶ a form for each question while the call is open; a decision made elsewhere closes it
//! no forms            ──▶ a text that says how a person decides
//! ```

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _};
use positronic_core::record::{RunId, RunSummary, Seq, Status};
use positronic_core::runner::RunUpdate;
use positronic_server::extension::{NewRun, OpenQuestion, RequestContext as CallerContext};
use positronic_server::{Problem, ProblemType, REDACTED};
use rmcp::ErrorData;
use rmcp::model::{
    CallToolResponse, CallToolResult, ClientCapabilities, CreateTaskResult, InputRequiredResult, InputResponses,
    ProgressNotificationParam, ProtocolVersion,
};
use rmcp::service::{RequestContext, RoleServer};
use tokio::time::{Instant, interval_at, sleep_until};

use super::answers::{FormAnswer, FormAnswers, answer, answers};
use super::calls_in_flight::ToolServer;
use super::misfits::Misfits;
use super::outcome::{error_of, not_fitting, not_recorded, outcome, refused, still_open, stopping, waits};
use super::question::{form, is_answerable, request};
use super::task;
use super::tools::BrainTool;
use super::update::{CallUpdate, CallUpdates, EndedLeg};
use crate::decisions::Decisions;
use crate::leg::{Leg, LegEnd};
use crate::thread::question;

/// How long a call waits for its run by default. Most clients give up after 60 seconds.
pub(crate) const LONGEST_CALL: Duration = Duration::from_secs(50);

/// How often a client hears that its call is alive, if it wants to hear of progress.
const ALIVE: Duration = Duration::from_secs(10);

/// How long a run may last that is not shown as a task.
const SHORT: Duration = Duration::from_millis(250);

/// How many answers that do not fit their forms a call takes: after them it ends, with a text that says how the questions are answered.
const MAX_MISFITS: usize = 3;

/// The name of the run's id in `_meta` of an answer.
const RUN: &str = "positronic/run";

/// A call.
pub(super) struct BrainCall<'a> {
    pub(super) server: &'a ToolServer,
    pub(super) caller: &'a Arc<CallerContext>,
    pub(super) context: RequestContext<RoleServer>,
}

/// What a client shows to its user.
enum Forms {
    None,
    /// Requests of the server to the client, while the call is open.
    Requested,
    /// Parts of an answer, after which the client calls again.
    Returned,
}

impl BrainCall<'_> {
    /// Starts the run, and follows it.
    pub(super) async fn begun(&self, tool: &BrainTool, new: NewRun) -> Result<CallToolResponse, ErrorData> {
        let brain = new.brain.clone();
        let run = match self.caller.start(new).await {
            Ok(run) => run,
            Err(problem) => return Ok(refused(&tool.placed(problem)).into()),
        };
        self.server.began(&self.context.id, &run);
        if self.capabilities().supports_tasks() {
            return self.as_task(&run, &brain).await.map_err(|problem| error_of(&problem));
        }
        self.follow(self.server.shared.from(run, Seq(0)), &brain, Misfits::default()).await
    }

    /// Returns the result of a short run, and any other run as a task.
    async fn as_task(&self, run: &RunId, brain: &str) -> Result<CallToolResponse, Problem> {
        let leg = self.server.shared.from(run.clone(), Seq(0));
        let over = self.over(leg, &mut Progress::default(), SHORT).await?;
        if let Some(over) = over.filter(|over| !matches!(over.end, LegEnd::Waiting(_) | LegEnd::Paused)) {
            let rule = self.server.rule(self.caller, brain)?;
            return Ok(outcome(&self.caller.viewer()?, self.program(), run, &over, &rule).into());
        }
        Ok(CreateTaskResult::new(task::task(&self.caller.run_row(run).await?)).into())
    }

    /// Sends the answers of a client that calls again, and follows the run of its first call.
    pub(super) async fn resumed(
        &self,
        state: &str,
        brain: &str,
        responses: &InputResponses,
    ) -> Result<CallToolResponse, ErrorData> {
        let (run, mut misfits) = Misfits::of(state);
        let run = &run;
        // Whose run it is counts, and not who holds its id.
        let row = self.caller.run_row(run).await.map_err(|problem| error_of(&problem))?;
        if *row.brain != *brain {
            return Err(ErrorData::invalid_params("`requestState` belongs to another tool", None));
        }
        self.server.began(&self.context.id, run);
        let leg = self.server.shared.attach(&row);
        match answers(self.caller, run, responses).await {
            Ok(sent) if !sent.misfits.is_empty() => {
                if sent.decided > 0 {
                    misfits = Misfits::default();
                }
                sent.misfits.into_iter().for_each(|(question, reason)| misfits.add(question, reason));
                self.follow(leg, brain, misfits).await
            }
            Ok(FormAnswers { decided: 0, .. }) if !responses.is_empty() => match self.unanswered(&row).await {
                Ok(Some(waits)) => Ok(of_run(waits, run)),
                Ok(None) => self.follow(leg, brain, misfits).await,
                Err(problem) => Ok(refused(&problem).into()),
            },
            Ok(_) => self.follow(leg, brain, misfits).await,
            Err(problem) if problem.kind() == ProblemType::AlreadyDecided => {
                Ok(of_run(not_recorded(run, &problem).into(), run))
            }
            Err(problem) => Ok(refused(&problem).into()),
        }
    }

    /// Says what a run waits for whose questions the person has closed; `None` if it waits for nothing.
    async fn unanswered(&self, row: &RunSummary) -> Result<Option<CallToolResponse>, Problem> {
        let (questions, viewer) = (task::questions(self.caller, &row.run).await?, self.caller.viewer()?);
        let waits = || waits(&viewer, self.program(), &row.run, &questions).into();
        Ok((!questions.is_empty()).then(waits))
    }

    /// Says what a run does that outlasts the call.
    async fn outlasted(&self, run: &RunId) -> Result<CallToolResult, Problem> {
        if self.caller.viewer()?.stopping().now_or_never().is_some() {
            return Ok(stopping(run));
        }
        let questions = task::questions(self.caller, run).await?;
        if questions.is_empty() {
            return Ok(still_open(&self.caller.run_row(run).await?));
        }
        Ok(waits(&self.caller.viewer()?, self.program(), run, &questions))
    }

    /// Returns the program in commands that clients are shown.
    fn program(&self) -> &str {
        &self.server.shared.program
    }

    async fn follow(&self, leg: Leg, brain: &str, misfits: Misfits) -> Result<CallToolResponse, ErrorData> {
        let run = leg.run.clone();
        let answer = self.followed(leg, brain, misfits).await.unwrap_or_else(|problem| Ok(refused(&problem).into()));
        answer.map(|answer| of_run(answer, &run))
    }

    async fn followed(
        &self,
        mut leg: Leg,
        brain: &str,
        mut misfits: Misfits,
    ) -> Result<Result<CallToolResponse, ErrorData>, Problem> {
        let (run, viewer) = (leg.run.clone(), self.caller.viewer()?);
        let rule = self.server.rule(self.caller, brain)?;
        let mut progress = Progress::default();
        // A client that goes away finds the run by its id, and may cancel it.
        self.report(&mut progress, format!("run {run}")).await;
        loop {
            let Some(over) = self.over(leg, &mut progress, self.server.longest_call).await? else {
                return Ok(Ok(self.outlasted(&run).await?.into()));
            };
            let questions: Vec<_> = match &over.end {
                LegEnd::Waiting(questions) => questions.iter().filter(|open| is_answerable(open)).collect(),
                _ => Vec::new(),
            };
            match self.forms() {
                Forms::Requested | Forms::Returned if misfits.count >= MAX_MISFITS => {
                    let mut result = outcome(&viewer, self.program(), &run, &over, &rule);
                    let reasons = questions.iter().filter_map(|open| misfits.reasons.get(&open.id));
                    result.content.extend(reasons.map(not_fitting));
                    return Ok(Ok(result.into()));
                }
                Forms::Requested if !questions.is_empty() => {
                    let row = self.caller.run_row(&run).await?;
                    if !self.ask(&run, &questions, &mut misfits).await? {
                        return Ok(Ok(outcome(&viewer, self.program(), &run, &over, &rule).into()));
                    }
                    leg = self.server.shared.attach(&row);
                }
                Forms::Returned if !questions.is_empty() => {
                    let form = |open: &OpenQuestion| request(form(&viewer, open, misfits.reasons.get(&open.id)));
                    let forms = questions.iter().map(|open| (open.id.clone(), form(open))).collect();
                    return Ok(Ok(InputRequiredResult::new(Some(forms), Some(misfits.state(&run))).into()));
                }
                Forms::None | Forms::Requested | Forms::Returned => {
                    return Ok(Ok(outcome(&viewer, self.program(), &run, &over, &rule).into()));
                }
            }
        }
    }

    /// Follows a leg to its end; `None` if the call has lasted too long, or its client no longer wants it.
    async fn over(&self, leg: Leg, progress: &mut Progress, longest: Duration) -> Result<Option<EndedLeg>, Problem> {
        let run = leg.run.clone();
        let mut updates = pin!(leg.open(self.caller.viewer()?, None, CallUpdates::default()).await?);
        let longest = Instant::now() + longest;
        let mut alive = interval_at(Instant::now() + ALIVE, ALIVE);
        loop {
            tokio::select! {
                update = updates.next() => match update {
                    Some(CallUpdate::Over(over)) => return Ok(Some(over)),
                    Some(CallUpdate::Progress(text)) => self.report(progress, text).await,
                    None => return Ok(None),
                },
                _ = alive.tick() => self.report(progress, alive_text(&self.caller.run_row(&run).await?)).await,
                () = sleep_until(longest) => return Ok(None),
                () = self.context.ct.cancelled() => return Ok(None),
            }
        }
    }

    /// Asks the person at the client, and returns whether to go on: something was decided, or is asked again.
    async fn ask(&self, run: &RunId, questions: &[&OpenQuestion], misfits: &mut Misfits) -> Result<bool, Problem> {
        let (viewer, mut goes_on) = (self.caller.viewer()?, false);
        let mut decisions = Decisions::new(self.caller);
        for open in questions {
            let row = self.caller.run_row(run).await?;
            if question(self.caller, &row, &open.id).await?.is_none() {
                goes_on = true;
                continue;
            }
            let request = self.context.peer.create_elicitation(form(&viewer, open, misfits.reasons.get(&open.id)));
            let given = tokio::select! {
                given = request => given,
                closed = self.closed(run, &open.id) => {
                    closed?;
                    goes_on = true;
                    continue;
                }
                () = self.context.ct.cancelled() => return Ok(false),
                () = viewer.stopping() => return Ok(false),
            };
            // A client that cannot show the form leaves the question to others.
            let Ok(given) = given else { continue };
            let action = serde_json::to_value(&given.action).unwrap_or_default();
            let content = given.content.unwrap_or_default();
            let action = action.as_str().unwrap_or_default();
            match answer(&mut decisions, &row, &open.id, action, &content).await? {
                FormAnswer::Decided => {
                    *misfits = Misfits::default();
                    goes_on = true;
                }
                FormAnswer::Closed => {}
                FormAnswer::Misfit(problem) => {
                    misfits.add(open.id.clone(), problem);
                    goes_on = true;
                }
            }
        }
        Ok(goes_on)
    }

    /// Waits until a question is no longer open.
    async fn closed(&self, run: &RunId, id: &str) -> Result<(), Problem> {
        let row = self.caller.run_row(run).await?;
        // It may have closed before the row was read.
        if question(self.caller, &row, id).await?.is_none() {
            return Ok(());
        }
        let mut updates = self.caller.client().follow(run, row.next);
        while let Some(update) = updates.next().await {
            if matches!(update?, RunUpdate::Event(_)) && question(self.caller, &row, id).await?.is_none() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Reports progress to a client that wants to hear of it.
    async fn report(&self, progress: &mut Progress, message: String) {
        if let Some(token) = self.context.meta.get_progress_token() {
            let message = self.caller.viewer().map_or(None, |viewer| viewer.redacted(&message));
            let message = message.unwrap_or_else(|| REDACTED.to_owned());
            progress.0 += 1.0;
            let progress = ProgressNotificationParam::new(token, progress.0).with_message(message);
            tokio::select! {
                _ = self.context.peer.notify_progress(progress) => {}
                // A server that stops sends no notification any more, and would wait here in place of answering the call.
                () = self.context.ct.cancelled() => {}
            }
        }
    }

    fn capabilities(&self) -> ClientCapabilities {
        self.context.client_capabilities().unwrap_or_default()
    }

    fn forms(&self) -> Forms {
        let version = self.context.protocol_version();
        let shows = self.capabilities().elicitation.is_some_and(|shown| shown.form.is_some() || shown.url.is_none());
        match version {
            _ if !shows => Forms::None,
            Some(version) if version.as_str() >= ProtocolVersion::V_2026_07_28.as_str() => Forms::Returned,
            _ => Forms::Requested,
        }
    }
}

/// Adds the run to an answer, for programs.
fn of_run(mut answer: CallToolResponse, run: &RunId) -> CallToolResponse {
    let meta = match &mut answer {
        CallToolResponse::Complete(result) => &mut result.meta,
        CallToolResponse::InputRequired(result) => &mut result.meta,
        _ => return answer,
    };
    meta.get_or_insert_default().insert(RUN.to_owned(), run.as_str().into());
    answer
}

/// Says that a run is alive, and what it waits for.
fn alive_text(row: &RunSummary) -> String {
    match (row.status, &row.why) {
        (Status::Waiting, Some(why)) => why.clone(),
        (Status::Waiting, None) => "the run waits".to_owned(),
        _ => "the run continues".to_owned(),
    }
}

/// How often a client has heard of progress.
#[derive(Default)]
struct Progress(f64);
