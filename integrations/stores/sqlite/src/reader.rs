//! The threads that read.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use futures::channel::oneshot;
use parking_lot::Mutex;
use positronic_core::store::StoreError;
use rusqlite::{Connection, InterruptHandle};

use super::failure::{DbError, StoreFile, catch_panic, store_closed};

/// Number of reader threads: two, so that one long log does not block all other reads.
pub(super) const READERS: usize = 2;

type Query = Box<dyn FnOnce(&mut Connection) + Send>;

/// A pool of threads that read, each with its own connection.
pub(super) struct Readers {
    queries: Sender<Query>,
    interrupts: Vec<InterruptHandle>,
    store_file: StoreFile,
}

impl Drop for Readers {
    /// Interrupts running queries: callers that still need a reply keep the store alive.
    fn drop(&mut self) {
        for interrupt in &self.interrupts {
            interrupt.interrupt();
        }
    }
}

impl Readers {
    /// Starts a thread for each connection.
    pub(super) fn start(
        store_file: StoreFile,
        connections: Vec<Connection>,
    ) -> Result<(Self, Vec<JoinHandle<()>>), DbError> {
        let (queries, receiver) = channel();
        let receiver = Arc::new(Mutex::new(receiver));
        let interrupts = connections.iter().map(Connection::get_interrupt_handle).collect();
        let start = |db| {
            let receiver = Arc::clone(&receiver);
            let thread = std::thread::Builder::new().name("positronic-reader".to_owned());
            let thread = thread.spawn(move || work(db, &receiver));
            thread.map_err(|error| DbError::Refused(StoreError::Failed { message: error.to_string() }))
        };
        let threads = connections.into_iter().map(start).collect::<Result<_, _>>()?;
        Ok((Self { queries, interrupts, store_file }, threads))
    }

    /// Runs a query on a consistent snapshot of the file.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, DbError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let query: Query = Box::new(move |db: &mut Connection| {
            if !reply.is_canceled() {
                _ = reply.send(catch_panic(|| query(&*db.transaction()?)));
            }
        });
        self.queries.send(query).map_err(|_| store_closed())?;
        answer.await.map_err(|_| store_closed())?.map_err(|db_error| self.store_file.explain(db_error))
    }
}

fn work(mut db: Connection, queries: &Mutex<Receiver<Query>>) {
    loop {
        let query = queries.lock().recv();
        match query {
            Ok(query) => query(&mut db),
            Err(_) => return,
        }
    }
}
