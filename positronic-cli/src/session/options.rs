//! The settings of a session, and how it ends.

use positronic_core::record::{Actor, Pending};
use serde_json::Value;

use crate::app::{CassetteSession, LiveText, RunCassette};
use crate::cli::OutputArgs;
use crate::session::Interrupt;

/// Settings of a session.
pub(crate) struct SessionOptions<'a> {
    pub(crate) cassette: &'a CassetteSession,
    /// The played cassette that also answers for people.
    pub(crate) people: Option<&'a RunCassette>,
    pub(crate) actor: &'a Actor,
    /// Whether the run outlives this process, so that an answer can come later.
    pub(crate) lasts: bool,
    pub(crate) role: Role,
    pub(crate) output: OutputArgs,
    /// Where the text of answers streams that another process gets.
    pub(crate) live: Option<LiveText>,
    /// Whether the session shows one of several runs: then its events name it.
    pub(crate) several: bool,
}

impl<'a> SessionOptions<'a> {
    /// Shows a run that outlives this process, without a cassette.
    pub(crate) const fn new(role: Role, actor: &'a Actor, output: OutputArgs) -> Self {
        let cassette = &CassetteSession::None;
        Self { cassette, people: None, actor, lasts: true, role, output, live: None, several: false }
    }
}

/// Relation of this process to the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Runs it: Ctrl-C cancels it, and a request of the system to end releases it.
    Runs,
    /// Continues it: Ctrl-C releases it, once the effects in flight have ended or the grace period is over.
    Works,
    /// Watches it: no questions are asked, and Ctrl-C ends only the session.
    Watches {
        /// Whether the session also ends when the run waits.
        until_waiting: bool,
    },
}

/// How a session ended.
#[derive(Debug)]
pub(crate) enum Ending {
    Completed(Value),
    Failed,
    Cancelled,
    /// The person cancelled the run.
    Interrupted,
    /// The run waits for these, or is paused.
    Left(Vec<Pending>),
    /// An interrupt ended the session, and the run is unchanged.
    Released(Interrupt),
}
