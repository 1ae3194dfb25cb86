//! The lists of the server over many waiting runs, and many followers of one run.
//!
//! `cargo bench -p positronic-server --bench lists`, with `-- pages`, `-- clients` or `-- followers` for one of the tables.
//! `TMPDIR` sets the file system. The clients share the process and its cores with the server.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark prints, and stops at an error"
)]
#![allow(clippy::disallowed_methods, reason = "a benchmark measures time")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Actor, ModelRequest, RunId, Seq, Start, Timestamp};
use positronic_core::runner::{Client, RunUpdate};
use positronic_server::{Listener, Options, Scope, Token};
use positronic_sqlite::{Durability, SqliteOptions, SqliteStore};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// How many runs wait, and how many are started at once.
const RUNS: usize = 4000;
const AT_ONCE: usize = 64;
/// How many clients ask at once, and for how long.
const CLIENTS: usize = 200;
const TIME: Duration = Duration::from_secs(20);
/// How many pages are read for the processor's time of one.
const PAGES: usize = 200;
/// How many readers follow a run, of how many iterations of six events or so each, which take at least this long.
const FOLLOWERS: usize = 500;
const ITERATIONS: usize = 34;
const PACE: Duration = Duration::from_millis(10);

#[derive(Deserialize, JsonSchema)]
struct Amount {
    /// Euros
    amount: u32,
    /// Why the customer gets it
    reason: String,
}

fn refund() -> Brain<(), ()> {
    brain("Refund")
        .r#loop("Chat", |cx| {
            let refund = Tool::new("refund", |t| {
                t.description("Refunds money")
                    .requires_approval("it costs money")
                    .execute(async |Amount { amount, reason }, _| Ok(format!("refunded {amount}: {reason}")))
            });
            cx.system("You refund.").input("Refund the order.").tools([refund])
        })
        .build()
}

/// Calls `refund`, which waits for an approval.
fn refunds(_: &ModelRequest) -> Reply {
    Reply::call("refund", json!({ "amount": 120, "reason": "the parcel came late, and the customer has asked twice" }))
}

fn notes() -> Brain<(), ()> {
    brain("Notes")
        .r#loop("Chat", |cx| {
            let note = Tool::new("note", |t| {
                t.description("Takes a note").execute(async |Amount { amount, reason }, _| {
                    tokio::time::sleep(PACE).await;
                    Ok(format!("noted {amount}: {reason}"))
                })
            });
            cx.system("You take notes.").input("Take notes.").tools([note])
        })
        .build()
}

fn takes_notes(request: &ModelRequest) -> Reply {
    match request.messages.len() / 2 {
        done if done < ITERATIONS => {
            Reply::call("note", json!({ "amount": done, "reason": "a line of a note ".repeat(20) }))
        }
        _ => Reply::text("Done."),
    }
}

fn main() {
    let only: Vec<_> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let wanted = |name: &str| only.is_empty() || only.iter().any(|only| only == name);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        if wanted("pages") || wanted("clients") {
            let served = Served::new(ScriptedModel::from_fn(refunds), refund()).await;
            served.fill().await;
            if wanted("pages") {
                served.pages().await;
            }
            if wanted("clients") {
                served.clients().await;
            }
        }
        if wanted("followers") {
            followers(false).await;
            followers(true).await;
        }
    });
}

/// A store in a file and a server over it.
struct Served {
    runner: Runner,
    client: Client,
    brain: Brain<(), ()>,
    address: SocketAddr,
    http: reqwest::Client,
    _folder: tempfile::TempDir,
}

impl Served {
    async fn new(model: ScriptedModel, brain: Brain<(), ()>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = SqliteOptions::builder().path(folder.path().join("runs.db")).durability(Durability::ProcessCrash);
        let runner = Runner::new(model).store(SqliteStore::with(options.build()).unwrap()).brain(brain.clone());
        let client = runner.client();
        let options = Options::builder()
            .brains(runner.clone())
            .requests_per_minute(u32::MAX)
            .max_streams(2 * FOLLOWERS)
            .max_connections(8 * FOLLOWERS)
            .build();
        let listener = Listener::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        let address = listener.address().unwrap();
        tokio::spawn(listener.serve(client.clone(), options));
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { runner, client, brain, address, http, _folder: folder }
    }

