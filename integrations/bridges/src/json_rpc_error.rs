//! Problems with an HTTP status as errors of JSON-RPC, for the protocols whose requests are messages of it.

use positronic_server::{Problem, ProblemType};
use serde_json::json;

/// Returns the code of a type of problem.
pub(crate) const fn json_rpc_code(kind: ProblemType) -> i32 {
    match kind {
        ProblemType::InvalidJson => -32700,
        kind if kind.status() >= 500 => -32603,
        _ => -32600,
    }
}

/// Writes a problem as an error without the id of a message: the message may not have been read.
pub(crate) fn json_rpc_problem(problem: &Problem) -> String {
    let error = json!({ "code": json_rpc_code(problem.kind()), "message": problem.message() });
    json!({ "jsonrpc": "2.0", "id": null, "error": error }).to_string()
}
