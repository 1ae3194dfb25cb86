//! Crashes at any append: another process continues the run from the stored log.
//!
//! A [`Tale`] is a brain with its model and its person. It is played once undisturbed. Every append meanwhile is a
//! moment at which the process could have died, with its effects so far: either the append was not written although
//! its outcome has happened, or it was written, up to the end of one of its transitions, and the effects that it announces have not
//! begun. Then the tale continues from each of these moments.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use positronic_core::definition::BrainDefinition;
use positronic_core::machine::RunState;
use positronic_core::model::Model as _;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::projection::timeline::Timeline;
use positronic_core::projection::transcript;
use positronic_core::record::{
    Event, EventKind, Message, ModelRequest, ModelResponse, OutputFormat, Part, Path, Pending, PendingKind,
    ProposedCall, RunId, Seq, Signal, SignalId, SignalKind, Start, Timestamp, ToolResult,
};
use positronic_core::runner::{Clock, Ids, ResumeError, RunHandle, Runner, Settled};
use positronic_core::store::{EventStore, MemoryStore};
use positronic_core::testing::{Lockstep as _, TestClock};
use positronic_store_suite::FaultyStore;
use serde_json::Value;

/// A clock that starts at a given time, by default that of [`TestClock`].
#[derive(Debug, Clone)]
pub(crate) struct Later(pub(crate) Timestamp, TestClock);

impl Later {
    pub(crate) fn than(at: Timestamp) -> Self {
        Self(at, TestClock::default())
    }
}

impl Clock for Later {
    fn now(&self) -> Timestamp {
        self.0.after(self.1.now().since(TestClock::BEGIN))
    }
}

/// Generates ids that are unique across processes.
#[derive(Debug)]
pub(crate) struct OwnIds(String, std::sync::atomic::AtomicU64);

impl OwnIds {
    pub(crate) fn of(process: impl Into<String>) -> Self {
        Self(process.into(), std::sync::atomic::AtomicU64::new(0))
    }
}

impl Ids for OwnIds {
    fn run(&self) -> RunId {
        RunId::from(self.signal().as_str())
    }

    fn signal(&self) -> SignalId {
        let count = self.1.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        SignalId::from(format!("{}-{count}", self.0))
    }

    fn jitter(&self) -> f64 {
        0.0
    }
}

/// The outside world's record of effects, in order. It outlives processes; clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger(Arc<Mutex<Vec<(String, String)>>>);

impl Ledger {
    /// Records an effect each time.
    pub(crate) fn act(&self, key: &str, what: &str) {
        self.0.lock().unwrap().push((key.to_owned(), what.to_owned()));
    }

    /// Records an effect unless this key is already recorded.
    pub(crate) fn act_once(&self, key: &str, what: &str) {
        let mut deeds = self.0.lock().unwrap();
        if !deeds.iter().any(|(known, _)| known == key) {
            deeds.push((key.to_owned(), what.to_owned()));
        }
    }

    /// Returns the effects with their keys.
    pub(crate) fn deeds(&self) -> Vec<(String, String)> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn is_now(&self, deeds: &[(String, String)]) {
        *self.0.lock().unwrap() = deeds.to_vec();
    }
}

type Says = Arc<dyn Fn(&ModelRequest) -> Reply + Send + Sync>;
type Answers = Arc<dyn Fn(&Pending) -> Vec<SignalKind> + Send + Sync>;

/// A brain with its model and its person.
#[derive(Clone)]
pub(crate) struct Tale {
    pub(crate) definition: Arc<BrainDefinition>,
    pub(crate) options: Value,
    pub(crate) ledger: Ledger,
    /// Answers a request, as a function of the request only.
    pub(crate) says: Says,
    /// The signal for a pending call; `None` lets it expire.
    pub(crate) answers: Answers,
}

/// A tale after an undisturbed play.
pub(crate) struct Baseline {
    pub(crate) run: RunId,
    pub(crate) log: Vec<Arc<Event>>,
    pub(crate) deaths: Vec<Death>,
    pub(crate) end: End,
    requests: BTreeSet<(String, String)>,
}

/// A moment at which a process can die: the stored events and the effects so far.
#[derive(Debug, PartialEq)]
pub(crate) struct Death {
    pub(crate) until: usize,
    pub(crate) deeds: Vec<(String, String)>,
}

