//! The log: its lines, and what pages of the guide promise of it.

use std::time::Duration;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_plugins::{Fact, FactId, FactOwner, FactStore, Memory};
use tracing::subscriber::{DefaultGuard, set_default};

use super::*;

const SOON: Duration = Duration::from_secs(20);

/// What was written to stderr.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A log of this thread.
struct Bench {
    log: Log,
    err: Output,
    paper: Paper,
    problem: Option<String>,
    _default: DefaultGuard,
}

impl Bench {
    fn new(filter: Option<&str>, format: Option<&str>) -> Self {
        let paper = Paper::default();
        let err = Output::new("stderr", paper.clone(), None);
        let log = Log::to(err.clone());
        let settings = LogSettings { filter: filter.map(str::to_owned), format: format.map(str::to_owned) };
        let (subscriber, problem) = log.subscriber(&settings);
        Self { log, err, paper, problem, _default: set_default(subscriber) }
    }

    /// Returns the lines without their times.
    fn lines(&self) -> Vec<String> {
        assert!(self.err.is_drained(SOON));
        let text = String::from_utf8(self.paper.0.lock().unwrap().clone()).unwrap();
        text.lines().map(|line| line.split_once("Z ").map_or(line, |(_, rest)| rest).trim().to_owned()).collect()
    }
}

#[test]
fn event_is_one_line_without_control_characters() {
    let bench = Bench::new(None, None);

    tracing::warn!(error = %"no such\nzone \u{1b}[2J\u{202e}", "cannot evaluate the schedule");
    tracing::info!("claimed the run");

    let said = "WARN positronic_cli::app::io::log::tests: cannot evaluate the schedule error=no such ⏎ zone ";
    let lines = bench.lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with(said) && !lines[0].contains(['\u{1b}', '\u{202e}']), "{lines:?}");
}

#[test]
fn filter_chooses_levels_by_module() {
    let bench = Bench::new(Some("off,positronic_cli::app=info"), None);
    tracing::info!("seen");
    tracing::debug!("not seen");
    tracing::warn!(target: "other", "not seen");
    assert_eq!(bench.lines(), ["INFO positronic_cli::app::io::log::tests: seen"]);
    drop(bench);

    let bench = Bench::new(Some("loud=very"), None);
    tracing::warn!("seen");
    let problem = bench.problem.clone().unwrap();
    assert!(problem.starts_with("POSITRONIC_LOG: cannot read the filter `loud=very`: "), "{problem}");
    assert!(problem.ends_with("; logging warnings and errors"), "{problem}");
    assert_eq!(bench.lines().len(), 1, "a filter that cannot be read does not silence the log");
}

#[test]
fn json_has_an_object_per_line() {
    let bench = Bench::new(None, Some("json"));

    tracing::error!(request = "r-1", cause = "disk\nfull \u{202e}", "a request failed");

    let line = bench.lines().remove(0);
    assert!(!line.contains('\u{202e}'), "{line}");
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&line["level"], &line["message"]), (&"ERROR".into(), &"a request failed".into()));
    assert_eq!((&line["request"], &line["cause"]), (&"r-1".into(), &"disk\nfull \u{202e}".into()));
}

#[test]
fn display_gets_the_lines_that_it_holds_back() {
    let bench = Bench::new(None, None);
    let held = bench.log.buffer();
    tracing::warn!("first");
    assert_eq!(bench.lines(), [""; 0]);
    assert!(held.take().pop().unwrap().ends_with("first"));

    for number in 0..MAX_BUFFERED + 5 {
        tracing::warn!(number, "more");
    }
    drop(held);
    tracing::warn!("last");

    let lines = bench.lines();
    assert_eq!(lines[0], "lines of the log that were dropped, since the display did not show them: 5");
    assert_eq!(lines.len(), MAX_BUFFERED + 2);
    assert!(lines.last().unwrap().ends_with("last"));
}

