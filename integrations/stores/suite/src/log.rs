//! Logs: numbers, epochs, races, ranges, snapshots.

use std::sync::Arc;

use positronic_core::record::{Epoch, Event, RunId, Seq, SignalId, Status, Timestamp};
use positronic_core::store::{EventStore, PendingFilter, Snapshot, StoreError};

use super::mailbox::mail;
use super::{Sample, event};

async fn texts(store: &impl EventStore, run: &RunId) -> Vec<String> {
    let events = store.read(run, Seq(0), usize::MAX).await.unwrap();
    events.iter().map(|event| event.to_json().unwrap()).collect()
}

fn lines(events: &[Arc<Event>]) -> Vec<String> {
    events.iter().map(|event| event.to_json().unwrap()).collect()
}

/// Every handle reads what was appended.
pub async fn append_is_read_back<S: EventStore>(open: impl Fn() -> S) {
    let (store, other) = (open(), open());
    let sample = Sample::new("run-1").says("one \"line\"\nand another, größer: 𝄞").claimed(1).says("");
    let events = sample.append.events.clone();

    let sample = sample.appended(&store).await;

    assert_eq!(store.read(&sample.run, Seq(0), 10).await.unwrap(), events);
    assert_eq!(other.read(&sample.run, Seq(0), 10).await.unwrap(), events);
}

/// A run without events is unknown.
pub async fn missing_run_is_unknown<S: EventStore>(open: impl Fn() -> S) {
    let store = open();
    _ = Sample::new("run-1").says("one").appended(&store).await;
    let run = RunId::from("run-2");
    let unknown = StoreError::NoSuchRun { run: run.clone() };

    assert_eq!(store.read(&run, Seq(0), 10).await, Err(unknown.clone()));
    assert_eq!(store.run(&run).await, Err(unknown));
    assert_eq!(store.snapshot(&run).await, Ok(None));
    assert_eq!(store.remove(&[run]).await, Ok(0));
}

/// The error for a wrong expected number contains the right one.
pub async fn wrong_number_is_a_conflict<S: EventStore>(open: impl Fn() -> S) {
    let store = open();
    let early = Sample::new("run-1");
    let mut late = Sample::new("run-1");
    late.append.expected = Seq(1);

    assert_eq!(late.says("late").append(&store).await, Err(StoreError::Conflict { next: Seq(0) }));
    _ = early.clone().says("one").says("two").appended(&store).await;
    assert_eq!(early.says("again").append(&store).await, Err(StoreError::Conflict { next: Seq(2) }));
}

/// A refused append writes nothing: no events, summary, pending items or snapshot; mail stays.
pub async fn refused_append_leaves_nothing<S: EventStore>(open: impl Fn() -> S) {
    let store = open();
    let mail = mail("mail-1", 1, 100);
    store.post(&mail).await.unwrap();
    let first = Sample::new("run-1").says("one").snapshot(1, "one").appended(&store).await;
    let before = (texts(&store, &first.run).await, store.run(&first.run).await.unwrap());

    let mut refused = Sample::new("run-1")
        .says("other")
        .row(|row| row.brain = "Other".into())
        .waits(vec![super::lists::approval("Loop/0.0", 0)])
        .delivers(&mail.id)
        .snapshot(1, "other");
    assert_eq!(refused.append(&store).await, Err(StoreError::Conflict { next: Seq(1) }));

    assert_eq!((texts(&store, &first.run).await, store.run(&first.run).await.unwrap()), before);
    assert_eq!(store.pending(&PendingFilter::default()).await.unwrap(), []);
    assert_eq!(store.snapshot(&first.run).await.unwrap().unwrap().content, "one");
    assert_eq!(store.mail("slack", "thread", Timestamp(0), Timestamp(50)).await.unwrap(), Some(mail));
}

/// A worker that has lost its claim cannot append; a signal still can.
pub async fn older_epoch_is_fenced<S: EventStore>(open: impl Fn() -> S) {
    let store = open();
    let run = Sample::new("run-1").claimed(1).appended(&store).await;
    let run = run.says("by the first").appended(&store).await;
    let run = run.claimed(2).says("by the second").appended(&store).await;

    let fenced = Err(StoreError::Fenced { current: Epoch(2) });
    assert_eq!(run.clone().by(1).says("by the first").append(&store).await, fenced);
    let mut signal = run.says("by a signal");
    signal.append.epoch = None;
    let run = signal.appended(&store).await;
    assert_eq!(run.clone().by(1).says("by the first").append(&store).await, fenced);
    _ = run.by(2).says("by the second").appended(&store).await;
}