/// The end of a run, with its effects in the order of their keys.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct End {
    pub(crate) transcript: String,
    pub(crate) state: Value,
    pub(crate) deeds: Vec<(String, String)>,
}

impl Tale {
    pub(crate) fn runner(
        &self,
        store: impl EventStore,
        process: &str,
        at: Timestamp,
        sent: &Arc<Mutex<Vec<ModelRequest>>>,
    ) -> Runner {
        let (says, sent) = (Arc::clone(&self.says), Arc::clone(sent));
        let model = ScriptedModel::from_fn(move |request| {
            sent.lock().unwrap().push(request.clone());
            says(request)
        });
        Runner::new(model)
            .store(store)
            .clock(Later::than(at))
            .ids(OwnIds::of(process))
            .lockstep(true)
            .linger(Duration::MAX)
            .definition(Arc::clone(&self.definition))
    }

    /// Plays the tale to its end, and records every moment at which its process could have died.
    pub(crate) async fn undisturbed(&self) -> Baseline {
        self.ledger.is_now(&[]);
        let (deaths, sent) = (Arc::new(Mutex::new(Vec::new())), Arc::default());
        let (noted, ledger) = (Arc::clone(&deaths), self.ledger.clone());
        let store = FaultyStore::new(MemoryStore::new(), move |_, append| {
            let mut noted = noted.lock().unwrap();
            let until = append.expected.index();
            // Outcomes that are appended together here arrive one by one elsewhere.
            let ends = (until + 1..).zip(&append.events).filter(|(_, event)| !event.with_next).map(|(end, _)| end);
            for until in [until].into_iter().chain(ends) {
                let death = Death { until, deeds: ledger.deeds() };
                if until > 0 && !noted.contains(&death) {
                    noted.push(death);
                }
            }
            None
        });
        let runner = self.runner(store, "first", TestClock::BEGIN, &sent);
        let start = Start { id: Some(SignalId::new("run")), ..Start::default() };
        let run = runner.start_definition(Arc::clone(&self.definition), self.options.clone(), start).await.unwrap();
        self.drive(&run).await;
        let end = self.end(&run).await;
        let log = run.events(Seq(0)).await.unwrap();
        let deaths = std::mem::take(&mut *deaths.lock().unwrap());
        Baseline { run: run.id().clone(), log, deaths, end, requests: wires(&sent.lock().unwrap()) }
    }

    /// Continues after a crash, in another process over a store with the events written so far.
    /// Checks the properties of every log, and that every request equals that of the undisturbed run unless
    /// something was interrupted. Returns `None` if the run had ended before the crash.
    pub(crate) async fn after(&self, baseline: &Baseline, death: &Death) -> Option<(End, Vec<Arc<Event>>)> {
        self.ledger.is_now(&death.deeds);
        let sent = Arc::default();
        let prefix = &baseline.log[..death.until];
        let at = prefix.last().map_or(TestClock::BEGIN, |event| event.at);
        let store = MemoryStore::new();
        let runner = self.runner(store, "second", at, &sent);
        runner.client().import(&baseline.run, prefix).await.unwrap();
        let resumed = tokio::time::timeout(super::PATIENCE, runner.resume(&baseline.run)).await;
        let run = match resumed.expect("it does not come to resume the run") {
            Ok(run) => run,
            Err(ResumeError::Over { .. }) => {
                assert!(RunState::replay(prefix.iter().map(|event| &**event)).unwrap().has_ended());
                return None;
            }
            Err(error) => panic!("{error} after {}", death.until),
        };
        self.drive(&run).await;
        let end = self.end(&run).await;
        let log = run.events(Seq(0)).await.unwrap();
        assert_eq!(log[..death.until], *prefix, "written events remain");
        let replayed = RunState::replay(log.iter().map(|event| &**event)).unwrap();
        assert_eq!(serde_json::to_string(&replayed).unwrap(), serde_json::to_string(&run.state()).unwrap());
        super::checks::check_order(&log, true);
        // It folds the log for each of its requests, which is slow.
        if death.until.is_multiple_of(5) {
            super::checks::check_requests(&log, &sent.lock().unwrap());
        }
        if interrupted(&log).is_empty() {
            for sent in wires(&sent.lock().unwrap()) {
                let is_known = baseline.requests.contains(&sent);
                assert!(is_known, "the request at {} after {}: {}", sent.0, death.until, sent.1);
            }
        }
        Some((end, log))
    }

