//! A PostgreSQL server for the tests of one binary.
//!
//! It needs `initdb` and `postgres`, in the path or in Debian's folder, such as from the package `postgresql`. Where they
//! are missing, tests are skipped with that reason, but fail if `CI` is set. PostgreSQL refuses to run as root, so that a
//! root user starts it as `nobody`. The server ends with the test binary, however that ends: a shell waits for the end of
//! its input.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use positronic_postgres::{PostgresOptions, PostgresStore};
use sqlx_core::connection::ConnectOptions as _;
use sqlx_postgres::{PgConnectOptions, PgConnection};

/// How long the server may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running server.
pub(crate) struct Server {
    pub(crate) port: u16,
    /// The shell that restarts the server for each line of its input, and stops it when its input ends.
    child: Child,
    folder: PathBuf,
}

static SERVER: OnceLock<Result<Server, String>> = OnceLock::new();

/// A database schema for one test.
pub(crate) struct Database {
    pub(crate) url: String,
    pub(crate) schema: String,
}

/// The settings of a server for tests.
const SETTINGS: &[&str] = &["fsync=off", "shared_buffers=32MB"];

/// Returns a new schema, or `None` if there is no server, for which the test is skipped.
#[expect(clippy::unused_async, reason = "the suite awaits it in its runtime")]
pub(crate) async fn database() -> Option<Database> {
    database_with(SETTINGS)
}

/// Returns a new schema; the first call starts the server with these settings.
pub(crate) fn database_with(settings: &[&str]) -> Option<Database> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let server = usable(SERVER.get_or_init(|| start(settings, false)).as_ref())?;
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    Some(Database { url: server.url(), schema: format!("Test {number}") })
}

/// Returns a server of its own for a test that restarts it, or `None` if there is none.
pub(crate) fn own_server() -> Option<Server> {
    usable(start(SETTINGS, false))
}

/// Returns a server that accepts only encrypted connections, or `None` if there is none. That of PyPI has no encryption.
pub(crate) fn encrypted_server() -> Option<Server> {
    match start(SETTINGS, true) {
        Err(reason) if reason.contains("SSL is not supported by this build") => {
            eprintln!("skipped: {reason}");
            None
        }
        server => usable(server),
    }
}

/// Returns a command that runs as a user who is not root.
pub(crate) fn as_nobody(program: &Path) -> Command {
    unprivileged(is_root().unwrap_or_default(), program)
}

fn usable<T, E: std::fmt::Display>(server: Result<T, E>) -> Option<T> {
    match server {
        Ok(server) => Some(server),
        Err(reason) => {
            assert!(std::env::var_os("CI").is_none(), "no PostgreSQL server: {reason}");
            eprintln!("skipped: no PostgreSQL server: {reason}");
            None
        }
    }
}

impl Server {
    fn url(&self) -> String {
        format!("postgres://tester@127.0.0.1:{}/postgres", self.port)
    }

    /// Returns the server's schema.
    pub(crate) fn database(&self) -> Database {
        Database { url: self.url(), schema: "Test".to_owned() }
    }

