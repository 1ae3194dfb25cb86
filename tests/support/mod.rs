//! Shared support for stories: a workshop whose tools record their work, and the checks that every log must pass.

pub(crate) mod boundaries;
pub(crate) mod dialogues;
pub(crate) mod watchdog;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use positronic_core::dsl::{Loop, Runnable, ToolBuilder};
use positronic_core::machine::{RunState, next, pending, status, why};
use positronic_core::model::Model as _;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::prices::PriceTable;
use positronic_core::projection::timeline::{AnswerOutcome, Node, NodeKind, Timeline};
use positronic_core::projection::{Costs, Prompts, request_at};
use positronic_core::record::{
    Assistant, Delta, DeltaKind, Event, EventKind, Message, ModelRequest, OutputKind, Path, Pending, Prompt, Status,
    ToolOutput, ToolResult,
};
use positronic_core::runner::{RunHandle, Settled};
use positronic_core::testing::{CountedIds, Lockstep as _, Story, Test, TestClock};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A test with its scripted model, whose stories are checked.
pub(crate) struct Play {
    pub(crate) model: Arc<ScriptedModel>,
    pub(crate) test: Test,
    asked: Mutex<Vec<ModelRequest>>,
}

impl Play {
    /// Awaits all effects in flight and records them in path order.
    pub(crate) fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::of(ScriptedModel::new(replies), true)
    }

    /// Records outcomes in the order of their arrival.
    pub(crate) fn free(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::of(ScriptedModel::new(replies), false)
    }

    pub(crate) fn of(model: ScriptedModel, lockstep: bool) -> Self {
        watchdog::watch();
        let model = Arc::new(model);
        let runner = Runner::new(Arc::clone(&model))
            .clock(TestClock::default())
            .ids(CountedIds::default())
            .lockstep(lockstep)
            .linger(Duration::MAX);
        Self { model, test: Test::with(runner), asked: Mutex::default() }
    }

    /// Prices the answers with this table.
    pub(crate) fn priced(model: ScriptedModel, lockstep: bool, prices: &Value) -> Self {
        let model = Arc::new(model);
        let table = json!({"as_of": "2026-01-01", "currency": "EUR", "prices": prices});
        let runner = Runner::new(Arc::clone(&model))
            .clock(TestClock::default())
            .ids(CountedIds::default())
            .lockstep(lockstep)
            .linger(Duration::MAX)
            .prices(serde_json::from_value::<PriceTable>(table).unwrap());
        Self { model, test: Test::with(runner), asked: Mutex::default() }
    }

    pub(crate) fn map(self, change: impl FnOnce(Runner) -> Runner) -> Self {
        Self { test: self.test.map(change), ..self }
    }

    pub(crate) async fn start<B: Runnable>(&self, brain: B, options: B::Options) -> RunHandle<B::Result> {
        self.test.start(brain, options).await
    }

    /// Runs a brain until it has ended or waits, and checks its log.
    pub(crate) async fn run<B: Runnable>(&self, brain: B, options: B::Options) -> Story {
        let run = self.start(brain, options).await;
        self.story(&run).await
    }

    /// Reads a run that has ended or waits, and checks its log.
    pub(crate) async fn story<R: DeserializeOwned>(&self, run: &RunHandle<R>) -> Story {
        let story = Story::of(run).await;
        check_log(&story, &run.state());
        check_requests(story.log(), &self.requests());
        match story.settled() {
            Settled::Waiting(pending) => assert!(!pending.is_empty(), "the run hangs:\n{}", story.events()),
            Settled::Completed(_) => {
                self.asked.lock().unwrap().extend(self.model.requests());
                self.model.assert_used();
            }
            _ => {}
        }
        story
    }

    /// Returns all requests.
    pub(crate) fn requests(&self) -> Vec<ModelRequest> {
        let mut requests = self.asked.lock().unwrap().clone();
        requests.extend(self.model.requests());
        requests
    }

    /// Returns whether any request contains a text.
    pub(crate) fn model_read(&self, text: &str) -> bool {
        self.requests().iter().any(|request| self.model.wire(request).contains(text))
    }

    /// Returns the last request.
    pub(crate) fn last_request(&self) -> ModelRequest {
        self.requests().pop().expect("the model was asked")
    }

    /// Returns the tool messages of the last request.
    pub(crate) fn last_results(&self) -> Vec<String> {
        tool_texts(&self.last_request())
    }
}

