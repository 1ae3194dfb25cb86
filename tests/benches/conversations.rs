//! What a message to a conversation costs at its 10th, 200th and 1,000th turn, up to the end of the answer.
//!
//! `cargo bench -p positronic-tests --bench conversations`. `TMPDIR` sets the file system. Many conversations grow at once, so
//! that the processor's time of a turn can be measured in ticks of 10 ms.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints, and stops at an error")]

use std::time::Duration;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::store::{EventStore, MemoryStore};
use positronic_sqlite::{Durability, SqliteOptions, SqliteStore};

/// How many conversations there are, each with a known history.
const CONVERSATIONS: usize = 32;
/// How many turns are measured before each of these.
const MEASURED: usize = 10;
const AT: [usize; 3] = [10, 200, 1000];

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    println!("{:<16} {:>6} {:>12}", "store", "turn", "CPU ms");
    runtime.block_on(async {
        measure("memory", MemoryStore::new()).await;
        let folder = tempfile::tempdir().unwrap();
        let options = SqliteOptions::builder().path(folder.path().join("runs.db")).durability(Durability::ProcessCrash);
        measure("SQLite", SqliteStore::with(options.build()).unwrap()).await;
    });
}

async fn measure(name: &str, store: impl EventStore) {
    let runner = Runner::new(ScriptedModel::from_fn(|_| Reply::text("An answer of some words."))).store(store);
    let helper = brain("Helper").r#loop("Chat", |cx| cx.system("Help.")).build();
    let (mut turn, mut first) = (0, 0.0);
    for at in AT {
        while turn < at - MEASURED {
            say(&runner, &helper, turn).await;
            turn += 1;
        }
        let before = cpu();
        while turn < at {
            say(&runner, &helper, turn).await;
            turn += 1;
        }
        let each =
            (cpu() - before).as_secs_f64() * 1000.0 / f64::from(u32::try_from(MEASURED * CONVERSATIONS).unwrap());
        if first == 0.0 {
            first = each;
        }
        println!("{name:<16} {at:>6} {each:>12.3}  {:.2} times the first", each / first);
    }
}

async fn say(runner: &Runner, helper: &Brain<(), ()>, turn: usize) {
    for conversation in 0..CONVERSATIONS {
        let chat = runner.conversation(format!("chat-{conversation}"));
        chat.send(helper, (), format!("message {turn} of a person")).await.unwrap().result().await.unwrap();
    }
}

/// Returns the processor's time of this process so far, of all its threads.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let mut fields = stat.rsplit(')').next().unwrap().split_whitespace().skip(11);
    let mut ticks = || fields.next().unwrap().parse::<u64>().unwrap();
    // A tick is 10 ms on Linux.
    Duration::from_millis((ticks() + ticks()) * 10)
}
