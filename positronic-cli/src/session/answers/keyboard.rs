//! Keyboard of a terminal in raw mode, read by a thread of its own.
//!
//! The thread waits for the terminal itself: `crossterm` polls without a pause after the terminal has closed.

use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crossterm::cursor::Show;
use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste, Event, KeyEventKind, poll, read};
use crossterm::execute;
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// How long the thread waits for a key before it looks whether it has to stop, and whether the size has changed.
const WAIT: Duration = Duration::from_millis(50);

/// How many milliseconds closing waits for the thread.
const CLOSING: u32 = 1_000;

/// The keys of the terminal, which is in raw mode for as long as this exists: keys come one by one, and a pasted text in one
/// piece.
#[derive(Debug)]
pub(crate) struct Keyboard {
    events: UnboundedReceiver<io::Result<Event>>,
    is_closed: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Keyboard {
    /// Puts the terminal into raw mode and begins to read.
    ///
    /// # Errors
    ///
    /// There is no terminal.
    pub(crate) fn open() -> io::Result<Self> {
        let (sender, events) = unbounded_channel();
        let is_closed = Arc::new(AtomicBool::new(false));
        enable_raw_mode()?;
        let mut keyboard = Self { events, is_closed: Arc::clone(&is_closed), thread: None };
        execute!(io::stderr(), EnableBracketedPaste)?;
        let thread = std::thread::Builder::new().name("keyboard".to_owned());
        keyboard.thread = Some(thread.spawn(move || read_events(&is_closed, &sender))?);
        Ok(keyboard)
    }

    /// Returns the next key, pasted text or change of size.
    ///
    /// # Errors
    ///
    /// The terminal is gone.
    pub(crate) async fn next(&mut self) -> io::Result<Event> {
        self.events.recv().await.unwrap_or_else(|| Err(gone()))
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.is_closed.store(true, Ordering::Release);
        // The next reader must be the only one, but a thread that hangs in a dead terminal must not hold the process.
        let is_reading = |thread: &JoinHandle<()>| !thread.is_finished();
        for _ in 0..CLOSING {
            if !self.thread.as_ref().is_some_and(is_reading) {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        // A terminal that is gone needs none of this.
        _ = execute!(io::stderr(), DisableBracketedPaste, Show);
        _ = disable_raw_mode();
    }
}

/// Reads until the keyboard is closed or the terminal is gone.
fn read_events(is_closed: &AtomicBool, sender: &UnboundedSender<io::Result<Event>>) {
    while !is_closed.load(Ordering::Acquire) {
        let event = match wait() {
            Ok(false) => continue,
            Ok(true) => read(),
            Err(error) => Err(error),
        };
        let is_gone = event.is_err();
        let is_release = matches!(&event, Ok(Event::Key(key)) if key.kind == KeyEventKind::Release);
        if (!is_release && sender.send(event).is_err()) || is_gone {
            return;
        }
    }
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the terminal is gone")
}

/// Waits a moment; returns whether there is an event.
#[cfg(unix)]
fn wait() -> io::Result<bool> {
    use rustix::event::{PollFd, PollFlags, Timespec};
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        return Err(gone());
    }
    if poll(Duration::ZERO)? {
        return Ok(true);
    }
    let mut waits = [PollFd::new(&stdin, PollFlags::IN)];
    let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(WAIT.subsec_nanos()) };
    match rustix::event::poll(&mut waits, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let ended = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    let [stdin] = &waits;
    if stdin.revents().intersects(ended) { Err(gone()) } else { Ok(false) }
}

/// Waits a moment; returns whether there is an event.
#[cfg(not(unix))]
fn wait() -> io::Result<bool> {
    if io::stdin().is_terminal() { poll(WAIT) } else { Err(gone()) }
}
