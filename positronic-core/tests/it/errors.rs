//! Errors of author code: convertible types, preserved causes, and retries.

use std::error::Error as StdError;
use std::fmt;
use std::io;

use anyhow::Context as _;
use positronic_core::prelude::*;
use positronic_core::runner::Settled;

use crate::support::{
    Job, Journal, Play, Shop, ShopBuilder, ShopTool, batch, done, error_of, events_named, results, success, workshop,
};

fn timed_out() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "no answer within 5 s")
}

/// An error of a client whose crate is not a dependency.
#[derive(Debug)]
struct Client(&'static str, Option<io::Error>);

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl StdError for Client {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.1.as_ref().map(|error| -> &(dyn StdError + 'static) { error })
    }
}

#[test]
fn question_mark_converts_any_error_and_keeps_its_chain() {
    fn boxed() -> Result<()> {
        let error: Box<dyn StdError + Send + Sync> = Box::new(Client("cannot reach the shop", Some(timed_out())));
        Err(error)?
    }
    fn anyhow() -> Result<()> {
        Err(anyhow::Error::new(Client("cannot reach the shop", Some(timed_out()))).context("order 7"))?
    }
    fn sentence() -> Result<()> {
        Err("no such order")?
    }
    assert_eq!(boxed().unwrap_err().to_string(), "cannot reach the shop: no answer within 5 s");
    assert_eq!(anyhow().unwrap_err().to_string(), "order 7: cannot reach the shop: no answer within 5 s");
    assert_eq!(sentence().unwrap_err().to_string(), "no such order");
    let source = anyhow().unwrap_err().into_source();
    assert_eq!(source.source().and_then(StdError::source).unwrap().to_string(), "no answer within 5 s");
}

#[test]
fn path_of_an_io_error_is_named_and_keeps_it_transient() {
    let missing = std::fs::read("none/prices.csv").path("none/prices.csv").unwrap_err();
    let late = Err::<(), _>(timed_out()).path("/mnt/prices.csv").unwrap_err();

    assert_eq!(missing.to_string(), "`none/prices.csv`: No such file or directory (os error 2)");
    assert_eq!(late.to_string(), "`/mnt/prices.csv`: no answer within 5 s");
    assert_eq!((missing.is_transient(), late.is_transient()), (false, true));
}

#[tokio::test(start_paused = true)]
async fn step_names_the_path_of_an_io_error_or_the_line_without_one() {
    fn read() -> Result<Vec<u8>> {
        Ok(std::fs::read("none/prices.csv")?)
    }
    let line = line!() - 2;
    let bare = brain("Bare").step("Load", async |_| read().map(drop));
    let function = brain("Function").step("Load", async |_| std::fs::read("none").map(drop).map_err(Error::from));
    let named = brain("Named").step("Load", async |_| std::fs::read("none").map(drop).path("none"));

    let mut messages = Vec::new();
    for brain in [bare, function, named] {
        let story = Play::new([]).run(&brain, ()).await;
        let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
        messages.push(failure.message.clone());
    }

    let missing = "No such file or directory (os error 2)";
    assert_eq!(
        messages,
        [
            format!("the step `Load` failed: {missing}, at {}:{line}", file!()),
            format!("the step `Load` failed: {missing}"),
            format!("the step `Load` failed: `none`: {missing}"),
        ]
    );
}

#[test]
fn timeouts_and_connection_errors_are_transient_anywhere_in_the_chain() {
    use io::ErrorKind;
    let of_kind = |kind: ErrorKind| Error::from(io::Error::from(kind)).is_transient();
    let lost = [
        ErrorKind::TimedOut,
        ErrorKind::ConnectionRefused,
        ErrorKind::ConnectionReset,
        ErrorKind::ConnectionAborted,
        ErrorKind::BrokenPipe,
        ErrorKind::HostUnreachable,
    ];
    assert!(lost.into_iter().all(of_kind));
    assert!(![ErrorKind::NotFound, ErrorKind::PermissionDenied, ErrorKind::InvalidData].into_iter().any(of_kind));

    let nested = Client("error sending request", Some(io::Error::other(Client("tls", Some(timed_out())))));
    assert!(Error::from(nested).is_transient(), "errors inside an `io::Error` are checked too");
    for message in ["operation timed out", "pool timed out while waiting for an open connection"] {
        assert!(Error::from(Client(message, None)).is_transient(), "{message}");
    }
    assert!(Error::from(Client("error: (code: 5) database is locked", None)).is_transient());
    assert!(!Error::from(Client("no such table", None)).is_transient());

    let wrapped: anyhow::Result<()> = Err(timed_out()).context("order 7");
    assert!(Error::from(wrapped.unwrap_err()).is_transient());
    #[cfg(feature = "anyhow")]
    assert!(Error::from(anyhow::Error::new(timed_out())).is_transient());
    assert!(!Error::permanent(timed_out()).is_transient(), "the author's setting wins");
    assert!(!Error::new("operation timed out").is_transient());
}

#[test]
fn busy_database_is_transient() {
    let failure = |code| rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
    assert!(Error::from(failure(rusqlite::ffi::SQLITE_BUSY)).is_transient());
    assert!(Error::from(failure(rusqlite::ffi::SQLITE_LOCKED)).is_transient());
    assert!(!Error::from(failure(rusqlite::ffi::SQLITE_CONSTRAINT)).is_transient());
}

#[tokio::test]
async fn failed_connection_of_reqwest_is_transient() {
    let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let plain = server.local_addr().unwrap();
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    // A server without TLS.
    let answers = tokio::spawn(async move {
        let (mut stream, _) = server.accept().await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stream, b"no TLS").await.unwrap();
    });

    for url in [format!("http://{closed}/"), "http://absent.invalid/".to_owned(), format!("https://{plain}/")] {
        let error = reqwest::get(&url).await.unwrap_err();
        assert!(error.is_connect(), "{url}: {error:?}");
        assert!(Error::from(error).is_transient(), "{url}");
    }
    answers.await.unwrap();
}

fn flaky(flags: fn(ShopBuilder) -> ShopBuilder) -> ShopTool {
    Tool::new("flaky", |t| {
        flags(t).execute(async |_: Job, cx: Shop| {
            if cx.services.count() < 3 {
                Err(timed_out())?;
            }
            Ok("at last")
        })
    })
}

#[tokio::test(start_paused = true)]
async fn timeout_behind_a_question_mark_is_retried_if_the_tool_is_repeatable() {
    for flags in [ShopBuilder::read_only as fn(ShopBuilder) -> ShopBuilder, ShopBuilder::idempotent] {
        let play = Play::new([batch([("flaky", "a")]), done()]);
        let story = play.run(&workshop(&Journal::default(), move |config| config.tools([flaky(flags)])), ()).await;
        assert_eq!(results(&story, "Work"), [success("at last")]);
        assert_eq!(events_named(&story, "LOOP_TOOL_RETRY").len(), 2);
    }
    let play = Play::new([batch([("flaky", "a")]), done()]);
    let story = play.run(&workshop(&Journal::default(), |config| config.tools([flaky(|t| t)])), ()).await;
    assert_eq!(error_of(&results(&story, "Work")[0]), "no answer within 5 s", "its effect may have happened");
}