    pub(crate) async fn drive(&self, run: &RunHandle<Value>) {
        for _ in 0..1000 {
            match super::settled(run).await {
                Settled::Waiting(pending) => self.answer(run, &pending[0]).await,
                Settled::Paused => self.send(run, "resume", SignalKind::Resume).await,
                Settled::Completed(_) => return,
                other => panic!("{other:?}"),
            }
        }
        panic!("the tale does not end");
    }

    pub(crate) async fn answer(&self, run: &RunHandle<Value>, pending: &Pending) {
        let kinds = (self.answers)(pending);
        if kinds.is_empty() {
            tokio::time::sleep(Duration::from_secs(3600)).await;
        }
        for (index, kind) in kinds.into_iter().enumerate() {
            // A loop may ask for more each time it reaches a limit.
            let about = match &pending.kind {
                PendingKind::Budget(_) => format!("{} {} {index}", pending.call, pending.since),
                PendingKind::Approval { .. } | PendingKind::Answer { .. } => format!("{} {index}", pending.call),
            };
            self.send(run, &about, kind).await;
        }
    }

    /// Sends a signal with an id derived from its subject: it is the same signal in every process.
    pub(crate) async fn send(&self, run: &RunHandle<Value>, about: &str, kind: SignalKind) {
        let id = match &kind {
            // A run may be paused repeatedly.
            SignalKind::Resume => SignalId::from(format!("resume {}", run.state().next)),
            _ => SignalId::from(about),
        };
        let actor = positronic_core::record::Actor::builder().by("ann").build();
        run.send(Signal { id, actor, kind }).await.unwrap();
    }

    pub(crate) async fn end(&self, run: &RunHandle<Value>) -> End {
        let log = run.events(Seq(0)).await.unwrap();
        let transcript = transcript(&Timeline::of(log.iter().map(|event| &**event)));
        // Concurrent effects end in any order.
        let mut deeds = self.ledger.deeds();
        deeds.sort();
        End { transcript, state: run.document(), deeds }
    }
}

fn wires(sent: &[ModelRequest]) -> BTreeSet<(String, String)> {
    let model = ScriptedModel::from_fn(|_| Reply::text(""));
    sent.iter().map(|request| (request.path.to_string(), model.wire(request))).collect()
}

