//! Sinks and stores: events arrive in order without a gap, and their failures do not harm the run.

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::record::{Delta, Event, RunId};
use positronic_core::runner::{Runner, Settled, StartError};
use positronic_core::sink::{EventSink, JsonLines, Recorder, SinkError, TracingSink};
use positronic_core::store::{MemoryStore, StoreError};
use positronic_core::testing::{CountedIds, Lockstep as _, Story, Test, TestClock};
use positronic_store_suite::{Fault, FaultyStore};

use crate::support::{Journal, Play, batch, tools, workshop};

/// Writes events as lines; delays, fails or panics at some events.
#[derive(Clone, Default)]
struct Odd {
    lines: Arc<Mutex<Vec<String>>>,
    takes: Duration,
    fails: Option<u64>,
    times: Arc<AtomicU64>,
    panics: Option<u64>,
}

impl Odd {
    fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }
}

impl EventSink for Odd {
    fn name(&self) -> &'static str {
        "odd"
    }

    fn event<'a>(&'a self, _: &'a RunId, event: &'a Arc<Event>) -> BoxFuture<'a, Result<(), SinkError>> {
        Box::pin(async move {
            tokio::time::sleep(self.takes).await;
            assert_ne!(self.panics, Some(event.seq.0), "the sink fell");
            let left = self.times.load(Ordering::SeqCst);
            if self.fails == Some(event.seq.0) && left > 0 {
                self.times.store(left - 1, Ordering::SeqCst);
                return Err(SinkError("not now".to_owned()));
            }
            self.lines.lock().unwrap().push(format!("{} {}", event.seq, event.kind.name()));
            Ok(())
        })
    }

    fn delta(&self, _: &RunId, delta: &Delta) {
        self.lines.lock().unwrap().push(format!("{:?} {}", delta.kind, delta.text));
    }
}

fn expected(story: &Story) -> Vec<String> {
    story.log().iter().map(|event| format!("{} {}", event.seq, event.kind.name())).collect()
}

fn talk() -> [Reply; 2] {
    [batch([("safe", "a")]), Reply::text("All is well.")]
}

#[tokio::test(start_paused = true)]
async fn slow_sink_delays_no_run_and_gets_every_event_in_order() {
    let slow = Odd { takes: Duration::from_secs(3), ..Odd::default() };
    let fast = Recorder::new();
    let journal = Journal::default();
    let play = Play::new(talk()).map(|runner| runner.sink(slow.clone()).sink(fast.clone()));
    let began = tokio::time::Instant::now();
    let run = play.start(&workshop(&journal, tools), ()).await;

    run.settled().await;
    assert_eq!(began.elapsed(), Duration::ZERO, "the run does not wait for its sinks");

    assert!(run.flushed(Duration::from_secs(600)).await);
    let story = play.story(&run).await;
    let lines = slow.lines();
    let events: Vec<_> = lines.iter().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).cloned().collect();
    assert_eq!(events, expected(&story));
    let at = |what: &str| lines.iter().position(|line| line == what).unwrap_or_else(|| panic!("{what} in {lines:#?}"));
    let pieces: Vec<_> = lines.iter().filter(|line| line.starts_with("Text")).cloned().collect();
    assert_eq!(pieces, ["Text All ", "Text is ", "Text well."]);
    let call = lines.iter().rposition(|line| line.ends_with("LOOP_MODEL_CALL")).unwrap();
    let result = lines.iter().rposition(|line| line.ends_with("LOOP_MODEL_RESULT")).unwrap();
    assert!(call < at("Text All ") && at("Text well.") < result, "{lines:#?}");
    assert_eq!(fast.events().len(), story.log().len());
}

#[tokio::test(start_paused = true)]
async fn permanently_failing_or_panicking_sink_is_dropped_and_the_run_continues() {
    let dead = Odd { fails: Some(4), times: Arc::new(AtomicU64::new(u64::MAX)), ..Odd::default() };
    let panicking = Odd { panics: Some(6), ..Odd::default() };
    let healthy = Recorder::new();
    let journal = Journal::default();
    let play = Play::new(talk())
        .map(|runner| runner.sink(dead.clone()).sink(panicking.clone()).sink(TracingSink).sink(healthy.clone()));
    let run = play.start(&workshop(&journal, tools), ()).await;

    assert!(matches!(run.settled().await, Settled::Completed(_)));
    let began = tokio::time::Instant::now();
    assert!(!run.flushed(Duration::from_secs(60)).await, "two sinks have not received everything");
    assert!(began.elapsed() < Duration::from_secs(60), "abandoned sinks are not waited for");

    let story = play.story(&run).await;
    assert_eq!(dead.lines().len(), 4, "no event after a gap");
    assert!(panicking.lines().len() >= 6);
    assert_eq!(healthy.events().len(), story.log().len());
}

/// A writer that can be read.
#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn json_lines_read_back_as_the_same_events() {
    let page = Page::default();
    let journal = Journal::default();
    let play = Play::new(talk()).map(|runner| runner.sink(JsonLines::new(page.clone())));
    let story = play.run(&workshop(&journal, tools), ()).await;

    let text = String::from_utf8(page.0.lock().unwrap().clone()).unwrap();
    let read: Vec<_> = text.lines().map(|line| Arc::new(Event::from_json(line).unwrap())).collect();

    assert_eq!(read, story.log());
    assert_eq!(text, story.json_lines());
}

/// Creates a store whose appends fail from number `n` until it is repaired.
fn failing(from: u64, mended: Arc<AtomicBool>) -> FaultyStore<MemoryStore> {
    FaultyStore::new(MemoryStore::new(), move |_, append| {
        let last = append.expected.0 + append.events.len() as u64;
        let fails = last > from && !mended.load(Ordering::SeqCst);
        fails.then(|| Fault::Refused(StoreError::Failed { message: "the disk is full".to_owned() }))
    })
}

fn on(store: FaultyStore<MemoryStore>, model: ScriptedModel) -> Test {
    Test::with(Runner::new(model).store(store).clock(TestClock::default()).ids(CountedIds::default()).lockstep(true))
}

#[tokio::test(start_paused = true)]
async fn store_that_fails_at_the_start_starts_no_run() {
    let journal = Journal::default();
    let test = on(failing(0, Arc::default()), ScriptedModel::new([]));

    let started = test.runner().start(&workshop(&journal, tools), ()).await;

    assert!(matches!(started, Err(StartError::Store(StoreError::Failed { .. }))));
}

/// A writer that blocks like an unread pipe.
struct Full;

impl Write for Full {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        std::thread::sleep(Duration::from_secs(2));
        Err(std::io::ErrorKind::TimedOut.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn unread_pipe_blocks_no_run() {
    let journal = Journal::default();
    let play = Play::new(talk()).map(|runner| runner.sink(JsonLines::new(Full)));
    let began = tokio::time::Instant::now();
    let run = play.start(&workshop(&journal, tools), ()).await;

    assert!(matches!(run.settled().await, Settled::Completed(_)));

    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}
