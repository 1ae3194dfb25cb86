//! Watchdog that fails a test program if one of its tests runs too long.
//!
//! A test that waits in paused time ends by its own timeout. One that spins or blocks its thread stops paused time,
//! so only another thread can end it: the program exits with the test's name.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Mutex, Once, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// Time limit of one test. The longest takes a minute alone, and four on a shared machine.
const MOST: Duration = Duration::from_mins(10);

static RUNNING: Mutex<Option<HashMap<ThreadId, (String, Instant)>>> = Mutex::new(None);

/// A watched test; the watch ends with its thread.
struct Watched(ThreadId);

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(running) = &mut *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) {
            running.remove(&self.0);
        }
    }
}

thread_local! {
    static WATCHED: RefCell<Option<Watched>> = const { RefCell::new(None) };
}

/// Watches the calling test. Only the first call of a test counts: each test has its own thread, named after it.
pub(crate) fn watch() {
    static WATCHDOG: Once = Once::new();
    WATCHDOG.call_once(|| {
        std::thread::spawn(watchdog);
    });
    let thread = std::thread::current();
    let Some(name) = thread.name().filter(|name| *name != "main") else { return };
    let is_known = WATCHED.try_with(|watched| watched.borrow().is_some()).unwrap_or(true);
    if !is_known {
        #[expect(clippy::disallowed_methods, reason = "a hang is a matter of real time")]
        let entry = (name.to_owned(), Instant::now());
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        running.get_or_insert_default().insert(thread.id(), entry);
        drop(running);
        WATCHED.with(|watched| *watched.borrow_mut() = Some(Watched(thread.id())));
    }
}

#[expect(clippy::exit, clippy::print_stderr, reason = "no test can end another one")]
fn watchdog() {
    loop {
        std::thread::sleep(Duration::from_secs(1));
        let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        let late = running.iter().flatten().find(|(_, (_, began))| began.elapsed() > MOST);
        if let Some((_, (name, _))) = late {
            eprintln!("the test `{name}` has run for more than {MOST:?}: it hangs");
            std::process::exit(101);
        }
    }
}
