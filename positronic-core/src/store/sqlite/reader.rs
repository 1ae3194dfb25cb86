//! The threads that read.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use futures::channel::oneshot;
use rusqlite::{Connection, InterruptHandle};

use super::failure::{Place, Trouble, caught, ended};
use crate::store::StoreError;

type Question = Box<dyn FnOnce(&mut Connection) + Send>;

/// The way to some threads that read, each with a connection of its own.
pub(super) struct Readers {
    questions: Sender<Question>,
    interrupts: Vec<InterruptHandle>,
    place: Place,
}

impl Drop for Readers {
    /// Ends what is read for nobody: whoever waits for an answer has the store.
    fn drop(&mut self) {
        for interrupt in &self.interrupts {
            interrupt.interrupt();
        }
    }
}

impl Readers {
    /// Starts a thread for each connection.
    pub(super) fn start(place: Place, connections: Vec<Connection>) -> Result<(Self, Vec<JoinHandle<()>>), Trouble> {
        let (questions, receiver) = channel();
        let receiver = Arc::new(Mutex::new(receiver));
        let interrupts = connections.iter().map(Connection::get_interrupt_handle).collect();
        let start = |db| {
            let receiver = Arc::clone(&receiver);
            let thread = std::thread::Builder::new().name("positronic-reader".to_owned());
            let thread = thread.spawn(move || work(db, &receiver));
            thread.map_err(|error| Trouble::Refused(StoreError::Failed { message: error.to_string() }))
        };
        let threads = connections.into_iter().map(start).collect::<Result<_, _>>()?;
        Ok((Self { questions, interrupts, place }, threads))
    }

    /// Answers a question from one state of the file, whatever is written meanwhile.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Connection) -> Result<T, Trouble> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let question: Question = Box::new(move |db: &mut Connection| {
            if !reply.is_canceled() {
                _ = reply.send(caught(|| question(&*db.transaction()?)));
            }
        });
        self.questions.send(question).map_err(|_| ended())?;
        answer.await.map_err(|_| ended())?.map_err(|trouble| self.place.explain(trouble))
    }
}

fn work(mut db: Connection, questions: &Mutex<Receiver<Question>>) {
    loop {
        let question = questions.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match question {
            Ok(question) => question(&mut db),
            Err(_) => return,
        }
    }
}
