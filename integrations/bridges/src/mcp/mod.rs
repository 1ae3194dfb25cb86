//! A server of the Model Context Protocol: each brain is a tool. Over streamable HTTP at `/api/v1/mcp`, and over the standard
//! streams of a command.
//!
//! [`server`] answers requests, [`call`] follows the run of a call, [`question`] makes forms of what a run waits for, [`task`] shows runs
//! as tasks, [`listen`] reports their changes. [`http`] connects the transport of `rmcp` with the router's table, [`stdio`] serves one client
//! of a command. Runs are found by their ids in the store, so that sessions hold nothing that a restart would lose.

mod answers;
mod call;
mod calls_in_flight;
mod http;
mod listen;
mod misfits;
mod outcome;
mod question;
mod server;
mod stdio;
mod task;
mod tools;
mod update;

pub(crate) use call::LONGEST_CALL;
pub(crate) use http::routes;
pub(crate) use stdio::serve;
