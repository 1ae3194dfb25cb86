//! The cost of durable runs in PostgreSQL.
//!
//! `cargo bench -p positronic-postgres --bench postgres`, with `-- rounds`, `-- lists`, `-- figures` or `-- sizes` for one of the parts.
//! It starts a server of its own, whose files lie in the temporary folder (`TMPDIR` names another disk), with `fsync`.
//!
//! Each run is compared with statements by hand that write the same rows, right after it and with as many connections,
//! since other work of the machine changes within seconds.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints, and stops at an error"
)]
#![allow(
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "a benchmark measures time, roughly"
)]

mod bare;
mod figures;
mod lists;
mod rounds;
#[path = "../../tests/it/server.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod server;
mod sizes;

fn main() {
    let only: Vec<_> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let wanted = |name: &str| only.is_empty() || only.iter().any(|only| only == name);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        if wanted("rounds") {
            rounds::measure().await;
        }
        if wanted("lists") {
            lists::measure().await;
        }
        if wanted("figures") {
            figures::measure().await;
        }
        if wanted("sizes") {
            sizes::measure().await;
        }
    });
}

/// Returns a new schema on a server that syncs its log, as it does by default.
fn database() -> server::Database {
    server::database_with(&["fsync=on", "shared_buffers=256MB"]).expect("PostgreSQL is installed")
}

/// Reads a number from the environment.
fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|number| number.parse().ok()).unwrap_or(default)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
