//! The identity of a server.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The identity of a server, as reported by itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[non_exhaustive]
pub struct McpSeen {
    /// The program's name.
    pub program: String,
    /// Its version.
    pub version: String,
    /// The negotiated version of the protocol.
    pub protocol: String,
}
