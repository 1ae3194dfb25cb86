use std::future::pending;

use futures::FutureExt as _;

use super::*;
use crate::dsl::brain;
use crate::model::scripted::ScriptedModel;
use crate::record::Start;
use crate::runner::Runner;
use crate::store::MemoryStore;

#[tokio::test]
async fn waiter_is_told_that_the_worker_stopped_though_the_run_has_ended_since() {
    let stuck = brain("Stuck").step("Wait", async |_| pending().await);
    let runner = Runner::new(ScriptedModel::new([])).store(MemoryStore::new());
    let run: RunHandle<()> = runner.start_with(stuck, (), Start::default()).await.unwrap();
    let mut waiter = Box::pin(run.settled());
    assert_eq!((&mut waiter).now_or_never(), None, "it works");

    run.shared.publish(WorkerPhase::Stopped(ResumeError::Leaves));
    run.shared.publish(WorkerPhase::Ended);

    assert_eq!(waiter.await, Settled::Stopped(ResumeError::Leaves));
    assert_ne!(run.settled().await, Settled::Stopped(ResumeError::Leaves), "a later waiter is told the end");
}

#[tokio::test]
async fn waiter_is_told_that_the_worker_stopped_though_another_one_works_since() {
    let stuck = brain("Stuck").step("Wait", async |_| pending().await);
    let runner = Runner::new(ScriptedModel::new([])).store(MemoryStore::new());
    let run: RunHandle<()> = runner.start_with(stuck, (), Start::default()).await.unwrap();
    let (mut waiter, mut reader) = (Box::pin(run.settled()), Box::pin(run.result()));
    assert_eq!((&mut waiter).now_or_never(), None, "it works");
    assert_eq!((&mut reader).now_or_never(), None, "it works");

    run.shared.publish(WorkerPhase::Stopped(ResumeError::Leaves));
    run.shared.publish(WorkerPhase::Working);

    assert_eq!(waiter.now_or_never(), Some(Settled::Stopped(ResumeError::Leaves)));
    assert_eq!(reader.now_or_never(), Some(Err(RunError::Stopped { reason: ResumeError::Leaves })));
    assert_eq!(run.settled().now_or_never(), None, "a later waiter waits");
}
