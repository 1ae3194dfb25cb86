//! Output stream that never blocks its writers for long: a separate thread writes it.
//!
//! A writer passes its text to the thread and waits a moment until it is written, so the streams of a process keep their order. If the
//! reader does not read, the stream is *behind*: then writers do not wait. Text that may be lost is dropped once a mebibyte is unwritten,
//! and the number of dropped lines is written when the reader reads again.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How many bytes may be unwritten.
const ROOM: usize = 1 << 20;
/// How many bytes the thread writes at once.
const SLICE: usize = 64 << 10;
/// How long a writer waits for its text to be written.
const PROMPT: Duration = Duration::from_millis(50);

/// What happens to text while its reader does not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unread {
    /// It is kept. Its writer asks [`Output::has_room`] before it makes much of it.
    IsKept,
    /// It is dropped where there is no room for it, and its lines are counted.
    IsDropped,
}

/// A stream of the process. Clones share it.
#[derive(Clone)]
pub(crate) struct Output(Arc<ProcessStream>);

struct ProcessStream {
    name: &'static str,
    /// The stream on which lost lines are reported; this one, if there is none.
    reports: Option<Output>,
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    /// The stream, until the thread has it.
    unstarted: Option<Box<dyn Write + Send>>,
    bytes: VecDeque<u8>,
    /// How many bytes the thread is writing.
    writing: usize,
    /// Whether a writer has waited in vain, and the stream has not written everything since.
    is_behind: bool,
    /// The number of lines that were dropped since the last report.
    lost: usize,
    /// Why the stream cannot be written any longer.
    broken: Option<(io::ErrorKind, Option<i32>)>,
}

impl Queue {
    fn unwritten(&self) -> usize {
        self.bytes.len() + self.writing
    }

    fn check(&self) -> io::Result<()> {
        match self.broken {
            Some((_, Some(number))) => Err(io::Error::from_raw_os_error(number)),
            Some((kind, None)) => Err(kind.into()),
            None => Ok(()),
        }
    }
}

impl Output {
    /// Creates the output of a stream, which reports its lost lines on `reports`, or else on itself.
    pub(crate) fn new(name: &'static str, stream: impl Write + Send + 'static, reports: Option<Self>) -> Self {
        let queue = Queue { unstarted: Some(Box::new(stream)), ..Queue::default() };
        Self(Arc::new(ProcessStream { name, reports, queue: Mutex::new(queue), changed: Condvar::new() }))
    }

    /// Creates a writer of the stream.
    pub(crate) const fn writer(self, unread: Unread) -> OutputWriter {
        OutputWriter { output: self, unread, line: Vec::new() }
    }

    /// Writes text that may be dropped, without waiting at all.
    pub(crate) fn log(&self, text: &str) {
        // A stream that cannot be written leaves nowhere to report to.
        _ = self.push(text.as_bytes(), Unread::IsDropped).map(drop);
    }

    /// Writes text that may be dropped, and waits for it a moment.
    pub(crate) fn say(&self, text: &str) {
        self.log(text);
        self.await_reader();
    }

    /// Returns whether little is unwritten.
    pub(crate) fn has_room(&self) -> bool {
        self.queue().unwritten() < ROOM
    }

    /// Waits until all is written or cannot be; returns whether that is so.
    pub(crate) fn is_drained(&self, patience: Duration) -> bool {
        let waits = |queue: &mut Queue| queue.unwritten() > 0 && queue.broken.is_none();
        let waited = self.0.changed.wait_timeout_while(self.queue(), patience, waits);
        let (mut queue, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        queue.is_behind |= timeout.timed_out();
        !timeout.timed_out()
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands bytes to the thread.
    fn push(&self, bytes: &[u8], unread: Unread) -> io::Result<()> {
        let mut queue = self.queue();
        queue.check()?;
        if let Some(stream) = queue.unstarted.take() {
            let shared = Arc::clone(&self.0);
            std::thread::Builder::new().name(self.0.name.to_owned()).spawn(move || write_all(&shared, stream))?;
        }
        if unread == Unread::IsDropped && queue.unwritten() >= ROOM {
            queue.lost += bytes.iter().filter(|byte| **byte == b'\n').count().max(1);
            return Ok(());
        }
        self.0.report_lost(&mut queue);
        queue.bytes.extend(bytes);
        drop(queue);
        self.0.changed.notify_all();
        Ok(())
    }

    /// Waits a moment for the thread, unless the stream is behind.
    fn await_reader(&self) {
        if !self.queue().is_behind {
            self.is_drained(PROMPT);
        }
    }
}

impl ProcessStream {
    /// Says how many lines were dropped.
    fn report_lost(&self, queue: &mut Queue) {
        if queue.lost == 0 {
            return;
        }
        let lines = if queue.lost == 1 { "line was" } else { "lines were" };
        let (lost, name) = (queue.lost, self.name);
        let text = format!("{lost} {lines} dropped, since nothing read {name} for a while\n");
        queue.lost = 0;
        match &self.reports {
            Some(reports) => reports.log(&text),
            None => queue.bytes.extend(text.as_bytes()),
        }
    }
}

/// Writes what is handed over, until the stream is broken.
fn write_all(shared: &ProcessStream, mut stream: Box<dyn Write + Send>) {
    let lock = || shared.queue.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let waited = shared.changed.wait_while(lock(), |queue| queue.bytes.is_empty());
        let mut queue = waited.unwrap_or_else(PoisonError::into_inner);
        let length = queue.bytes.len().min(SLICE);
        let slice: Vec<u8> = queue.bytes.drain(..length).collect();
        queue.writing = slice.len();
        drop(queue);
        let written = stream.write_all(&slice).and_then(|()| stream.flush());
        let mut queue = lock();
        queue.writing = 0;
        if let Err(error) = written {
            queue.broken = Some((error.kind(), error.raw_os_error()));
            queue.bytes = VecDeque::new();
            shared.changed.notify_all();
            return;
        }
        if queue.bytes.is_empty() {
            queue.is_behind = false;
            shared.report_lost(&mut queue);
        }
        drop(queue);
        shared.changed.notify_all();
    }
}

/// A writer of a stream, which hands over whole lines.
pub(crate) struct OutputWriter {
    output: Output,
    unread: Unread,
    /// The line that is not complete.
    line: Vec<u8>,
}

impl OutputWriter {
    fn hand_over(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.output.push(bytes, self.unread)?;
        self.output.await_reader();
        self.output.queue().check()
    }
}

impl Write for OutputWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        if let Some(end) = self.line.iter().rposition(|byte| *byte == b'\n') {
            let rest = self.line.split_off(end + 1);
            let lines = std::mem::replace(&mut self.line, rest);
            self.hand_over(&lines)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        self.hand_over(&line)
    }
}

