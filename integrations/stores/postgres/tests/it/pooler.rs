//! PgBouncer in transaction mode, which gives each transaction the next free connection of the server.
//!
//! It needs `pgbouncer`, such as from Debian's package. Where it is missing, tests are skipped with that reason, but fail if
//! `CI` is set.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use positronic_core::store::prelude::*;
use positronic_core::store::{EventSearch, RunFilter, StoreError};
use positronic_postgres::{PostgresOptions, PostgresStore};
use positronic_store_suite::Sample;

use crate::server::{self, Database};

/// A pooler before the server of a database. It ends with the test.
struct Pooler {
    port: u16,
    child: Child,
    _folder: tempfile::TempDir,
}

impl Drop for Pooler {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn program() -> Option<PathBuf> {
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&on_path).chain([PathBuf::from("/usr/sbin")]);
    let found = folders.map(|folder| folder.join("pgbouncer")).find(|program| program.is_file());
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "no PgBouncer; install Debian's package `pgbouncer`");
        eprintln!("skipped: no PgBouncer");
    }
    found
}

impl Pooler {
    /// Starts a pooler with one connection of the server, and further settings.
    fn before(database: &Database, settings: &str) -> Option<Self> {
        let program = program()?;
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (of_server, file) = (database.port(), folder.path().join("pgbouncer.ini"));
        let content = format!(
            "[databases]\n* = host=127.0.0.1 port={of_server} user=tester\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             auth_type = any\nunix_socket_dir =\npool_mode = transaction\ndefault_pool_size = 1\n{settings}\n"
        );
        fs::write(&file, content).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        let mut command: Command = server::as_nobody(&program);
        let child = command.arg("-q").arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let pooler = Self { port, child: child.spawn().unwrap(), _folder: folder };
        let deadline = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "the pooler does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(pooler)
    }

    async fn open(&self, database: &Database, parameters: &str) -> Result<PostgresStore, StoreError> {
        let url = format!("postgres://tester@127.0.0.1:{}/postgres?{parameters}", self.port);
        PostgresStore::with(PostgresOptions::builder().url(url).schema(&database.schema).connections(3).build()).await
    }
}

#[tokio::test]
async fn statements_without_names_hold_behind_a_pooler_in_transaction_mode() {
    let Some(database) = server::database().await else { return };
    let Some(pooler) = Pooler::before(&database, "") else { return };
    let unprepared = "prepared_statements=false";
    let absent = pooler.open(&database, unprepared).await.unwrap_err();
    assert!(matches!(&absent, StoreError::Unusable { message } if message.contains("through a pooler")), "{absent:?}");
    drop(database.open().await);

    let mut stores = Vec::new();
    for _ in 0..3 {
        stores.push(pooler.open(&database, unprepared).await.unwrap());
    }
    let appends = stores.iter().enumerate().flat_map(|(process, store)| {
        (0..10).map(move |run| Sample::new(&format!("run-{process}-{run}")).says("a needle").appended(store))
    });
    futures::future::join_all(appends).await;

    let [one, two, three] = &stores[..] else { panic!("three stores") };
    assert_eq!(one.runs(&RunFilter::default()).await.unwrap().len(), 30);
    assert_eq!(two.search(&EventSearch::new("NEEDLE", 50)).await.unwrap().found.len(), 30);
    let file = three.put_blob(vec![7; 3 << 20], positronic_core::record::Timestamp(1)).await.unwrap();
    assert_eq!(one.blob(&file).await.unwrap().map(|bytes| bytes.len()), Some(3 << 20));
    let lease = two.acquire_lease().await.unwrap();
    let owner = lease.owner().to_owned();
    assert_eq!(three.is_lease_live(&owner).await, Ok(true));
    tokio::task::spawn_blocking(|| drop(lease)).await.unwrap();
    assert_eq!(three.is_lease_live(&owner).await, Ok(false), "a dropped lease is released");
}

#[tokio::test]
async fn pooler_that_refuses_or_mixes_up_what_a_session_needs_is_named() {
    let Some(database) = server::database().await else { return };
    drop(database.open().await);
    let Some(pooler) = Pooler::before(&database, "") else { return };
    let refused = pooler.open(&database, "").await.unwrap_err();
    let advice = "add the parameter `prepared_statements=false` to the address";
    assert!(matches!(&refused, StoreError::Unusable { message } if message.contains(advice)), "{refused:?}");

    // From 1.21 on it would know prepared statements, with this setting.
    let Some(pooler) = Pooler::before(&database, "ignore_startup_parameters = options") else { return };
    let mut failed = None;
    let mut stores = Vec::new();
    for process in 0..3 {
        let store = pooler.open(&database, "").await.unwrap();
        failed = failed.or(Sample::new(&format!("run-{process}")).says("one").append(&store).await.err());
        stores.push(store);
    }
    let failed = failed.expect("the stores use the same names on one connection");
    assert!(matches!(&failed, StoreError::Unusable { message } if message.contains(advice)), "{failed:?}");
}
