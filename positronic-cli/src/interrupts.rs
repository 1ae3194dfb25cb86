//! Ctrl-C and the system's request to end, heard from the first moment of a run to its last.

use tokio::sync::mpsc;

/// What the process was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interrupt {
    /// Ctrl-C.
    Person,
    /// The system's request to end, or the terminal that has gone away.
    System,
}

/// Begins to listen. None that comes later is lost, also while something else is being done.
pub(crate) fn interrupts() -> mpsc::UnboundedReceiver<Interrupt> {
    let (sender, receiver) = mpsc::unbounded_channel();
    tokio::spawn(listen(sender));
    receiver
}

/// Has a write fail that goes beyond the limit for the size of a file (`ulimit -f`), as one on a full disk does: the system
/// would end the process otherwise, without a word.
#[cfg(target_os = "linux")]
pub(crate) fn survive_large_files() {
    /// `SIGXFSZ`, as most architectures number it; elsewhere the system does as ever.
    const LIMIT_REACHED: i32 = 25;
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
    // A signal that is listened to once is never again left to the system.
    _ = runtime.block_on(async {
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::from_raw(LIMIT_REACHED)).map(drop)
    });
}

/// The limit for the size of a file is as the system has it.
#[cfg(not(target_os = "linux"))]
pub(crate) fn survive_large_files() {}

#[cfg(unix)]
async fn listen(sender: mpsc::UnboundedSender<Interrupt>) {
    use tokio::signal::unix::{SignalKind, signal};
    let listeners = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()), signal(SignalKind::hangup()));
    let (Ok(mut person), Ok(mut system), Ok(mut terminal)) = listeners else {
        // Without a handler, the system ends the process itself.
        return;
    };
    loop {
        let told = tokio::select! {
            Some(()) = person.recv() => Interrupt::Person,
            Some(()) = system.recv() => Interrupt::System,
            Some(()) = terminal.recv() => Interrupt::System,
            else => return,
        };
        if sender.send(told).is_err() {
            return;
        }
    }
}

#[cfg(not(unix))]
async fn listen(sender: mpsc::UnboundedSender<Interrupt>) {
    while tokio::signal::ctrl_c().await.is_ok() {
        if sender.send(Interrupt::Person).is_err() {
            return;
        }
    }
}