/// Returns the context items of a request as `name: text`.
pub(crate) fn contexts(request: &ModelRequest) -> Vec<String> {
    request.context.iter().map(|item| format!("{}: {}", item.name, item.text)).collect()
}

/// Returns the texts of a request's tool messages.
pub(crate) fn tool_texts(request: &ModelRequest) -> Vec<String> {
    let messages = request.messages.messages();
    messages
        .into_iter()
        .filter_map(|message| match message {
            Message::Tool { text, .. } => Some(text),
            Message::User { .. } | Message::Assistant { .. } => None,
        })
        .collect()
}

/// Replays a log from its JSON lines, prefix by prefix, and compares the end with the live state byte for byte.
pub(crate) fn check_log(story: &Story, live: &RunState) {
    let lines = story.json_lines();
    let mut replayed = RunState::default();
    for (line, event) in lines.lines().zip(story.log()) {
        let read = Event::from_json(line).unwrap();
        assert_eq!(read, **event, "an event reads back as another: {line}");
        check_refusals(&replayed, &read, story.log());
        replayed.apply(&read).unwrap();
        let text = serde_json::to_string(&replayed).unwrap();
        let kept: RunState = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&kept).unwrap(), text, "a snapshot reads back as another state");
        assert_eq!(kept, replayed, "a snapshot reads back as another state");
        // Every prefix determines the next effects.
        _ = (next(&replayed, replayed.at), pending(&replayed));
        let waits = matches!(status(&replayed), Status::Waiting | Status::Paused);
        assert!(!waits || why(&replayed).is_some(), "a run that waits says why: {line}");
    }
    assert_eq!(serde_json::to_string(&replayed).unwrap(), serde_json::to_string(live).unwrap());
    check_order(story.log(), live.has_ended());
    check_timeline(story.log());
}

/// Checks at every prefix of a log that the timeline is complete, that it continues unchanged after a round trip through
/// JSON, and that deltas leave no trace once the answers are complete.
pub(crate) fn check_timeline(log: &[Arc<Event>]) {
    let prices = Arc::new(PriceTable::bundled());
    let empty = || Timeline::new().priced(Arc::clone(&prices));
    let (mut timeline, mut streamed) = (empty(), empty());
    let every = 1 + log.len() / 60;
    for (place, event) in log.iter().enumerate() {
        timeline.apply(event);
        streamed.apply(event);
        stream(&mut streamed, event);
        if place % every == 0 {
            let json = serde_json::to_string(&timeline).unwrap();
            let read = serde_json::from_str::<Timeline>(&json).unwrap().priced(Arc::clone(&prices));
            assert_eq!(read, timeline, "a timeline reads back as another: {json}");
            timeline = read;
        }
    }
    let mut whole = empty();
    log.iter().for_each(|event| whole.apply(event));
    assert_eq!(timeline, whole);
    let events = || log.iter().map(|event| &**event);
    assert_eq!(timeline.costs, Some(Costs::of(events(), &prices)));
    assert_eq!(timeline.spent(), &Costs::of(events(), &prices).total());
    let is_open = |node: &Node| matches!(&node.kind, NodeKind::Answer(answer) if answer.outcome.is_none());
    if !timeline.nodes().any(is_open) {
        assert_eq!(streamed, timeline, "what streamed is still there");
    }
    let nodes = |fits: fn(&NodeKind) -> bool| timeline.nodes().filter(|node| fits(&node.kind)).count();
    let logged = |fits: fn(&EventKind) -> bool| events().filter(|event| fits(&event.kind)).count();
    let refused = |kind: &NodeKind| matches!(kind, NodeKind::Answer(answer) if matches!(answer.outcome, Some(AnswerOutcome::Refused { .. })));
    assert_eq!(nodes(refused), logged(|kind| matches!(kind, EventKind::LoopAnswerRefused { .. })));
    let answered = |kind: &NodeKind| matches!(kind, NodeKind::Answer(answer) if matches!(answer.outcome, Some(AnswerOutcome::Answered(_))));
    assert_eq!(nodes(answered), logged(|kind| matches!(kind, EventKind::LoopModelResult { .. })));
    assert_eq!(timeline.calls().count(), logged(|kind| matches!(kind, EventKind::LoopToolCall(_))));
    let results = timeline.calls().filter(|call| call.result.is_some()).count();
    assert_eq!(results, logged(|kind| matches!(kind, EventKind::LoopToolResult { .. })));
    let ended = |kind: &NodeKind| matches!(kind, NodeKind::Stage(stage) if stage.outcome.is_some());
    assert_eq!(nodes(ended), logged(|kind| matches!(kind, EventKind::LoopComplete { .. })));
    if timeline.ending().is_some() {
        let open: Vec<_> = timeline.nodes().filter(|node| node.status.is_open()).collect();
        assert!(open.is_empty(), "a run that has ended has open nodes: {open:?}");
    }
}

