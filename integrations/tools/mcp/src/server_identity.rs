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
    /// Deviations of the server: which of its tools are skipped, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}
