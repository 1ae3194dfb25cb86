//! Approvals of a batch's calls: how they are requested and expire, and the calls that need none since an identical one was
//! rejected. `batch.rs` sees when one expires; what the model reads then is in `projection/result_text.rs`.

use serde_json::{Value, json};

use crate::machine::frames::Call;
use crate::record::{ContentHash, DenialCause, EventKind, NewEvent, Timestamp, ToolResult, hash_json, unify_numbers};

/// Requests the approval of a call.
pub(super) fn request(call: &Call, now: Timestamp) -> NewEvent {
    let gate = call.gate.as_ref();
    let request = EventKind::LoopApprovalRequested {
        reason: gate.map(|gate| gate.reason.clone()).unwrap_or_default(),
        expires: gate.and_then(|gate| gate.valid_for).map(|valid| now.after(valid)),
        editable: gate.is_some_and(|gate| gate.editable),
        arguments_hash: hash_json(&call.arguments),
    };
    NewEvent::new(call.path.clone(), request)
}

/// Ends a call whose approval has expired.
pub(super) fn expired(call: &Call) -> [NewEvent; 2] {
    let (cause, reason) = (Some(DenialCause::Expired), Some("the approval expired".to_owned()));
    [
        NewEvent::new(call.path.clone(), EventKind::LoopApprovalExpired {}),
        call.ended(ToolResult::Denied { cause, reason, by: None }),
    ]
}

/// Hashes a tool with its arguments, to recognise identical calls: also where one has `50` and the other `50.0`.
pub(in crate::machine) fn denial(tool: &str, arguments: &Value) -> ContentHash {
    let mut call = json!([tool, arguments]);
    unify_numbers(&mut call);
    hash_json(&call)
}

/// The result of a call that is identical to a rejected one.
pub(crate) fn denied_before() -> ToolResult {
    let reason = Some("an identical call was rejected before".to_owned());
    ToolResult::Denied { cause: Some(DenialCause::Repeated), reason, by: None }
}