    async fn fill(&self) {
        let begun = Instant::now();
        let started = futures::stream::iter(0..RUNS).map(|number| async move {
            let start = Start {
                user: Some(format!("user-{}", number % 100)),
                actor: Actor::from(format!("service-{}", number % 10)),
                ..Start::default()
            };
            let run = self.runner.start_with(self.brain.clone(), (), start).await.unwrap();
            run.settled().await;
        });
        started.buffer_unordered(AT_ONCE).collect::<()>().await;
        println!("{RUNS} runs wait after {:.1} s", begun.elapsed().as_secs_f64());
    }

    async fn token(&self, subject: String) -> String {
        let token = Token::builder().subject(subject).scopes(Scope::ALL).created(Timestamp(0)).build();
        Token::create(&self.client, token).await.unwrap().1
    }

    /// Reads a path. Returns whether that succeeded, and the bytes.
    async fn get(&self, token: &str, path: &str) -> (bool, usize) {
        let url = format!("http://{}{path}", self.address);
        let answer = self.http.get(url).bearer_auth(token).send().await;
        match answer {
            Ok(answer) => {
                let is_good = answer.status().is_success();
                answer.bytes().await.map_or((false, 0), |bytes| (is_good, bytes.len()))
            }
            Err(_) => (false, 0),
        }
    }

    /// Prints the processor's time of a page of each list, read one after the other.
    async fn pages(&self) {
        let token = self.token("reader".to_owned()).await;
        println!(
            "\na page of 50 of {RUNS} waiting runs, one after the other, with its client; median of 5 series of {PAGES}"
        );
        println!("{:<32} {:>9} {:>9} {:>9}", "list", "CPU ms", "wall ms", "bytes");
        let mut all = Vec::new();
        let lists =
            ["/api/v1/runs", "/api/v1/pending", "/api/v1/runs/counts?status=waiting", "/api/v1/pending?limit=500"];
        for list in lists {
            let count = if list.contains('?') { PAGES / 10 } else { PAGES };
            let mut bytes = 0;
            let mut series = Vec::new();
            for _ in 0..5 {
                let (begun, cpu) = (Instant::now(), cpu());
                for _ in 0..count {
                    let (is_good, read) = self.get(&token, list).await;
                    assert!(is_good, "{list}");
                    bytes = read;
                }
                let each = |time: Duration| time.as_secs_f64() * 1000.0 / count as f64;
                series.push((each(self::cpu() - cpu), each(begun.elapsed())));
            }
            series.sort_by(|one, other| one.0.total_cmp(&other.0));
            let (cpu, wall) = series[2];
            println!("{list:<32} {cpu:>9.2} {wall:>9.2} {bytes:>9}");
            all.push(cpu);
        }
        println!("/pending / /runs: {:.2} times the processor's time", all[1] / all[0]);
    }