#[test]
fn log_that_nothing_reads_blocks_nothing() {
    let (sender, permits) = std::sync::mpsc::channel::<()>();
    struct Stuck(std::sync::mpsc::Receiver<()>);
    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            _ = self.0.recv();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let err = Output::new("stderr", Stuck(permits), None);
    let log = Log::to(err.clone());
    let _default = set_default(log.subscriber(&LogSettings::default()).0);

    for _ in 0..3000 {
        tracing::warn!(text = %"x".repeat(1000), "long");
    }

    assert!(!err.has_room());
    drop(sender);
    assert!(err.is_drained(SOON));
}

/// Facts that cannot be searched.
struct Away;

impl FactStore for Away {
    async fn remember(&self, _: &FactOwner, _: &str) -> Result<Fact> {
        Err("away".into())
    }

    async fn search(&self, _: &FactOwner, _: &str, _: usize) -> Result<Vec<Fact>> {
        Err("the index is away".into())
    }

    async fn forget(&self, _: &FactOwner, _: &FactId) -> Result<bool> {
        Err("away".into())
    }

    async fn list(&self, _: &FactOwner) -> Result<Vec<Fact>> {
        Err("away".into())
    }
}

/// The guide's page on plugins: "`Memory` and `Blueprints` continue without a search that fails, and log a warning."
#[tokio::test]
async fn search_of_memory_that_fails_is_in_the_log() {
    let bench = Bench::new(None, None);
    let talk = brain("Talk").r#loop("Talk", |cx| cx.system("Talk.").input("Hello").plugin(Memory::new(Away)));
    Runner::new(ScriptedModel::new([Reply::text("Hello.")])).start(talk, ()).await.unwrap().result().await.unwrap();

    let lines = bench.lines();
    let line = lines.iter().find(|line| line.contains("no facts are found for this iteration"));
    assert!(line.is_some_and(|line| line.contains("error=the index is away")), "{lines:?}");
}

#[cfg(feature = "serve")]
mod served {
    use positronic_core::runner::Client;
    use positronic_core::store::{MemoryStore, StoreError};
    use positronic_server::webhooks::{Hooks, StandardWebhooks};
    use positronic_server::{Listener, Options, Shutdown};
    use positronic_store_suite::FaultyStore;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// Sends a request to a server whose store cannot be read, and returns the answer.
    async fn ask(request: &str) -> String {
        let store = FaultyStore::new(MemoryStore::new(), |_, _| None)
            .reading(|_| Some(StoreError::Failed { message: "the disk is gone".to_owned() }));
        let hooks =
            Hooks::default().add("orders", StandardWebhooks::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap());
        let shutdown = Shutdown::default();
        let options = Options::builder().hooks(hooks).shutdown(shutdown.clone()).build();
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = listener.address().unwrap();
        let served = tokio::spawn(listener.serve(Client::new(store), options));
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let head = "Host: localhost\r\nX-Request-Id: r-4711\r\nConnection: close\r\n";
        stream.write_all(format!("{request} HTTP/1.1\r\n{head}\r\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        shutdown.begin();
        served.await.unwrap();
        answer
    }

    /// The guide's page on serving: "A failure of the server answers only the id of the request; its log has the cause under that id."
    #[tokio::test]
    async fn cause_of_a_failed_request_is_in_the_log_under_its_id() {
        let bench = Bench::new(None, None);

        let answer = ask("GET /readyz").await;

        assert!(answer.contains("urn:request:r-4711") && !answer.contains("the disk is gone"), "{answer}");
        let lines = bench.lines();
        let line = lines.iter().find(|line| line.contains("request=\"r-4711\""));
        assert!(line.is_some_and(|line| line.contains("the disk is gone")), "{lines:?}");
    }

    /// The guide's page on webhooks: "The answer does not tell which; the server's log does."
    #[tokio::test]
    async fn reason_for_the_refusal_of_a_webhook_is_in_the_log() {
        for (path, reason) in [("others/T-1", "it is unknown"), ("orders/T-1", "the header `webhook-id` is missing")] {
            let bench = Bench::new(None, None);

            let answer = ask(&format!("POST /api/v1/hooks/{path}")).await;

            assert!(answer.starts_with("HTTP/1.1 401") && !answer.contains(reason), "{answer}");
            let lines = bench.lines();
            assert!(lines.iter().any(|line| line.contains("refused a webhook") && line.contains(reason)), "{lines:?}");
        }
    }
}