/// Events are numbered consecutively from the expected number.
pub async fn event_with_another_number_is_refused<S: EventStore>(open: impl Fn() -> S) {
    let store = open();
    let mut sample = Sample::new("run-1").says("one");
    sample.append.events.push(event(2, "three"));

    let refused = sample.append(&store).await;

    assert!(matches!(refused, Err(StoreError::Failed { .. })), "{refused:?}");
    assert!(store.run(&sample.run).await.is_err());
}

/// One of two concurrent appends with the same number wins, a hundred times.
pub async fn one_of_two_racing_appends_wins<S: EventStore>(open: impl Fn() -> S) {
    let (one, other) = (Arc::new(open()), Arc::new(open()));
    let mut sample = Sample::new("run-1");
    for _ in 0..100 {
        let race = |store: &Arc<S>, text| {
            let (store, mut sample) = (Arc::clone(store), sample.clone().says(text));
            tokio::spawn(async move { (sample.append(&*store).await, sample) })
        };
        let (first, second) = (race(&one, "one"), race(&other, "other"));
        let (first, second) = (first.await.unwrap(), second.await.unwrap());

        let next = Seq(sample.append.expected.0 + 1);
        assert!(
            matches!(
                (&first.0, &second.0),
                (Ok(()), Err(StoreError::Conflict { next: held })) | (Err(StoreError::Conflict { next: held }), Ok(()))
                if *held == next
            ),
            "{:?} and {:?}",
            first.0,
            second.0
        );
        sample = if first.0.is_ok() { first.1 } else { second.1 };
    }
    assert_eq!(one.read(&sample.run, Seq(0), usize::MAX).await.unwrap().len(), 100);
}

/// A range has as many events as requested, fewer only at the end of the log.
pub async fn range_is_read<S: EventStore>(open: impl Fn() -> S) {
    let store = open();
    let mut sample = Sample::new("run-1");
    for text in ["zero", "one", "two", "three"] {
        sample = sample.says(text);
    }
    let events = sample.append.events.clone();
    let other = Sample::new("run-0").says("another run").appended(&store).await;
    let run = sample.appended(&store).await.run;
    _ = Sample::new("run-2").says("another run").appended(&store).await;

    for (from, most, range) in [(0, 2, 0..2), (1, 2, 1..3), (3, 5, 3..4), (4, 5, 4..4), (9, 5, 4..4), (1, 0, 1..1)] {
        let read = store.read(&run, Seq(from), most).await.unwrap();
        assert_eq!(lines(&read), lines(&events[range]), "from {from}, at most {most}");
    }
    assert_eq!(store.read(&run, Seq(u64::MAX), usize::MAX).await.unwrap(), []);
    assert_eq!(texts(&store, &other.run).await.len(), 1);
}

/// The event that accepted a signal is found by the signal's id until the run is removed.
pub async fn signal_is_found_by_its_id<S: EventStore>(open: impl Fn() -> S) {
    let (store, other) = (open(), open());
    let (id, unknown) = (SignalId::from("s-1"), SignalId::from("s-2"));
    let run = Sample::new("run-1").says("one").hears(&id).says("two").appended(&store).await;
    let run = run.hears(&id).row(|row| row.status = Status::Completed).appended(&store).await;
    _ = Sample::new("run-2").says("one").appended(&store).await;

    assert_eq!(other.accepted(&run.run, &id).await, Ok(Some(Seq(1))), "the first counts");
    assert_eq!(other.accepted(&run.run, &unknown).await, Ok(None));
    assert_eq!(other.accepted(&"run-2".into(), &id).await, Ok(None));
    assert_eq!(store.remove(std::slice::from_ref(&run.run)).await, Ok(1));
    assert_eq!(other.accepted(&run.run, &id).await, Err(StoreError::NoSuchRun { run: run.run }));
}