impl Drop for OutputWriter {
    fn drop(&mut self) {
        // A stream that cannot be written leaves nowhere to report to.
        _ = self.flush();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// A stream that takes a piece for each permit, and never returns while there is none.
    struct Slow {
        permits: Receiver<()>,
        taken: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.permits.recv().map_err(|_| io::ErrorKind::BrokenPipe)?;
            self.taken.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn slow(reports: Option<Output>) -> (Output, Sender<()>, Arc<Mutex<Vec<u8>>>) {
        let (sender, permits) = channel();
        let taken = Arc::<Mutex<Vec<u8>>>::default();
        (Output::new("stderr", Slow { permits, taken: Arc::clone(&taken) }, reports), sender, taken)
    }

    fn text(taken: &Mutex<Vec<u8>>) -> String {
        String::from_utf8(taken.lock().unwrap().clone()).unwrap()
    }

    const SOON: Duration = Duration::from_secs(20);

    #[test]
    fn stream_that_nothing_reads_blocks_no_writer_and_says_how_many_lines_it_lost() {
        let (output, reader, taken) = slow(None);
        let mut writer = output.clone().writer(Unread::IsDropped);
        let line = format!("{}\n", "x".repeat(1023));

        for _ in 0..3000 {
            writer.write_all(line.as_bytes()).unwrap();
        }
        assert!(!output.has_room() && output.0.queue.lock().unwrap().unwritten() < ROOM + SLICE);

        (0..100).for_each(|_| reader.send(()).unwrap());
        assert!(output.is_drained(SOON));
        writer.write_all(b"last\n").unwrap();
        assert!(output.is_drained(SOON));
        let text = text(&taken);
        let (kept, rest): (Vec<_>, Vec<_>) = text.lines().partition(|line| line.starts_with('x'));
        let lost = 3000 - kept.len();
        let report = format!("{lost} lines were dropped, since nothing read stderr for a while");
        assert_eq!(rest, [report.as_str(), "last"]);
    }

    #[test]
    fn kept_text_is_written_in_order_when_the_reader_reads_again() {
        let (output, reader, taken) = slow(None);
        let mut writer = output.clone().writer(Unread::IsKept);
        let lines: String = (0..300_000).map(|number| format!("{number}\n")).collect();

        writer.write_all(lines.as_bytes()).unwrap();
        assert!(!output.has_room(), "its writer can wait");

        (0..1000).for_each(|_| reader.send(()).unwrap());
        assert!(output.is_drained(SOON));
        assert!(text(&taken) == lines);
    }

    #[test]
    fn lost_lines_of_stdout_are_reported_on_stderr() {
        let (err, err_reader, said) = slow(None);
        let (sender, permits) = channel();
        let taken = Arc::<Mutex<Vec<u8>>>::default();
        let out = Output::new("stdout", Slow { permits, taken: Arc::clone(&taken) }, Some(err.clone()));
        (0..100).for_each(|_| err_reader.send(()).unwrap());
        let mut writer = out.clone().writer(Unread::IsDropped);
        for _ in 0..3 {
            writer.write_all(format!("{}\n", "x".repeat(ROOM)).as_bytes()).unwrap();
        }

        (0..100).for_each(|_| sender.send(()).unwrap());
        assert!(out.is_drained(SOON) && err.is_drained(SOON));

        assert_eq!(text(&said), "2 lines were dropped, since nothing read stdout for a while\n");
        assert_eq!(text(&taken).lines().count(), 1, "data stays data");
    }

    #[test]
    fn closed_stream_is_an_error_for_its_writer() {
        let (output, reader, _) = slow(None);
        drop(reader);
        let mut writer = output.writer(Unread::IsKept);

        let error = writer.write_all(b"line\n").unwrap_err();

        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
