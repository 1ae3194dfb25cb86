//! Child runs of a session's run: those that it waits for, and those that undo what they have done once it has ended.

use std::io;
use std::pin::pin;

use futures::future::{Either, select};
use positronic_core::record::{ChildLink, RunId, Status};
use tokio::time::MissedTickBehavior;

use super::awaited_runs::AwaitedRuns;
use super::driver::{Next, Session, WORKER_CHECK};
use crate::app::{Failure, Ui};
use crate::session::Role;

/// Whether a child run needs the session.
enum Child {
    /// It has ended, or another process works on it.
    IsFine,
    /// It continues with another command.
    IsLeft,
    /// An interrupt has ended the wait for it.
    Interrupted,
}

impl Session<'_> {
    /// Waits until this process has done the work of the linked child runs of a run that has ended, and of theirs. Returns those
    /// that have not ended and that no process works on.
    pub(super) async fn end_children(&mut self) -> Result<Vec<RunId>, Failure> {
        let (mut parents, mut left) = (vec![self.run.clone()], Vec::new());
        let has_children = !self.run.state().children.is_empty();
        'all: while let Some(parent) = parents.pop() {
            let children = parent.state().children;
            for child in children.iter().filter(|(_, link)| **link != ChildLink::Detached).map(|(child, _)| child) {
                let row = self.runner.client().store().run(child).await?;
                // A fork has the children of its origin in its log.
                if row.parent.as_ref() != Some(parent.id()) {
                    continue;
                }
                match self.end_child(child).await? {
                    Child::IsFine => parents.push(self.runner.open(child).await?),
                    Child::IsLeft => left.push(child.clone()),
                    Child::Interrupted => {
                        left.push(child.clone());
                        break 'all;
                    }
                }
            }
        }
        if has_children {
            let runner = self.runner.clone();
            let mut released = pin!(async { _ = runner.release().await });
            while let Next::Settled(_) = self.next(released.as_mut()).await? {}
        }
        Ok(left)
    }

    /// Waits until this process has done the work of a child run.
    async fn end_child(&mut self, child: &RunId) -> Result<Child, Failure> {
        let client = self.runner.client();
        let own = self.runner.worker().await?;
        let handle = self.runner.open(child).await?;
        let mut checks = tokio::time::interval(WORKER_CHECK);
        checks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        checks.tick().await;
        let (mut unclaimed, mut has_settled) = (0_u32, false);
        loop {
            let row = client.store().run(child).await?;
            match client.worker(&row).await? {
                _ if row.status.is_over() => return Ok(Child::IsFine),
                Some(worker) if worker != own => return Ok(Child::IsFine),
                _ if has_settled || row.status != Status::Running => return Ok(Child::IsLeft),
                Some(_) => unclaimed = 0,
                None => unclaimed += 1,
            }
            if unclaimed > 2 {
                return Ok(Child::IsLeft);
            }
            let (settled, check) = (pin!(handle.settled()), pin!(checks.tick()));
            match self.next(select(settled, check)).await? {
                Next::Interrupt(_) => return Ok(Child::Interrupted),
                Next::Ready(Either::Left(_)) => has_settled = true,
                Next::Ready(Either::Right(_)) | Next::Settled(_) => {}
            }
        }
    }

    /// Names the child runs that need another command.
    pub(super) fn report_left(left: Result<Vec<RunId>, Failure>, ui: &mut Ui) -> io::Result<()> {
        match left {
            Ok(left) => left.iter().try_for_each(|child| {
                let work = ui.command(&["work", child.as_str()]);
                ui.notice(&format!("the child run {child} has not ended; continue it with: {work}"))
            }),
            Err(failure) => ui.notice(&format!("cannot read whether the child runs have ended: {failure}")),
        }
    }

    /// Returns whether the session ends because the awaited runs need answers or another worker. At a terminal it says where to
    /// give the answers.
    pub(super) async fn is_left_to_others(&mut self) -> Result<bool, Failure> {
        let pending = self.run.pending();
        if !AwaitedRuns::are_all_of(&pending) {
            return Ok(false);
        }
        // A store that cannot be read now says nothing about other runs.
        let needs = self.awaited.needs(self.runner, &pending).await.unwrap_or_default();
        // The awaited run may have ended since, so that this one continues.
        let Some(needs) = needs.filter(|_| self.run.pending() == pending) else { return Ok(false) };
        let watches = self.options.role == (Role::Watches { until_waiting: false });
        let lacks_worker = !needs.workers.is_empty();
        let ends = self.options.lasts && !watches && (lacks_worker || !self.has_person);
        if (lacks_worker || !ends)
            && let Some(line) = self.awaited.line(&needs)
        {
            self.shown.screen.say(&line)?;
        }
        Ok(ends)
    }
}