/// A snapshot replaces the previous one, and is removed with its run.
pub async fn snapshot_is_replaced<S: EventStore>(open: impl Fn() -> S) {
    let store = open();
    let sample = Sample::new("run-1").says("one").appended(&store).await;
    assert_eq!(store.snapshot(&sample.run).await, Ok(None));

    let sample = sample.says("two").snapshot(1, "early").appended(&store).await;
    let sample = sample.says("three").snapshot(3, "late").appended(&store).await;
    let sample = sample.says("four").appended(&store).await;

    let late = Snapshot { next: Seq(3), version: 1, content: "late".to_owned() };
    assert_eq!(store.snapshot(&sample.run).await, Ok(Some(late)));
}

/// A part of the saved prompts is added to the parts before it, and one from the begin replaces them.
pub async fn saved_prompts_are_added<S: EventStore>(open: impl Fn() -> S) {
    let (store, other) = (open(), open());
    let contents = async |run: &RunId| -> Vec<String> {
        let parts = other.saved_prompts(run).await.unwrap();
        parts.into_iter().map(|part| format!("{} to {}: {}", part.from, part.next, part.content)).collect()
    };
    let sample = Sample::new("run-1").says("one").appended(&store).await;
    assert_eq!(contents(&sample.run).await, [""; 0]);

    let sample = sample.says("two").says("three").prompts(0, 2, "first").appended(&store).await;
    let sample = sample.says("four").prompts(2, 4, "second").appended(&store).await;
    _ = Sample::new("run-2").says("one").prompts(0, 1, "another").appended(&store).await;
    assert_eq!(contents(&sample.run).await, ["0 to 2: first", "2 to 4: second"]);

    let mut late = sample.clone();
    late.append.expected = Seq(1);
    assert_eq!(
        late.says("late").prompts(0, 3, "late").append(&store).await,
        Err(StoreError::Conflict { next: Seq(4) })
    );
    let sample = sample.says("five").prompts(0, 5, "all").appended(&store).await;

    assert_eq!(contents(&sample.run).await, ["0 to 5: all"]);
    assert_eq!(contents(&"run-2".into()).await, ["0 to 1: another"]);
}

/// A run whose summary names a predecessor can only be created while the predecessor exists.
pub async fn run_begins_only_after_an_existing_one<S: EventStore>(open: impl Fn() -> S) {
    let (store, other) = (open(), open());
    let before = RunId::from("c-0");
    let mut next = Sample::new("c-1").says("next").row(|row| row.after = Some(before.clone()));

    let refused = StoreError::NoRunBefore { run: next.run.clone(), before };
    assert_eq!(next.append(&store).await, Err(refused));
    assert_eq!(other.run(&next.run).await, Err(StoreError::NoSuchRun { run: next.run.clone() }));

    _ = Sample::new("c-0").says("first").appended(&store).await;
    next = next.appended(&other).await;
    _ = next.says("more").appended(&store).await;
}

/// Tasks append to the same runs through two handles, and retry after conflicts: every event is stored once, and the
/// events of a task keep their order.
pub async fn many_tasks_append_to_many_runs<S: EventStore>(open: impl Fn() -> S) {
    const TASKS: usize = 16;
    const RUNS: usize = 5;
    const APPENDS: usize = 20;
    let handles = [Arc::new(open()), Arc::new(open())];
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let store = Arc::clone(&handles[task % 2]);
            tokio::spawn(async move {
                let mut sample = Sample::new(&format!("run-{}", task % RUNS));
                for number in 0..APPENDS {
                    loop {
                        let mut next = sample.clone().says(&format!("{task:02} {number:02}"));
                        match next.append(&*store).await {
                            Ok(()) => {
                                sample = next;
                                break;
                            }
                            Err(StoreError::Conflict { next }) => sample.append.expected = next,
                            Err(error) => return Err(error),
                        }
                    }
                }
                Ok(())
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().expect("every append goes well in the end");
    }

    for run in 0..RUNS {
        let events = handles[0].read(&RunId::from(format!("run-{run}")), Seq(0), usize::MAX).await.unwrap();
        assert!(events.iter().zip(0..).all(|(event, seq)| event.seq == Seq(seq)));
        for task in (0..TASKS).filter(|task| task % RUNS == run) {
            let said: Vec<_> = events
                .iter()
                .map(|event| event.to_json().unwrap())
                .filter(|line| line.contains(&format!("\"{task:02} ")))
                .collect();
            assert_eq!(said.len(), APPENDS, "of task {task}");
            for (number, line) in said.iter().enumerate() {
                assert!(line.contains(&format!("\"{task:02} {number:02}\"")), "{line} is number {number}");
            }
        }
    }
}
