//! Workers: `positronic work` continues a run that no worker has, or works on all of them, and `positronic serve` does so beside
//! the API and the inspector page.

mod all_runs;
#[cfg(feature = "serve")]
mod mcp;
#[cfg(feature = "serve")]
mod monitoring;
mod run;
mod runners;
#[cfg(feature = "serve")]
mod serve;
#[cfg(feature = "serve")]
mod serve_log;
mod served_brains;

#[cfg(feature = "serve")]
pub(crate) use mcp::mcp;
pub(crate) use run::work;
#[cfg(feature = "serve")]
pub(crate) use serve::serve;
