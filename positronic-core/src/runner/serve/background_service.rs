//! A server of a store in a task of its own, as long as a value lives: [`Runner::serve`].

use futures::StreamExt as _;
use tokio::task::JoinHandle;

use super::serve_event::ServeEvent;
use super::server::Server;
use crate::runner::Runner;

/// Serves a store's runs until it is dropped.
#[derive(Debug)]
pub struct Service {
    task: JoinHandle<()>,
}

impl Service {
    /// Serves a store with a runner.
    pub(in crate::runner) fn start(runner: &Runner) -> Self {
        let runner = runner.clone();
        Self { task: tokio::spawn(async move { serve_alone(runner).await }) }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves a store with one runner until the runner releases its runs.
async fn serve_alone(runner: Runner) {
    let server = Server::alone(&runner, runner.clone()).await;
    let mut events = server.events();
    loop {
        tokio::select! {
            biased;
            () = runner.state.registry.left() => return,
            Some(event) = events.next() => log(&event),
        }
    }
}

fn log(event: &ServeEvent) {
    match event {
        ServeEvent::Claimed { run, .. } => tracing::info!(%run, "claimed the run"),
        ServeEvent::Suspect { run, crashes } => {
            tracing::warn!(%run, count = crashes.count, during = %crashes.during, "{}", crashes.sentence());
        }
        ServeEvent::Settled { run, settled } => tracing::debug!(%run, ?settled, "the run has settled"),
        ServeEvent::Released { run } => tracing::info!(%run, "released the run"),
        ServeEvent::Refused { run, error } => tracing::warn!(%run, %error, "cannot claim the run"),
        ServeEvent::Fired { timer, run } => {
            tracing::info!(trigger = %timer.trigger.id, %run, "started the trigger's run");
        }
        ServeEvent::NotFired { timer, error } => {
            tracing::warn!(trigger = %timer.trigger.id, %error, "cannot start the trigger's run");
        }
        ServeEvent::Failed(error) => tracing::warn!(%error, "cannot list the work of the store"),
    }
}
