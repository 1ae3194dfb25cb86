//! The adapter against recorded answers, and against a server with the API's published rules.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod files;
mod provider_tools;
mod recorded;
mod requests;
mod runs;
