//! Why a program was stopped, and the request to stop it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use super::CodeLimits;

/// The reason why a program was stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StopReason {
    Time,
    Cancelled,
    Processes,
    /// Its processes use so many bytes of memory together.
    Memory(u64),
    /// It has no room in its folder or on its disk, for this reason.
    Room(String),
    Cpu,
    FileSize,
    Signal(i32),
}

impl StopReason {
    pub(super) fn sentence(&self, limits: &CodeLimits) -> String {
        match self {
            Self::Time => {
                format!("the program took longer than {:?}, and was killed with all its processes", limits.time)
            }
            Self::Cancelled => "the program was cancelled, and was killed with all its processes".to_owned(),
            Self::Processes => {
                format!("the program had more than {} processes, and was killed with all of them", limits.processes)
            }
            Self::Memory(used) => format!(
                "the processes of the program used {used} bytes of memory together, of at most {}, and were killed",
                limits.total_memory
            ),
            Self::Room(full) => format!("{full}; the program was killed with all its processes"),
            Self::Cpu => format!("the program used more than {} seconds of processor time", limits.cpu_seconds),
            Self::FileSize => "the program wrote a larger file than it may".to_owned(),
            Self::Signal(signal) => format!("the program was ended by signal {signal}"),
        }
    }
}

/// A request to stop a program, from any thread.
#[derive(Debug, Clone, Default)]
pub(super) struct StopRequest(Arc<AtomicU8>);

impl StopRequest {
    const TIME: u8 = 1;
    const CANCELLED: u8 = 2;

    /// Stops the program; the first reason counts.
    pub(super) fn now(&self, why: &StopReason) {
        let why = if *why == StopReason::Time { Self::TIME } else { Self::CANCELLED };
        // A later reason is ignored.
        _ = self.0.compare_exchange(0, why, Ordering::Relaxed, Ordering::Relaxed);
    }

    pub(super) fn said(&self) -> Option<StopReason> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            Self::TIME => Some(StopReason::Time),
            _ => Some(StopReason::Cancelled),
        }
    }
}