/// Streams an answer with a gap, if the event is a model call.
fn stream(timeline: &mut Timeline, event: &Event) {
    let EventKind::LoopModelCall { attempt, .. } = event.kind else { return };
    for n in [0, 1, 3] {
        let (path, kind, text) = (event.path.clone(), DeltaKind::Text, format!("piece {n} "));
        let (generation, part, call, tool) = (0, 0, None, None);
        timeline.apply_delta(&Delta { path, attempt, generation, part, kind, call, tool, n, text });
        let answer = timeline.nodes().last().unwrap();
        let NodeKind::Answer(answer) = &answer.kind else { panic!("{answer:?}") };
        let stream = answer.stream.as_ref().unwrap();
        assert_eq!((stream.gap, stream.pieces), (n == 3, n + 1));
    }
}

/// Checks that a state refuses invalid events without a change: later events of the log in place of the next one, and
/// the next one with an invalid patch.
fn check_refusals(state: &RunState, next: &Event, log: &[Arc<Event>]) {
    let place = state.next.index();
    let others = [0, 1, place / 2, place + 1, place + 5, log.len() - 1];
    let mut events: Vec<_> =
        others.into_iter().filter_map(|place| log.get(place)).map(|event| (**event).clone()).collect();
    let mut unfit = serde_json::from_str::<Value>(&next.to_json().unwrap()).unwrap();
    let changes = ["STEP_COMPLETE", "LOOP_TOOL_RESULT", "LOOP_WAIT", "LOOP_COMPLETE", "BRAIN_MIGRATED"];
    if changes.contains(&next.kind.name()) {
        unfit.as_object_mut().unwrap().remove("state");
        unfit["patch"] = json!([{"op": "remove", "path": "/nowhere/at/all"}]);
        events.push(Event::from_json(&unfit.to_string()).unwrap());
    }
    for event in events {
        let event = Event { seq: state.next, at: next.at, ..event };
        let mut after = state.clone();
        if after.apply(&event).is_err() {
            assert_eq!(after, *state, "{} at `{}` is refused, and leaves a trace", event.kind.name(), event.path);
        }
    }
}

/// Checks the properties of every log: a model call follows only after every call has its result, every call has
/// exactly one result, and a loop's last event is its `LOOP_COMPLETE`.
pub(crate) fn check_order(log: &[Arc<Event>], ended: bool) {
    let mut open: BTreeSet<Path> = BTreeSet::new();
    let mut closed: BTreeSet<Path> = BTreeSet::new();
    for (place, event) in log.iter().enumerate() {
        let path = &event.path;
        assert_eq!(usize::try_from(event.seq.0).unwrap(), place);
        let next = log.get(place + 1);
        let joins = |next: &Arc<Event>| (next.at, next.epoch) == (event.at, event.epoch);
        assert!(!event.with_next || next.is_some_and(joins), "{path} {} belongs to no next event", event.kind.name());
        assert!(!closed.iter().any(|closed| path.is_within(closed)), "{path} {} after its loop", event.kind.name());
        let loop_at = path.parent().unwrap_or_default();
        match &event.kind {
            EventKind::LoopToolCall(_) => {
                assert!(open.insert(path.clone()), "{path} was asked for twice");
                assert!(log[place - 1].with_next, "{path} is apart from the answer that asked for it");
            }
            EventKind::LoopToolResult { .. } => assert!(open.remove(path), "{path} has no open call"),
            EventKind::LoopModelCall { .. } => {
                let own: Vec<_> = open.iter().filter(|call| call.parent().unwrap_or_default() == loop_at).collect();
                assert!(own.is_empty(), "the model is asked while {own:?} are open");
            }
            EventKind::LoopComplete { .. } => {
                let own: Vec<_> = open.iter().filter(|call| call.is_within(path)).collect();
                assert!(own.is_empty(), "the loop {path} ends while {own:?} are open");
                closed.insert(path.clone());
            }
            _ => {}
        }
    }
    assert!(!ended || open.is_empty(), "the run has ended and {open:?} have no result");
}

