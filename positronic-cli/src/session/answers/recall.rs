//! Waiting for the keyboard, in a thread that another one can call back at any moment.
//!
//! The thread sleeps until the terminal or the caller has something for it. It never waits within the library that reads, which
//! reads on without a pause where the terminal goes away meanwhile. A terminal that changes its size tells that library alone, so
//! it is asked a few times a second.

use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossterm::event::poll;

/// How often the library is asked whether the size has changed.
const LOOK: Duration = Duration::from_millis(250);

/// Calls a thread back that waits for the keyboard, from where it is and from every later wait.
#[derive(Debug, Clone)]
pub(crate) struct Recall(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    is_set: AtomicBool,
    wake: Wake,
}

impl Default for Recall {
    fn default() -> Self {
        Self(Arc::new(Inner { is_set: AtomicBool::new(false), wake: Wake::new() }))
    }
}

impl Recall {
    /// Calls the thread back.
    pub(crate) fn set(&self) {
        self.0.is_set.store(true, Ordering::Release);
        self.0.wake.ring();
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.is_set.load(Ordering::Acquire)
    }

    /// Waits until something is typed, or the thread is called back; says whether something is typed.
    ///
    /// # Errors
    ///
    /// The terminal is gone, or cannot be asked.
    pub(crate) fn typed(&self) -> io::Result<bool> {
        while !self.is_set() {
            if !io::stdin().is_terminal() {
                return Err(gone());
            }
            if poll(Duration::ZERO)? {
                return Ok(true);
            }
            self.0.wake.sleep()?;
        }
        Ok(false)
    }
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the terminal is gone")
}

/// What wakes the thread beside the keyboard; none where the system has nothing left for it.
#[cfg(unix)]
#[derive(Debug)]
struct Wake(Option<(std::os::unix::net::UnixStream, std::os::unix::net::UnixStream)>);

#[cfg(unix)]
impl Wake {
    fn new() -> Self {
        Self(std::os::unix::net::UnixStream::pair().ok())
    }

    fn ring(&self) {
        if let Some((_, caller)) = &self.0 {
            // It stays rung for good.
            _ = caller.shutdown(std::net::Shutdown::Both);
        }
    }

    /// Sleeps until the terminal or the caller has something.
    fn sleep(&self) -> io::Result<()> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let stdin = io::stdin();
        let mut waits = vec![PollFd::new(&stdin, PollFlags::IN)];
        waits.extend(self.0.as_ref().map(|(waits, _)| PollFd::new(waits, PollFlags::IN)));
        let look = Timespec { tv_sec: 0, tv_nsec: i64::from(LOOK.subsec_nanos()) };
        match poll(&mut waits, Some(&look)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ended = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
        match waits.first() {
            Some(stdin) if stdin.revents().intersects(ended) => Err(gone()),
            _ => Ok(()),
        }
    }
}

#[cfg(not(unix))]
#[derive(Debug)]
struct Wake;

#[cfg(not(unix))]
impl Wake {
    const fn new() -> Self {
        Self
    }

    #[expect(clippy::unused_self, reason = "elsewhere it is a socket")]
    const fn ring(&self) {}

    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "elsewhere it waits for the terminal")]
    fn sleep(&self) -> io::Result<()> {
        std::thread::sleep(Duration::from_millis(20));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_thread_that_sleeps_is_called_back_at_once_and_for_good() {
        let recall = Recall::default();
        let other = recall.clone();
        other.set();

        assert!(recall.is_set());
        assert_eq!(recall.typed().ok(), Some(false));
        assert_eq!(recall.typed().ok(), Some(false), "every later wait ends, too");
    }
}
