//! Signal handling: Ctrl-C, SIGTERM and SIGHUP.

use tokio::sync::mpsc;

/// A request to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interrupt {
    /// Ctrl-C.
    Person,
    /// SIGTERM, or SIGHUP when the terminal closes.
    System,
}

/// Starts to listen. No later interrupt is lost.
pub(crate) fn interrupts() -> mpsc::UnboundedReceiver<Interrupt> {
    let (sender, receiver) = mpsc::unbounded_channel();
    tokio::spawn(listen(sender));
    receiver
}

/// Makes a write beyond the file size limit (`ulimit -f`) fail like one on a full disk; otherwise the system
/// kills the process silently.
#[cfg(target_os = "linux")]
pub(crate) fn survive_large_files() {
    /// `SIGXFSZ` on most architectures; elsewhere the default action applies.
    const LIMIT_REACHED: i32 = 25;
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
    // Once tokio has a handler for a signal, the default action never applies again.
    _ = runtime.block_on(async {
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::from_raw(LIMIT_REACHED)).map(drop)
    });
}

/// The system's default action applies.
#[cfg(not(target_os = "linux"))]
pub(crate) fn survive_large_files() {}

#[cfg(unix)]
async fn listen(sender: mpsc::UnboundedSender<Interrupt>) {
    use tokio::signal::unix::{SignalKind, signal};
    let listeners = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()), signal(SignalKind::hangup()));
    let (Ok(mut person), Ok(mut system), Ok(mut terminal)) = listeners else {
        // Without handlers, the default actions apply.
        return;
    };
    loop {
        let interrupt = tokio::select! {
            Some(()) = person.recv() => Interrupt::Person,
            Some(()) = system.recv() => Interrupt::System,
            Some(()) = terminal.recv() => Interrupt::System,
            else => return,
        };
        if sender.send(interrupt).is_err() {
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