/// Rebuilds every request from the log and compares it with the sent one byte for byte.
pub(crate) fn check_requests(log: &[Arc<Event>], sent: &[ModelRequest]) {
    let model = ScriptedModel::from_fn(|_| Reply::text(""));
    let events = || log.iter().map(|event| &**event);
    let mut rebuilt: BTreeMap<Path, Vec<String>> = BTreeMap::new();
    for event in log.iter().filter(|event| matches!(event.kind, EventKind::LoopModelCall { .. })) {
        let request = request_at(events(), event.seq).unwrap();
        rebuilt.entry(event.path.clone()).or_default().push(model.wire(&request));
    }
    for request in sent {
        check_pairs(&request.messages.messages());
        check_dialogue(request);
        let wire = model.wire(request);
        let known = rebuilt.get(&request.path).unwrap_or_else(|| panic!("the log has no request at {}", request.path));
        assert!(known.contains(&wire), "the request at {} is rebuilt as {known:?}, not as {wire}", request.path);
    }
}

/// Checks that providers accept a request: it begins and ends with the user or a result, no two user messages are
/// adjacent, and no message is empty.
pub(crate) fn check_dialogue(request: &ModelRequest) {
    let messages = request.messages.messages();
    let refused = |why: &str| panic!("the request at {} {why}: {messages:?}", request.path);
    let is_user = |message: Option<&Message>| matches!(message, Some(Message::User { .. }));
    if !is_user(messages.first()) {
        refused("does not begin with the user");
    }
    if matches!(messages.last(), Some(Message::Assistant { .. })) {
        refused("ends with the model");
    }
    if messages.windows(2).any(|pair| is_user(pair.first()) && is_user(pair.last())) {
        refused("has two messages of the user in a row");
    }
    let is_empty = |message: &Message| match message {
        Message::User { text, .. } => text.trim().is_empty(),
        Message::Assistant { parts, .. } => parts.iter().all(|part| match part {
            Assistant::Text { text } => text.trim().is_empty(),
            Assistant::Call { .. } => false,
            _ => true,
        }),
        Message::Tool { .. } => false,
    };
    if messages.iter().any(is_empty) {
        refused("has an empty message");
    }
}

/// Checks that the results of an answer's calls follow it directly, one for each, in call order.
fn check_pairs(messages: &[Message]) {
    let mut due: VecDeque<&String> = VecDeque::new();
    for message in messages {
        match message {
            Message::Tool { call, .. } => assert_eq!(Some(call), due.pop_front(), "a result in its place"),
            Message::Assistant { .. } | Message::User { .. } => assert!(due.is_empty(), "{due:?} have no result"),
        }
        if let Message::Assistant { parts, .. } = message {
            due.extend(parts.iter().filter_map(|part| match part {
                Assistant::Call { call, .. } => Some(call),
                _ => None,
            }));
        }
    }
    assert!(due.is_empty(), "{due:?} have no result");
}

/// The recorded work of a workshop's tools, in order. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Journal(Arc<Mutex<Vec<String>>>, Arc<AtomicU32>);

impl Journal {
    pub(crate) fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    /// Counts, from 1.
    pub(crate) fn count(&self) -> u32 {
        self.1.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Returns the entries since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

/// The state of a workshop.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Board {
    pub(crate) done: Vec<String>,
}

/// The arguments of a workshop's tools.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Job {
    pub(crate) id: String,
    /// Duration in milliseconds.
    #[serde(default)]
    pub(crate) takes: u64,
    /// Whether it fails.
    #[serde(default)]
    pub(crate) fails: bool,
}

pub(crate) type Shop = ToolContext<(), Board, Journal>;
pub(crate) type ShopTool = Tool<(), Board, Journal>;
pub(crate) type ShopBuilder = ToolBuilder<(), Board, Journal>;
pub(crate) type ShopLoop = Loop<(), Board, Journal>;

/// Records `id`, sleeps, and records `id-`.
pub(crate) async fn work(job: Job, cx: Shop) -> Result<ToolReply<Board>> {
    cx.services.note(&job.id);
    if job.takes > 0 {
        tokio::time::sleep(Duration::from_millis(job.takes)).await;
        cx.services.note(format!("{}-", job.id));
    }
    if job.fails {
        return Err(Error::new(format!("{} broke", job.id)));
    }
    let reply = cx.result(format!("{} done", job.id));
    Ok(reply.update(move |board| board.done.push(job.id)))
}