    /// Restarts the server as `pg_ctl restart -m immediate` does, and waits until it is ready.
    pub(crate) fn restart(&mut self) {
        let before = self.starts();
        writeln!(self.child.stdin.as_mut().unwrap(), "restart").unwrap();
        let deadline = Instant::now() + PATIENCE;
        while self.starts() == before {
            assert!(Instant::now() < deadline, "the server does not start again");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns how often the server has become ready.
    fn starts(&self) -> usize {
        let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        log.matches("database system is ready to accept connections").count()
    }
}

impl Database {
    /// Returns the server's port.
    pub(crate) fn port(&self) -> u16 {
        let (_, place) = self.url.rsplit_once(':').unwrap();
        place.split_once('/').unwrap().0.parse().unwrap()
    }

    pub(crate) async fn open(&self) -> PostgresStore {
        PostgresStore::with(self.options()).await.expect("the store opens")
    }

    /// Returns the options of a store with few connections.
    pub(crate) fn options(&self) -> PostgresOptions {
        let options = PostgresOptions::builder().url(&self.url).schema(&self.schema).connections(4);
        options.lease_ttl(Duration::from_secs(20)).build()
    }

    /// Connects without the store, with the schema as search path.
    pub(crate) async fn connect(&self) -> PgConnection {
        let options: PgConnectOptions = self.url.parse().unwrap();
        options.options([("search_path", format!("\"{}\"", self.schema))]).connect().await.unwrap()
    }
}

/// Finds the programs of the newest installed version.
fn programs() -> Result<PathBuf, String> {
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&on_path).collect();
    let mut versions: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .map(|entries| entries.flatten().map(|entry| entry.path().join("bin")).collect())
        .unwrap_or_default();
    versions.sort();
    folders.extend(versions.into_iter().rev());
    let missing = "`initdb` and `postgres` are neither in PATH nor in /usr/lib/postgresql/*/bin; install Debian's package \
                   `postgresql`";
    folders
        .into_iter()
        .find(|folder| folder.join("initdb").is_file() && folder.join("postgres").is_file())
        .ok_or_else(|| missing.to_owned())
}

/// Returns a command that runs as a user who is not root.
fn unprivileged(is_root: bool, program: &Path) -> Command {
    if !is_root {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups"]).arg(program);
    command
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` passes the error by value")]
fn text(error: std::io::Error) -> String {
    error.to_string()
}

fn is_root() -> Result<bool, String> {
    let user = Command::new("id").arg("-u").output().map_err(text)?;
    Ok(user.stdout.trim_ascii() == b"0")
}

/// Lets the server accept only encrypted connections, with the certificate of the tests.
fn encrypt(is_root: bool, folder: &Path, data: &Path) -> Result<(), String> {
    for name in ["server.pem", "server.key"] {
        let given = folder.join(name);
        fs::copy(format!("{}/tests/data/tls/{name}", env!("CARGO_MANIFEST_DIR")), &given).map_err(text)?;
        fs::set_permissions(&given, fs::Permissions::from_mode(0o644)).map_err(text)?;
        // The server's user must own its key.
        let mut install = unprivileged(is_root, Path::new("install"));
        let installed = install.args(["-m", "600"]).arg(&given).arg(data.join(name)).status().map_err(text)?;
        assert!(installed.success(), "cannot install {name}");
    }
    let rules = data.join("pg_hba.conf");
    let rules_of_all = "hostssl all all all trust\n";
    fs::write(folder.join("rules"), rules_of_all).map_err(text)?;
    let copied = unprivileged(is_root, Path::new("cp")).arg(folder.join("rules")).arg(rules).status().map_err(text)?;
    copied.success().then_some(()).ok_or_else(|| "cannot write pg_hba.conf".to_owned())
}

fn start(settings: &[&str], is_encrypted: bool) -> Result<Server, String> {
    let programs = programs()?;
    let is_root = is_root()?;
    // In the temporary folder itself, which every user can enter. The shell removes it.
    let folder = tempfile::Builder::new().prefix("positronic-pg-").tempdir().map_err(text)?.keep();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).map_err(text)?;
    let data = folder.join("data");
    let made = unprivileged(is_root, &programs.join("initdb"))
        .args(["--no-sync", "--auth=trust", "--username=tester", "--encoding=UTF8", "--locale=C"])
        .arg(&data)
        .current_dir(&folder)
        .output()
        .map_err(text)?;
    if !made.status.success() {
        return Err(format!("initdb failed: {}", String::from_utf8_lossy(&made.stderr)));
    }
    let mut settings = settings.to_vec();
    if is_encrypted {
        encrypt(is_root, &folder, &data)?;
        settings.extend(["ssl=on", "ssl_cert_file=server.pem", "ssl_key_file=server.key"]);
    }
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).map_err(text)?.port();
    // The shell ignores the end of the terminal's session, and `read` returns when this process has ended.
    let script = "trap '' INT HUP
        serve() { \"$@\" >>\"$folder/log\" 2>&1 </dev/null & }
        folder=$0
        serve \"$@\"
        while read -r _; do kill -QUIT $!; wait $!; serve \"$@\"; done
        kill -QUIT $! && wait $!
        rm -rf \"$folder\"";
    let server = unprivileged(is_root, &programs.join("postgres"));
    let child = Command::new("sh")
        .arg("-c")
        .arg(script)
        .arg(&folder)
        .arg(server.get_program())
        .args(server.get_args())
        .arg("-D")
        .arg(&data)
        .args(["-p", &port.to_string(), "-k"])
        .arg(&folder)
        .args(["-c", "listen_addresses=127.0.0.1", "-c", "max_connections=400"])
        .args(settings.iter().flat_map(|setting| ["-c", setting]))
        .current_dir(&folder)
        .stdin(Stdio::piped())
        .spawn()
        .map_err(text)?;
    let server = Server { port, child, folder };
    let deadline = Instant::now() + PATIENCE;
    while server.starts() == 0 {
        let log = fs::read_to_string(server.folder.join("log")).unwrap_or_default();
        if Instant::now() > deadline || log.contains("SSL is not supported") {
            return Err(format!("the server does not answer: {log}"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(server)
}
