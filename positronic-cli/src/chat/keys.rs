//! What is typed, read on a thread of its own, which can be stopped so that a question has the keys for itself.

use std::io;
use std::thread::JoinHandle;
use std::time::Duration;

use crossterm::event::{Event, read};
use tokio::sync::mpsc::UnboundedSender;

use crate::session::answers::{Raw, Recall};

/// How many milliseconds it may take to stop.
const PATIENCE: u32 = 1_000;

/// The keyboard, for as long as this is held.
pub(super) struct Keys {
    stop: Recall,
    thread: Option<JoinHandle<()>>,
    _raw: Raw,
}

impl Keys {
    /// Begins to read; what was read goes to `typed`. A terminal that is gone is the last thing that is read.
    pub(super) fn read(typed: UnboundedSender<io::Result<Event>>) -> io::Result<Self> {
        let raw = Raw::enter()?;
        let stop = Recall::default();
        let stopped = stop.clone();
        let thread = std::thread::Builder::new().name("keys".to_owned()).spawn(move || {
            loop {
                let event = match stopped.typed() {
                    Ok(false) => return,
                    Ok(true) => read(),
                    Err(error) => Err(error),
                };
                let is_gone = event.is_err();
                if typed.send(event).is_err() || is_gone {
                    return;
                }
            }
        })?;
        Ok(Self { stop, thread: Some(thread), _raw: raw })
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.stop.set();
        // Whoever reads next must be alone. A thread that is stuck in a terminal that is gone must not hold the process.
        let Some(thread) = self.thread.take() else { return };
        for _ in 0..PATIENCE {
            if thread.is_finished() {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
