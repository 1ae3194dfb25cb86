//! Brains as services of [Restate](https://restate.dev), a durable execution engine.
//!
//! ```text
//!            start, approve, deliver                    log: inbox, timeline, fork
//! client ───────────▶ Restate ──▶ Endpoint ──▶ runner ──────────────▶ store
//!                        ▲            │
//!                        └── calls ◀──┘ a tool call is an invocation of its own
//! ```
//!
//! An [`Endpoint`] serves brains, unchanged, from any number of processes over one shared store. A run is a workflow
//! keyed by its id; Restate schedules it, restarts it elsewhere when its process ends, and holds its timers. The log of
//! the store stays the record of a run that people and programs read.
//!
//! ```no_run
//! use positronic_core::prelude::*;
//! use positronic_core::runner::Runner;
//! use positronic_restate::{Client, Endpoint};
//! # async fn example(runner: Runner) -> Result<(), Box<dyn std::error::Error>> {
//! let greeter = brain("Greeter").r#loop("Greet", |cx| cx.system("Greet the user in one line.").input("Hello!"));
//!
//! // In each serving process; `runner` has the shared store.
//! let listener = tokio::net::TcpListener::bind("0.0.0.0:9080").await?;
//! let endpoint = Endpoint::new(runner, "http://restate:8080").brain(&greeter);
//! tokio::spawn(endpoint.serve(listener));
//!
//! // Anywhere.
//! let client = Client::new("http://restate:8080");
//! client.start(&greeter, (), "greeting-1").await?;
//! let outcome = client.outcome("Greeter", "greeting-1").await?;
//! # Ok(())
//! # }
//! ```
//!
//! # What runs where
//!
//! | what | where | after the death of the process |
//! |---|---|---|
//! | the run between two waits | one durable step of the workflow | the next process claims the run and continues from the log |
//! | a model request, a step | in that durable step | it is sent or run again, as with any runner |
//! | a tool call | an invocation `…Tool/call` of its own | see below |
//! | a tool of a plugin or an MCP server, a brain as a tool | in the run's durable step | as with any runner |
//! | a timer | a sleep of the workflow | no process needs to be alive |
//! | an approval, a webhook, a message | first the log, then a promise of the workflow | see [`Client`] |
//!
//! The journal of the workflow contains only how each stretch between two waits ended. So replay is
//! deterministic, whatever models and people decide.
//!
//! A tool call outlives the process that drives the run: the next process attaches to the invocation and gets its
//! outcome. If the process of the call itself ends, a `read_only` or `idempotent` tool runs again, and any other call
//! ends as `interrupted`: a nonce, recorded before the tool's function is called, tells the two apart. What a call needs
//! of its run works as in the worker, with the limits in [`runner::detached`](positronic_core::runner::detached).
//! [`Endpoint::local`] names the tools that run with their run instead.
//!
//! # Decisions made elsewhere
//!
//! A decision through [`Client`] is accepted by Restate at once, also with no service alive, and takes effect when one is
//! back. A decision that another program appends to the store, as `positronic approve` does, is in the log at once; a
//! living endpoint finds it within a second, and one that starts finds it then. In the same way an endpoint takes the runs of
//! its brains that were begun without Restate, by a conversation, a fork or a trigger, once they have work and no worker. It
//! also starts the runs of due triggers.
//!
//! # Deployments
//!
//! Restate pins a workflow to the deployment, that is to the URI, that it began with. Register one stable address, such as
//! that of a load balancer, not the addresses of processes.

mod calls;
mod client;
mod endpoint;
mod executor;
mod http2_server;
mod ingress;
mod names;
mod payloads;
mod services;
mod waker;

pub use client::{Client, ClientError};
pub use endpoint::{Endpoint, EndpointError};
pub use payloads::RunOutcome;