    /// Prints how many requests of many clients were answered, and after which time.
    async fn clients(&self) {
        println!("\n{CLIENTS} clients for {} s, over {RUNS} waiting runs", TIME.as_secs());
        println!(
            "{:<32} {:>7} {:>9} {:>9} {:>9} {:>9} {:>7}",
            "list", "answers", "a second", "p50 ms", "p99 ms", "max ms", "errors"
        );
        let end = Instant::now() + TIME;
        let clients = (0..CLIENTS).map(|number| async move {
            let token = self.token(format!("client-{number}")).await;
            let mut seen = [Vec::new(), Vec::new()];
            let mut failed = [0, 0];
            for turn in number.. {
                if Instant::now() >= end {
                    break;
                }
                let (list, path) = if turn % 2 == 0 { (0, "/api/v1/pending") } else { (1, "/api/v1/runs") };
                let begun = Instant::now();
                let (is_good, _) = self.get(&token, path).await;
                seen[list].push(begun.elapsed());
                failed[list] += usize::from(!is_good);
            }
            (seen, failed)
        });
        let all = futures::future::join_all(clients).await;
        for (list, name) in ["/api/v1/pending", "/api/v1/runs"].into_iter().enumerate() {
            let mut times: Vec<_> = all.iter().flat_map(|(seen, _)| seen[list].iter().copied()).collect();
            let failed: usize = all.iter().map(|(_, failed)| failed[list]).sum();
            times.sort();
            let at = |part: usize| {
                times
                    .get((times.len() * part / 100).min(times.len() - 1))
                    .map_or(0.0, |time| time.as_secs_f64() * 1000.0)
            };
            let a_second = times.len() as f64 / TIME.as_secs_f64();
            let (p50, p99, max) = (at(50), at(99), at(100));
            println!("{name:<32} {:>7} {a_second:>9.1} {p50:>9.0} {p99:>9.0} {max:>9.0} {failed:>7}", times.len());
        }
    }
}

/// Prints what many readers of one run cost, through the server or the client of the process.
async fn followers(through_server: bool) {
    let how = if through_server { "server-sent events" } else { "Client::follow" };
    for count in [0, FOLLOWERS] {
        let served = Arc::new(Served::new(ScriptedModel::from_fn(takes_notes), notes()).await);
        let token = served.token("reader".to_owned()).await;
        let run = RunId::new("followed");
        let (seen, ready) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let start = Start { id: Some("followed".into()), ..Start::default() };
        // The first event comes before the readers, so that the run exists.
        let cpu_begun = cpu();
        let begun = Instant::now();
        let handle = served.runner.start_with(served.brain.clone(), (), start).await.unwrap();
        let readers: Vec<_> = (0..count)
            .map(|_| {
                let (served, token, run, seen, ready) =
                    (Arc::clone(&served), token.clone(), run.clone(), Arc::clone(&seen), Arc::clone(&ready));
                tokio::spawn(async move {
                    ready.fetch_add(1, Ordering::Relaxed);
                    let events = if through_server {
                        streamed(&served, &token, &run).await
                    } else {
                        followed(&served.client, &run).await
                    };
                    seen.fetch_add(events, Ordering::Relaxed);
                })
            })
            .collect();
        handle.result().await.unwrap();
        let ended = begun.elapsed();
        for reader in readers {
            reader.await.unwrap();
        }
        let (all, cpu) = (begun.elapsed(), cpu() - cpu_begun);
        let events = served.client.events(&run, Seq(0)).await.unwrap().len();
        assert_eq!(seen.load(Ordering::Relaxed), events * count, "each reader sees each event once");
        println!(
            "{how}: {count} readers of {events} events: {:.2} s of the processor; the run took {:.2} s, its readers {:.2} s",
            cpu.as_secs_f64(),
            ended.as_secs_f64(),
            all.as_secs_f64()
        );
    }
}

/// Follows a run to its end, and returns how many events it has.
async fn followed(client: &Client, run: &RunId) -> usize {
    let mut updates = client.follow(run, Seq(0));
    let mut events = 0;
    while let Some(update) = updates.next().await {
        events += usize::from(matches!(update.unwrap(), RunUpdate::Event(_)));
    }
    events
}

/// Reads the server-sent events of a run to their end, and returns how many events it has.
async fn streamed(served: &Served, token: &str, run: &RunId) -> usize {
    let url = format!("http://{}/api/v1/runs/{run}/events", served.address);
    let mut answer =
        served.http.get(url).bearer_auth(token).header("accept", "text/event-stream").send().await.unwrap();
    assert!(answer.status().is_success(), "{answer:?}");
    let mut text = Vec::new();
    while let Some(chunk) = answer.chunk().await.unwrap() {
        text.extend_from_slice(&chunk);
    }
    text.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"id:")).count()
}

/// Returns the processor's time of this process so far, of all its threads.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    // A tick is 10 ms on Linux.
    Duration::from_millis(ticks * 10)
}