/// Lists the kinds of events with their paths, one a line.
pub(crate) fn kinds(log: &[Arc<Event>]) -> String {
    let line = |event: &Arc<Event>| format!("{} {}", event.kind.name(), event.path).trim().to_owned();
    log.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Returns the text of a request's last message.
pub(crate) fn last_text(request: &ModelRequest) -> String {
    match request.messages.read().last().map(|entry| &entry.message) {
        Some(Message::User { text, .. } | Message::Tool { text, .. }) => text.clone(),
        Some(Message::Assistant { .. }) | None => String::new(),
    }
}

/// Returns the calls that were interrupted, with their arguments.
pub(crate) fn interrupted(log: &[Arc<Event>]) -> Vec<Path> {
    let results = log.iter().filter(|event| {
        matches!(&event.kind, EventKind::LoopToolResult { result: ToolResult::Interrupted { .. }, .. })
    });
    results.map(|event| event.path.clone()).collect()
}

/// Creates a model that answers as logged; beyond the log, it repeats its last answer.
pub(crate) fn as_in(log: &[Arc<Event>]) -> Says {
    let mut replies: BTreeMap<String, ModelResponse> = BTreeMap::new();
    // A plugin's question has the path of the prepared iteration.
    let mut questions: BTreeMap<String, ModelResponse> = BTreeMap::new();
    let mut asking = false;
    for event in log {
        match &event.kind {
            EventKind::LoopModelCall { question, .. } => asking = question.is_some(),
            EventKind::LoopModelResult { parts, metadata, .. } => {
                let response = ModelResponse { parts: parts.to_vec(), calls: Vec::new(), metadata: metadata.clone() };
                let replies = if asking { &mut questions } else { &mut replies };
                replies.insert(event.path.to_string(), response);
            }
            EventKind::LoopToolCall(call) => {
                let (loop_at, place) = event.path.as_str().rsplit_once('/').unwrap();
                let iteration = place.split_once('.').unwrap().0;
                replies.get_mut(&format!("{loop_at}/{iteration}")).unwrap().calls.push(ProposedCall {
                    provider_id: call.provider_id.clone(),
                    name: call.tool.clone(),
                    arguments: call.arguments.to_string(),
                    data: call.data.clone(),
                });
            }
            _ => {}
        }
    }
    Arc::new(move |request| {
        let (loop_at, iteration) = request.path.as_str().rsplit_once('/').unwrap();
        let mut iterations =
            (0..=iteration.parse::<u32>().unwrap()).rev().map(|iteration| format!("{loop_at}/{iteration}"));
        let is_question = request.tools.tools().is_empty();
        let known = iterations.find_map(|path| {
            let question = questions.get(&path).filter(|_| is_question);
            question.or_else(|| replies.get(&path))
        });
        let known = known.expect("the log has an answer for this loop").clone();
        let is_decided = matches!(request.settings.output, OutputFormat::JsonSchema { .. }) && !known.calls.is_empty();
        if is_decided { decision(&known) } else { Reply::response(known) }
    })
}

/// Rebuilds the structured action that an answer was parsed from.
fn decision(known: &ModelResponse) -> Reply {
    let reason = known.parts.iter().find_map(|part| match part {
        Part::Reasoning { text, .. } => Some(text.as_str()),
        _ => None,
    });
    let call = &known.calls[0];
    let input = serde_json::from_str(&call.arguments).unwrap();
    Reply::action(reason.unwrap_or_default(), &call.name, input)
}

/// Creates a person who answers as logged.
pub(crate) fn answers_as_in(log: &[Arc<Event>]) -> Answers {
    let mut answers: BTreeMap<Path, SignalKind> = BTreeMap::new();
    for event in log {
        let call = event.path.clone();
        let kind = match &event.kind {
            EventKind::LoopApprovalDecided { decision, arguments, reason, .. } => match decision {
                positronic_core::record::Decision::Approved => {
                    SignalKind::Approve { call, arguments: arguments.clone() }
                }
                positronic_core::record::Decision::Rejected => SignalKind::Reject { call, reason: reason.clone() },
            },
            EventKind::BudgetDecided { decision: positronic_core::record::Decision::Approved, more, .. } => {
                SignalKind::Grant { to: call, more: *more }
            }
            EventKind::LoopResume { payload, signal: Some(_), .. } => {
                SignalKind::Reply { call, payload: payload.clone() }
            }
            _ => continue,
        };
        answers.insert(event.path.clone(), kind);
    }
    let any = answers.values().next_back().cloned();
    Arc::new(move |pending| {
        let known = answers.get(&pending.call).or(any.as_ref()).cloned();
        let kind = match (&pending.kind, known) {
            (PendingKind::Answer { waits }, Some(SignalKind::Reply { payload, .. })) if waits[0].webhook != "reply" => {
                let (name, identifier) = (waits[0].webhook.clone(), waits[0].identifier.clone());
                SignalKind::Webhook { name, identifier, payload }
            }
            (PendingKind::Answer { .. }, Some(SignalKind::Reply { payload, .. })) => {
                SignalKind::Reply { call: pending.call.clone(), payload }
            }
            (PendingKind::Approval { .. }, Some(SignalKind::Reject { reason, .. })) => {
                SignalKind::Reject { call: pending.call.clone(), reason }
            }
            (PendingKind::Approval { .. }, Some(SignalKind::Approve { arguments, .. })) => {
                SignalKind::Approve { call: pending.call.clone(), arguments }
            }
            (PendingKind::Approval { .. }, _) => SignalKind::Approve { call: pending.call.clone(), arguments: None },
            (PendingKind::Budget(_), Some(known @ SignalKind::Grant { .. })) => known,
            (PendingKind::Answer { .. } | PendingKind::Budget(_), _) => return Vec::new(),
        };
        vec![kind]
    })
}

/// Repeats a story with a crash at every possible moment: it ends the same, with the same plugin state.
pub(crate) async fn crash_everywhere(tale: &Tale, plugin: &str, kept: &Value) -> Baseline {
    let baseline = tale.undisturbed().await;
    assert!(baseline.deaths.len() > 5);
    for death in &baseline.deaths {
        let Some((end, log)) = tale.after(&baseline, death).await else { continue };

        assert_eq!(end, baseline.end, "after {}", death.until);
        let state = RunState::replay(log.iter().map(|event| &**event)).unwrap();
        let document = state.root.as_ref().unwrap().plugins.get(plugin).cloned();
        assert_eq!(document.map(|kept| Value::clone(&kept.state)).as_ref(), Some(kept), "after {}", death.until);
    }
    baseline
}
