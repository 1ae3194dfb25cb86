//! Failures of connections: what an append reports, and how watchers go on.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use positronic_core::record::{RunId, Seq};
use positronic_core::store::prelude::*;
use positronic_core::store::{StoreError, Watcher};
use positronic_postgres::PostgresStore;
use positronic_store_suite::Sample;
use sqlx_core::executor::Executor as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::server;

/// How long a test waits for a watcher.
const PATIENCE: Duration = Duration::from_secs(20);

struct Bell(mpsc::UnboundedSender<Seq>);

impl Watcher for Bell {
    fn appended(&self, _: &RunId, next: Seq) {
        _ = self.0.send(next);
    }
}

async fn hears(told: &mut mpsc::UnboundedReceiver<Seq>, next: u64) {
    let heard = async { while told.recv().await.is_some_and(|seq| seq < Seq(next)) {} };
    tokio::time::timeout(PATIENCE, heard).await.expect("the watcher is notified");
}

/// A network between a store and the server.
#[derive(Clone, Default)]
struct Network(Arc<AtomicU8>);

impl Network {
    const WORKS: u8 = 0;
    /// Connections end when the server answers.
    const LOSES_ANSWERS: u8 = 1;
    /// New connections are closed at once.
    const REFUSES: u8 = 2;

    fn set(&self, mode: u8) {
        self.0.store(mode, Ordering::SeqCst);
    }

    fn mode(&self) -> u8 {
        self.0.load(Ordering::SeqCst)
    }

    /// Listens on a port that leads to the server.
    async fn open(&self, server: SocketAddr) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let network = self.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if network.mode() != Self::REFUSES {
                    tokio::spawn(network.clone().carry(client, server));
                }
            }
        });
        port
    }

    async fn carry(self, mut client: TcpStream, server: SocketAddr) {
        let mut server = TcpStream::connect(server).await.unwrap();
        let (mut up, mut down) = (vec![0; 65536], vec![0; 65536]);
        loop {
            tokio::select! {
                read = client.read(&mut up) => match read {
                    Ok(count) if count > 0 && server.write_all(&up[..count]).await.is_ok() => {}
                    _ => return,
                },
                read = server.read(&mut down) => match read {
                    Ok(count) if count > 0 && self.mode() != Self::LOSES_ANSWERS => {
                        if client.write_all(&down[..count]).await.is_err() {
                            return;
                        }
                    }
                    _ => return,
                },
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn append_without_an_answer_is_unknown_and_without_a_connection_failed() {
    let Some(database) = server::database().await else { return };
    let direct = database.open().await;
    let server: SocketAddr = database.url.split_once('@').unwrap().1.split_once('/').unwrap().0.parse().unwrap();
    let network = Network::default();
    let port = network.open(server).await;
    let mut options = database.options();
    options.url = format!("postgres://tester:s3cret@127.0.0.1:{port}/postgres");
    options.connect_timeout = Duration::from_millis(300);
    // The second append is then sent without a question before it.
    options.connections = 1;
    let store = PostgresStore::with(options).await.unwrap();
    let (sender, mut told) = mpsc::unbounded_channel();
    let bell: Arc<dyn Watcher> = Arc::new(Bell(sender));
    direct.watch(None, Arc::downgrade(&bell));
    let mut sample = Sample::new("run-1").says("one").appended(&store).await.says("two");
    // The notification of the first append has ended before its connection is free for this.
    hears(&mut told, 1).await;
    assert!(store.run(&sample.run).await.is_ok());

    network.set(Network::LOSES_ANSWERS);
    let lost = sample.append(&store).await.unwrap_err();
    network.set(Network::REFUSES);
    let unsent = sample.append(&store).await.unwrap_err();
    network.set(Network::WORKS);
    let again = sample.append(&store).await.unwrap_err();

    assert!(matches!(lost, StoreError::Unknown { .. }), "{lost:?}");
    assert!(matches!(unsent, StoreError::Failed { .. }), "{unsent:?}");
    assert_eq!(again, StoreError::Conflict { next: Seq(2) }, "the first try was written");
    assert_eq!(direct.read(&sample.run, Seq(0), 10).await.unwrap().len(), 2);
    assert!(!format!("{lost:?}{unsent:?}").contains("s3cret"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watcher_and_reads_survive_closed_connections() {
    let Some(database) = server::database().await else { return };
    let (store, other) = (database.open().await, database.open().await);
    let (sender, mut told) = mpsc::unbounded_channel();
    let bell: Arc<dyn Watcher> = Arc::new(Bell(sender));
    let run = RunId::new("run-1");
    store.watch(Some(&run), Arc::downgrade(&bell));
    let mut sample = Sample::new("run-1").says("one").appended(&other).await;
    hears(&mut told, 1).await;

    for next in 2..5 {
        let mut db = database.connect().await;
        let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                    WHERE application_name = 'positronic' AND query LIKE 'LISTEN%'";
        db.execute(kill).await.unwrap();
        sample = sample.says("more").appended(&other).await;
        hears(&mut told, next).await;
        assert_eq!(store.run(&run).await.unwrap().next, Seq(next));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_with_an_id_too_long_for_a_notification_is_watched() {
    let Some(database) = server::database().await else { return };
    let (store, other) = (database.open().await, database.open().await);
    let (sender, mut told) = mpsc::unbounded_channel();
    let bell: Arc<dyn Watcher> = Arc::new(Bell(sender));
    // A random text, which an index can hold only since it is compressible.
    let run = "\0".repeat(8000);
    store.watch(Some(&RunId::from(run.as_str())), Arc::downgrade(&bell));

    let sample = Sample::new(&run).says("one").appended(&other).await;
    hears(&mut told, 1).await;
    _ = sample.says("two").appended(&store).await;
    hears(&mut told, 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_append_leaves_no_broken_connection() {
    let Some(database) = server::database().await else { return };
    let mut options = database.options();
    options.connections = 1;
    let store = PostgresStore::with(options).await.unwrap();
    let mut db = database.connect().await;
    let sample = Sample::new("run-1").says("one").appended(&store).await;

    db.execute("BEGIN; SELECT FROM runs FOR UPDATE").await.unwrap();
    for _ in 0..3 {
        let waits = tokio::time::timeout(Duration::from_millis(50), sample.clone().says("two").append(&store)).await;
        assert!(waits.is_err(), "the row is locked");
    }
    assert_eq!(store.run(&sample.run).await.unwrap().next, Seq(1));
    db.execute("ROLLBACK").await.unwrap();

    // One of the cancelled appends may have come through.
    let next = store.run(&sample.run).await.unwrap().next;
    assert!(next <= Seq(2), "{next}");
}