/// Creates a tool of the workshop, with flags.
pub(crate) fn worker(name: &str, flags: impl FnOnce(ShopBuilder) -> ShopBuilder) -> ShopTool {
    Tool::new(name, |t| flags(t).description(format!("Does a {name} job")).execute(work))
}

/// Adds the tools `safe`, `read` (read-only), `alone` (sequential) and `gated` (needs an approval).
pub(crate) fn tools(config: ShopLoop) -> ShopLoop {
    config.tools([
        worker("safe", |t| t),
        worker("read", ShopBuilder::read_only),
        worker("alone", ShopBuilder::sequential),
        worker("gated", |t| t.requires_approval("it is dangerous")),
    ])
}

/// Builds a brain with one loop `Work`, over the journal.
pub(crate) fn workshop(
    journal: &Journal,
    configure: impl Fn(ShopLoop) -> ShopLoop + Send + Sync + 'static,
) -> Brain<(), Board> {
    brain("Workshop")
        .services::<Journal>()
        .state(Board::default())
        .r#loop("Work", move |cx| configure(cx.system("Do the jobs.").input("begin")))
        .bind(journal.clone())
}

/// A batch of jobs, each `(tool, id)`.
pub(crate) fn batch<const N: usize>(jobs: [(&str, &str); N]) -> Reply {
    Reply::calls(jobs.map(|(tool, id)| (tool, json!({ "id": id }))))
}

/// A batch of slow jobs, each `(tool, id, milliseconds)`.
pub(crate) fn slow_batch<const N: usize>(jobs: [(&str, &str, u64); N]) -> Reply {
    Reply::calls(jobs.map(|(tool, id, takes)| (tool, json!({ "id": id, "takes": takes }))))
}

pub(crate) fn done() -> Reply {
    Reply::text("Done.")
}

pub(crate) fn path(text: &str) -> Path {
    Path::parse(text).unwrap()
}

/// Returns the paths of pending items.
pub(crate) fn paths(pending: &[Pending]) -> Vec<String> {
    pending.iter().map(|pending| pending.call.to_string()).collect()
}

/// Timeout of tests, in the paused time of their clock: a hang fails its test. `serve` polls once a second, so the
/// timeout is not longer than necessary.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);

/// Waits until a run has settled.
pub(crate) async fn settled<R>(run: &RunHandle<R>) -> Settled {
    watchdog::watch();
    tokio::time::timeout(PATIENCE, run.settled()).await.unwrap_or_else(|_| panic!("the run hangs: {:?}", run.state()))
}

/// Waits until a run has completed, and returns its result.
pub(crate) async fn result<R: DeserializeOwned>(run: &RunHandle<R>) -> R {
    watchdog::watch();
    match tokio::time::timeout(PATIENCE, run.result()).await {
        Ok(result) => result.unwrap(),
        Err(_) => panic!("the run hangs: {:?}", run.state()),
    }
}

/// Waits until the run waits for a person, and returns the paths of the pending calls.
pub(crate) async fn waits<R>(run: &RunHandle<R>) -> Vec<String> {
    match settled(run).await {
        Settled::Waiting(pending) => paths(&pending),
        other => panic!("the run does not wait: {other:?}"),
    }
}

/// Returns a loop's record.
pub(crate) fn prompt(story: &Story, at: &str) -> Prompt {
    Prompts::of(story.log().iter().map(|event| &**event)).get(&path(at)).cloned().unwrap()
}

/// Returns the calls of a loop's record.
pub(crate) fn calls(story: &Story, at: &str) -> Vec<ToolOutput> {
    let output = prompt(story, at).output;
    output
        .into_iter()
        .filter_map(|output| match output.kind {
            OutputKind::Tool(tool) => Some(*tool),
            _ => None,
        })
        .collect()
}

/// Returns the results of a loop's calls.
pub(crate) fn results(story: &Story, at: &str) -> Vec<ToolResult> {
    calls(story, at).into_iter().map(|call| call.result.expect("the call has a result")).collect()
}

/// Returns the paths of the events of one name.
pub(crate) fn events_named(story: &Story, name: &str) -> Vec<String> {
    story.log().iter().filter(|event| event.kind.name() == name).map(|event| event.path.to_string()).collect()
}

/// Returns the message of an error result.
pub(crate) fn error_of(result: &ToolResult) -> &str {
    match result {
        ToolResult::Error { message } => message,
        other => panic!("expected an error: {other:?}"),
    }
}

pub(crate) fn success(output: impl Into<Value>) -> ToolResult {
    ToolResult::success(output)
}
