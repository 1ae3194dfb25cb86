//! Checks that every log, and every request of it, must pass.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use positronic_core::machine::{RunState, next, pending, status, why};
use positronic_core::model::Model as _;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prices::PriceTable;
use positronic_core::projection::timeline::{AnswerOutcome, Node, NodeKind, Timeline};
use positronic_core::projection::{Costs, request_at};
use positronic_core::record::{
    Assistant, Delta, DeltaKind, Event, EventKind, Message, ModelRequest, Path, Segment, Status,
};
use positronic_core::testing::Story;
use serde_json::{Value, json};

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

/// Checks that the timeline of a log is complete, and that deltas leave no trace once the answers are complete.
pub(crate) fn check_timeline(log: &[Arc<Event>]) {
    let prices = Arc::new(PriceTable::bundled());
    let empty = || Timeline::new().priced(Arc::clone(&prices));
    let (mut timeline, mut streamed) = (empty(), empty());
    for event in log {
        timeline.apply(event);
        streamed.apply(event);
        stream(&mut streamed, event);
    }
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
            // A guard asks about the calls that are open.
            EventKind::LoopModelCall { .. } if matches!(path.last(), Some(Segment::Question(..))) => {}
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
