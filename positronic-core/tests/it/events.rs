//! The format of every event: a minimal and a full example of each, pinned and read back.

use std::collections::BTreeSet;

use positronic_core::record::{Event, EventError, EventKind, MAX_DOCUMENT_DEPTH, SignalId};
use serde_json::{Value, json};

/// Stored data of every event; several examples where fields are optional.
fn examples() -> Vec<Value> {
    let actor = json!({"by": "ann", "channel": "cli", "trace": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "trace_state": "vendor=1"});
    let hash = "00112233445566778899aabbccddeeff";
    let decl = json!({
        "id": "pay.send", "title": "Pay", "description": "Pays", "parameters": {"type": "object"},
        "flags": {"exit": true, "read_only": true, "idempotent": true, "sequential": true, "destructive": true, "brain": true}
    });
    let usage = json!({"input": 9, "output": 8, "cached": 7, "reasoning": 6});
    let error = json!({
        "kind": "rate_limited", "message": "slow down", "retry_after": 7, "status": 429, "provider_code": "busy",
        "request_id": "req-1"
    });
    let patch = json!({"patch": [{"op": "replace", "path": "/n", "value": 2}]});
    let limits = json!({
        "max_tokens": 9, "max_time": 8, "on_limit": "error", "parallel": 2, "policy": "strict"
    });
    let asking = json!({"max_iterations": 50, "max_money": "2.5", "ask": {"valid_for": 7}});
    let budget = json!({
        "max_iterations": 1, "max_tokens": 2, "max_money": "0.5", "max_time": 4, "on_limit": "exit", "ask": {}
    });
    vec![
        json!({"type": "RUN_CLAIMED", "owner": "w1"}),
        json!({"type": "RUN_CLAIMED", "owner": "w1", "trace": "00-…"}),
        json!({"type": "RUN_RELEASED", "reason": "idle"}),
        json!({"type": "RUN_NOT_CLAIMED", "owner": "w1", "reason": "no_brain", "message": "no such brain"}),
        json!({"type": "BRAIN_START", "title": "Small", "fingerprint": hash}),
        json!({
            "type": "BRAIN_START", "title": "Full", "version": 3, "fingerprint": hash,
            "stages": [{"name": "A", "kind": "step"}, {"name": "B", "kind": "loop"}, {"name": "C", "kind": "brain", "brain": hash}, {"name": "D", "kind": "wait", "webhooks": ["slack"]}, {"name": "E", "kind": "branch", "arms": [{"name": "F", "brain": hash}, {"name": "G"}]}],
            "options": {"x": 1}, "state": [1.5], "plugins": {"todo": {"version": 1, "state": {}}, "notes": {"state": []}},
            "start": {"id": "s1", "user": "u1", "actor": actor, "conversation": "c1", "forked_from": ["run-0", 7]}
        }),
        json!({
            "type": "BRAIN_START", "title": "Fired", "fingerprint": hash, "start": {
                "fired": {"trigger": {"id": "t-1", "what": "water", "due": 9, "every": 5}, "origin": "run-0"}
            }
        }),
        json!({
            "type": "BRAIN_START", "title": "Thrifty", "fingerprint": hash, "budget": budget,
            "start": {"budget": {"max_tokens": 9}, "parent": {"run": "run-0", "path": "Begin", "link": "detached"}}
        }),
        json!({"type": "BRAIN_MIGRATED", "version": 2, "fingerprint": hash, "stages": []}),
        json!({"type": "BRAIN_MIGRATED", "version": 2, "fingerprint": hash, "stages": [{"name": "A", "kind": "step"}], "change": patch}),
        json!({"type": "BRAIN_COMPLETE", "result": null}),
        json!({"type": "BRAIN_ERROR", "code": "step", "message": "no"}),
        json!({"type": "BRAIN_ERROR", "code": "limit", "message": "no", "retryable": true}),
        json!({"type": "BRAIN_CANCELLED"}),
        json!({"type": "BRAIN_CANCELLED", "signal": "s2", "actor": actor, "reason": "enough"}),
        json!({"type": "UNDO_START", "cause": {"failed": {"code": "step", "message": "no"}}, "steps": [{"name": "Undo A", "undoes": "A"}]}),
        json!({"type": "UNDO_START", "cause": {"cancelled": {}}, "steps": []}),
        json!({"type": "UNDO_START", "cause": {"cancelled": {"signal": "s2", "actor": actor, "reason": "enough"}}, "steps": [{"name": "Undo B", "undoes": "A/0.0/B"}]}),
        json!({"type": "UNDO_FAILED", "message": "no"}),
        json!({"type": "BRAIN_PAUSED", "signal": "s3"}),
        json!({"type": "BRAIN_PAUSED", "signal": "s3", "actor": actor}),
        json!({"type": "BRAIN_RESUMED", "signal": "s4"}),
        json!({"type": "BRAIN_RESUMED", "signal": "s4", "actor": actor}),
        json!({"type": "STEP_START"}),
        json!({"type": "STEP_START", "attempt": 1}),
        json!({"type": "STEP_COMPLETE", "duration": 5}),
        json!({"type": "STEP_COMPLETE", "change": {"state": null}, "duration": 5}),
        json!({"type": "STEP_RETRY", "attempt": 0, "message": "down", "due": 9}),
        json!({"type": "STEP_BLOCKED"}),
        json!({"type": "VALUE_RECORDED", "name": "receipt", "value": {"id": 7}}),
        json!({"type": "CHILD_START", "name": "survey", "run": "child-1", "title": "Survey"}),
        json!({"type": "CHILD_START", "name": "post", "run": "child-2", "title": "Post", "link": "background"}),
        json!({"type": "LOOP_START", "limits": {"max_iterations": 50}}),
        json!({"type": "LOOP_START", "input": "hi", "message_id": "m1", "limits": limits}),
        json!({"type": "LOOP_START", "limits": asking}),
        json!({"type": "LOOP_ITERATION"}),
        json!({
            "type": "LOOP_ITERATION", "system": {"hash": hash, "body": "Be kind."},
            "context": [{"hash": hash}, {"hash": hash, "body": {"name": "n", "text": "t"}}],
            "tools": [{"id": "a", "hash": hash}, {"id": "pay.send", "hash": hash, "body": decl}],
            "settings": {"hash": hash, "body": {
                "tier": "high", "model": "m", "temperature": 0.1, "max_output_tokens": 3, "tool_choice": "required",
                "parallel_tool_calls": false, "output": {"type": "json_schema", "name": "N", "schema": {}}, "extra": {"z": 1, "a": 2}
            }},
            "limits": limits, "exits": true, "plugins": {"todo": patch, "new": {"version": 2, "state": {}}}
        }),
        json!({"type": "LOOP_MODEL_CALL", "model": "p/m"}),
        json!({
            "type": "LOOP_MODEL_CALL", "attempt": 2, "model": "p/m",
            "question": {"system": "Be brief.", "text": "Who?", "settings": {"max_output_tokens": 3}}
        }),
        json!({"type": "LOOP_MODEL_RESULT", "parts": [], "metadata": {"finish": "stop", "usage": {}}, "duration": 1}),
        json!({
            "type": "LOOP_MODEL_RESULT", "parts": [], "metadata": {
                "finish": "stop", "usage": {}, "cost": {"amount": "0.002", "currency": "USD", "as_of": "2026-01-01"}
            }, "duration": 1
        }),
        json!({
            "type": "LOOP_MODEL_RESULT",
            "parts": [
                {"type": "reasoning", "text": "hm", "data": {"signature": "x"}}, {"type": "text", "text": "hi"},
                {"type": "call", "index": 0}, {"type": "opaque", "data": [1]}
            ],
            "metadata": {
                "provider": "p", "model": "m", "answered_by": "m-2", "response_id": "r", "finish": {"other": "odd"},
                "first_chunk": 4, "usage": usage
            },
            "duration": 9
        }),
        json!({"type": "LOOP_MODEL_RETRY", "attempt": 0, "error": {"kind": "server", "message": "no"}, "due": 9}),
        json!({"type": "LOOP_MODEL_RETRY", "attempt": 1, "error": error, "due": 9}),
        json!({
            "type": "LOOP_ANSWER_REFUSED", "attempt": 0, "message": "no", "parts": [], "metadata": {"finish": "stop", "usage": {}},
            "duration": 1
        }),
        json!({
            "type": "LOOP_ANSWER_REFUSED", "attempt": 1, "guard": "No keys", "message": "it names a key", "parts": [{"type": "call", "index": 0}],
            "calls": [{"name": "tell", "arguments": "{}"}],
            "metadata": {"finish": "stop", "usage": {}}, "duration": 1
        }),
        json!({"type": "LOOP_GUARD_REPLACED", "guard": "No keys", "replaced": "sk-123"}),
        json!({
            "type": "LOOP_GUARD_REPLACED", "guard": "No keys", "replaced": "sk-123",
            "input": {"message": 0, "earlier": true, "text": "[key]"}
        }),
        json!({"type": "LOOP_ANSWER_BROKEN", "metadata": {"provider": "p", "model": "m", "finish": "stop", "usage": usage}}),
        json!({
            "type": "LOOP_ITERATION", "settings": {"hash": hash, "body": {
                "output": {"type": "json_schema", "name": "N", "schema": {}},
                "structured_actions": {"batches": true, "form": "grammar", "retries": 1}
            }}
        }),
        json!({"type": "LOOP_ITERATION", "settings": {"hash": hash, "body": {"structured_actions": {}}}}),
        json!({"type": "LOOP_TOOL_CALL", "tool": "a", "arguments": "{oops"}),
        json!({
            "type": "LOOP_TOOL_CALL", "tool": "a", "arguments": {"n": 1.25}, "provider_id": "p1", "data": null,
            "flags": {"exit": true}, "gate": {"reason": "sure?", "valid_for": 5, "editable": false}
        }),
        json!({
            "type": "LOOP_TOOL_CALL", "tool": "a", "arguments": {},
            "repair": {"name": "functions.a", "arguments": ["in_string", "extra_bracket"]}
        }),
        json!({"type": "LOOP_TOOL_START"}),
        json!({"type": "LOOP_TOOL_START", "attempt": 1}),
        json!({"type": "LOOP_TOOL_START", "detached": true}),
        json!({"type": "LOOP_TOOL_RETRY", "attempt": 0, "message": "no", "due": 9}),
        json!({"type": "LOOP_TOOL_RESULT", "result": {"type": "success", "output": null}}),
        json!({"type": "LOOP_TOOL_RESULT", "result": {"type": "error", "message": "no"}, "duration": 3, "change": patch}),
        json!({"type": "LOOP_TOOL_RESULT", "result": {"type": "denied"}}),
        json!({"type": "LOOP_TOOL_RESULT", "result": {"type": "denied", "reason": "risky", "by": "ann"}}),
        json!({"type": "LOOP_TOOL_RESULT", "result": {"type": "denied", "cause": "expired"}}),
        json!({"type": "LOOP_TOOL_RESULT", "result": {"type": "skipped", "reason": "late"}}),
        json!({"type": "LOOP_TOOL_RESULT", "result": {"type": "interrupted", "reason": "gone"}}),
        json!({"type": "LOOP_BRAIN_START", "title": "Inner", "options": null}),
        json!({"type": "LOOP_BRAIN_COMPLETE", "result": null}),
        json!({"type": "LOOP_BRAIN_COMPLETE", "error": "no"}),
        json!({"type": "LOOP_OUTPUT", "id": "0123456789abc", "file": {
            "name": "a.txt", "media_type": "text/plain", "size": 1, "sha256": "00", "uri": "memory:a"
        }}),
        json!({"type": "LOOP_OUTPUT", "id": "0123456789abc", "widget": {
            "kind": "chart", "data": [1], "fallback": "a chart", "replaces": "abc0123456789"
        }}),
        json!({"type": "LOOP_TRIGGER", "change": {"set": {"id": "t-1", "what": "water", "due": 9}}}),
        json!({"type": "LOOP_TRIGGER", "change": {"set": {
            "id": "t-1", "what": "water", "due": 9, "every": 5, "busy": "cancel"
        }}}),
        json!({"type": "LOOP_TRIGGER", "change": {"deleted": "t-1"}}),
        json!({"type": "LOOP_APPROVAL_REQUESTED", "reason": "sure?", "editable": true, "arguments_hash": hash}),
        json!({"type": "LOOP_APPROVAL_REQUESTED", "reason": "sure?", "expires": 9, "editable": false, "arguments_hash": hash}),
        json!({"type": "LOOP_APPROVAL_DECIDED", "decision": "approved", "signal": "s5"}),
        json!({
            "type": "LOOP_APPROVAL_DECIDED", "decision": "rejected", "arguments": {}, "reason": "no", "signal": "s5",
            "actor": actor
        }),
        json!({"type": "LOOP_APPROVAL_WITHDRAWN", "cause": "over"}),
        json!({"type": "LOOP_APPROVAL_EXPIRED"}),
        json!({"type": "LOOP_WAIT", "waits": [{"webhook": "slack", "identifier": "t", "schema": true}]}),
        json!({
            "type": "LOOP_WAIT",
            "waits": [{
                "webhook": "slack", "identifier": "t", "person": true, "prompt": "Well?", "schema": {}, "expires": 9,
                "otherwise": null
            }],
            "output": 1, "change": {"state": {}}
        }),
        json!({"type": "BRANCH_CHOSEN", "name": "Refund", "brain": hash}),
        json!({"type": "BRANCH_CHOSEN", "name": "Nothing"}),
        json!({"type": "GROUP_START", "brains": [{"name": "Sum", "brain": hash, "may_fail": true}], "options": [], "limit": 8}),
        json!({
            "type": "GROUP_START", "brains": [{"name": "A"}, {"name": "B"}], "options": [{"order": 7}, null], "limit": 2, "due": 9
        }),
        json!({"type": "REPEAT_ROUND", "round": 0}),
        json!({"type": "REPEAT_ROUND", "round": 1, "change": {"state": 1}}),
        json!({"type": "GUARD_CHECKED", "passed": true}),
        json!({"type": "GUARD_CHECKED", "passed": false, "reason": "no customer"}),
        json!({"type": "STAGE_WAIT", "waits": [], "due": 9}),
        json!({
            "type": "STAGE_WAIT",
            "waits": [{"webhook": "slack", "identifier": "t", "fresh": true, "schema": true, "expires": 9}],
            "due": 9
        }),
        json!({"type": "STAGE_RESUME", "cause": "expired", "wait": 1}),
        json!({
            "type": "STAGE_RESUME", "wait": 0, "payload": "yes", "received": 1_767_225_600_000_000_i64, "signal": "s7",
            "actor": actor
        }),
        json!({"type": "LOOP_RESUME", "wait": 0, "payload": null}),
        json!({"type": "LOOP_RESUME", "wait": 0, "payload": "yes", "received": 1_767_225_600_000_000_i64, "signal": "s7"}),
        json!({"type": "LOOP_RESUME", "cause": "expired", "wait": 1, "payload": {}, "signal": "s6", "actor": actor}),
        json!({"type": "LOOP_MESSAGE", "text": "hi"}),
        json!({
            "type": "LOOP_MESSAGE", "text": "hi", "message_id": "m2", "from": "engine", "signal": "s7", "actor": actor
        }),
        json!({"type": "LOOP_EXIT", "call": "Chat/0.1", "tool": "finish"}),
        json!({"type": "LOOP_MAX_ITERATIONS", "limit": 50}),
        json!({"type": "LOOP_START", "limits": {"max_iterations": 50, "max_failures": 3, "wrap_up": true}}),
        json!({"type": "LOOP_LIMIT", "kind": "failures", "limit": 3, "used": 3}),
        json!({"type": "LOOP_LIMIT", "kind": "tokens", "limit": 9, "used": 10}),
        json!({"type": "LOOP_LIMIT", "kind": "iterations", "limit": 9, "used": 9, "of": "Chat/0.0"}),
        json!({"type": "LOOP_LIMIT", "kind": "money", "limit": 9, "used": 0, "unpriced": "p/m"}),
        json!({"type": "LOOP_LIMIT", "kind": "tokens", "limit": 9, "used": 10, "of": "", "shared": true}),
        json!({"type": "LOOP_STOPPED", "cause": {"type": "refused"}, "message": "no"}),
        json!({"type": "LOOP_STOPPED", "cause": {"type": "length", "max_output_tokens": 64}, "message": "cut"}),
        json!({"type": "LOOP_START", "input": "Begin.", "from": "engine", "limits": {
            "max_iterations": 50, "answer_retries": 0, "on_useless_answer": "exit"
        }}),
        json!({"type": "BUDGET_REQUESTED", "kind": "tokens", "limit": 9, "used": 10}),
        json!({"type": "BUDGET_REQUESTED", "kind": "tokens", "limit": 9, "used": 10, "shared": true}),
        json!({"type": "BUDGET_REQUESTED", "kind": "time", "limit": 9, "used": 10, "expires": 99}),
        json!({"type": "BUDGET_DECIDED", "decision": "rejected", "signal": "s8"}),
        json!({
            "type": "BUDGET_DECIDED", "decision": "approved",
            "more": {"iterations": 1, "tokens": 2, "money": "3", "time": 4}, "reason": "go", "signal": "s9", "actor": actor
        }),
        json!({"type": "BUDGET_EXPIRED"}),
        json!({"type": "LOOP_PLUGIN_CHANGED", "plugin": "todo", "patch": patch["patch"]}),
        json!({"type": "LOOP_PLUGIN_CHANGED", "plugin": "todo", "version": 1, "state": {"n": 1}}),
        json!({"type": "LOOP_PLUGIN_CHANGED", "plugin": "todo", "patch": [], "update": 7}),
        json!({"type": "LOOP_PLUGIN_UPDATE", "plugin": "todo", "update": {"add": "milk"}, "signal": "s10"}),
        json!({"type": "LOOP_PLUGIN_UPDATE", "plugin": "work.todo", "update": null, "signal": "s11", "actor": actor}),
        json!({"type": "LOOP_PLUGIN_FAILED", "plugin": "todo", "message": "no"}),
        json!({"type": "LOOP_PLUGIN_FAILED", "plugin": "todo", "message": "no", "update": 7}),
        json!({"type": "LOOP_COMPACTED"}),
        json!({"type": "LOOP_COMPACTED", "keep": 4, "summary": "so far"}),
        json!({"type": "LOOP_COMPLETE", "outcome": {"type": "answered"}, "usage": {}}),
        json!({"type": "LOOP_COMPLETE", "outcome": {"type": "exited", "tool": "finish"}, "usage": usage, "change": patch}),
        json!({"type": "LOOP_COMPLETE", "outcome": {"type": "max_iterations"}, "usage": {}}),
        json!({"type": "LOOP_COMPLETE", "outcome": {"type": "limit", "limit": "time"}, "usage": {}}),
        json!({"type": "LOOP_COMPLETE", "outcome": {"type": "failed", "code": "model", "message": "no"}, "usage": {}}),
        json!({"type": "LOOP_COMPLETE", "outcome": {"type": "cancelled"}, "usage": {}}),
        json!({
            "type": "LOOP_COMPLETE",
            "outcome": {"type": "stopped", "cause": {"type": "empty", "reason": "error"}, "message": "no"}, "usage": {}
        }),
    ]
}

/// Returns an example of every event as a line of a log.
pub(crate) fn stored_examples() -> Vec<String> {
    examples().iter().map(line).collect()
}

/// Wraps an example into an envelope, as a line of a log.
fn line(body: &Value) -> String {
    let mut event = json!({"seq": 1, "at": 5});
    event.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
    event.to_string()
}

#[test]
fn every_event_is_read_and_written_unchanged() {
    let mut pinned = String::new();
    for example in examples() {
        let event = Event::from_json(&line(&example)).unwrap_or_else(|error| panic!("{example}: {error}"));
        let mut written: Value = serde_json::from_str(&event.to_json().unwrap()).unwrap();
        assert_eq!(event.kind.name(), example["type"], "the name is the type");
        let places = ["/signal", "/start/id", "/cause/cancelled/signal"];
        let signal = places.iter().find_map(|place| example.pointer(place)).and_then(Value::as_str);
        assert_eq!(event.kind.signal().map(SignalId::as_str), signal, "{example}");
        written.as_object_mut().unwrap().remove("seq");
        written.as_object_mut().unwrap().remove("at");
        assert_eq!(written, example, "no field is lost, and none is added");
        assert_eq!(Event::from_json(&event.to_json().unwrap()).unwrap(), event);
        pinned.push_str(&event.to_json().unwrap());
        pinned.push('\n');
    }
    insta::assert_snapshot!(pinned);
}

/// Inserts a value at every position of an example, and returns the event for each position that accepts any JSON.
fn with_document(example: &Value, document: &Value) -> Vec<Option<Event>> {
    fn places(value: &Value, at: &str, all: &mut Vec<String>) {
        all.push(at.to_owned());
        let children: Vec<_> = match value {
            Value::Object(fields) => fields.iter().map(|(key, field)| (key.clone(), field)).collect(),
            Value::Array(items) => items.iter().enumerate().map(|(index, item)| (index.to_string(), item)).collect(),
            _ => Vec::new(),
        };
        for (key, child) in children {
            places(child, &format!("{at}/{key}"), all);
        }
    }
    let mut all = Vec::new();
    places(example, "", &mut all);
    let put = |place: &String| {
        let mut changed = example.clone();
        *changed.pointer_mut(place)? = document.clone();
        // A position of text or of a list of numbers accepts no list of lists.
        Event::from_json(&line(changed.is_object().then_some(&changed)?)).ok()
    };
    all.iter().map(put).collect()
}

#[test]
fn every_event_with_the_deepest_value_reads_back_and_deeper_ones_are_not_written() {
    let nested = |levels: usize| (1..levels).fold(json!([]), |inner, _| Value::Array(vec![inner]));
    let mut kinds = BTreeSet::new();
    for example in examples() {
        let deepest = with_document(&example, &nested(MAX_DOCUMENT_DEPTH));
        for (index, event) in deepest.iter().enumerate() {
            let Some(event) = event else { continue };
            kinds.insert(event.kind.name());
            assert_eq!(Event::from_json(&event.to_json().unwrap()).unwrap(), *event);
            // Up to the deepest allowed line.
            let written: Vec<bool> = (116..=126)
                .map(|levels| {
                    let Some(event) = with_document(&example, &nested(levels))[index].clone() else { return false };
                    let line = event.to_json();
                    match &line {
                        Ok(line) => assert_eq!(Event::from_json(line).unwrap(), event, "{levels}"),
                        Err(error) => assert!(matches!(error, EventError::TooDeep), "{error}"),
                    }
                    line.is_ok()
                })
                .collect();
            assert!(written.is_sorted_by(|a, b| a >= b), "values deeper than the limit are refused: {example}");
        }
    }
    insta::assert_snapshot!(kinds.into_iter().collect::<Vec<_>>().join(" "), @"BRAIN_COMPLETE BRAIN_MIGRATED BRAIN_START GROUP_START GUARD_CHECKED LOOP_APPROVAL_DECIDED LOOP_BRAIN_COMPLETE LOOP_BRAIN_START LOOP_COMPLETE LOOP_GUARD_REPLACED LOOP_ITERATION LOOP_MODEL_RESULT LOOP_OUTPUT LOOP_PLUGIN_CHANGED LOOP_PLUGIN_UPDATE LOOP_RESUME LOOP_TOOL_CALL LOOP_TOOL_RESULT LOOP_WAIT REPEAT_ROUND STAGE_RESUME STAGE_WAIT STEP_COMPLETE VALUE_RECORDED");
}

#[test]
fn envelope_omits_defaults() {
    let bare = Event::from_json("{\"seq\":1,\"at\":5,\"type\":\"STEP_START\"}").unwrap();
    assert_eq!(bare.to_json().unwrap(), "{\"seq\":1,\"at\":5,\"type\":\"STEP_START\"}");
    let full = "{\"seq\":1,\"at\":5,\"epoch\":2,\"path\":\"Chat/3.1/Ask\",\"type\":\"STEP_START\"}";
    assert_eq!(Event::from_json(full).unwrap().to_json().unwrap(), full);
}

#[test]
fn unreadable_release_is_refused() {
    let unknown = Event::from_json("{\"seq\":1,\"at\":5,\"type\":\"LOOP_DANCE\"}").unwrap_err();
    assert!(unknown.to_string().contains("unknown variant `LOOP_DANCE`"), "{unknown}");

    let newer = Event::from_json("{\"v\":2,\"seq\":1,\"at\":5,\"type\":\"STEP_START\"}").unwrap_err();
    assert!(matches!(newer, EventError::Version { found: 2 }), "{newer}");
    let newer = Event::from_json("{\"v\":2,\"seq\":1,\"at\":5,\"type\":\"LOOP_DANCE\"}").unwrap_err();
    assert!(matches!(newer, EventError::Version { found: 2 }), "for every type");

    for broken in
        ["", "{}", "[1]", "{\"seq\":1,\"at\":5}", "{\"seq\":1,\"at\":5,\"path\":\"a//b\",\"type\":\"STEP_START\"}"]
    {
        assert!(matches!(Event::from_json(broken), Err(EventError::Json(_))), "{broken}");
    }
}

/// Returns the words of a text that are event names.
fn names(text: &str) -> BTreeSet<String> {
    let is_name =
        |word: &&str| word.contains('_') && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .filter(is_name)
        .map(str::to_owned)
        .collect()
}

#[test]
fn table_in_the_docs_names_every_event() {
    let source = include_str!("../../src/record/event/event_kind.rs");
    let rows = source.lines().filter(|line| line.starts_with("/// | `"));
    let table = names(&rows.filter_map(|row| row.split('|').nth(1)).collect::<Vec<_>>().join(" "));

    let unknown = serde_json::from_str::<EventKind>("{\"LOOP_DANCE\":{}}").unwrap_err().to_string();
    let all = unknown.split_once("expected one of ").unwrap().1;
    let mut variants = names(all);
    variants.remove("LOOP_DANCE");

    assert_eq!(table, variants);
    let shown: BTreeSet<_> = examples().iter().map(|body| body["type"].as_str().unwrap().to_owned()).collect();
    assert_eq!(shown, variants, "every event has an example here");
}

#[test]
fn event_serializes_as_its_line() {
    let line = r#"{"seq":3,"at":7,"path":"Chat","type":"LOOP_EXIT","call":"Chat/0.1","tool":"finish"}"#;
    let event = Event::from_json(line).unwrap();

    let list = serde_json::to_value([&event]).unwrap();

    assert_eq!(list, json!([serde_json::from_str::<Value>(line).unwrap()]));
    assert_eq!(serde_json::from_value::<Vec<Event>>(list).unwrap(), [event]);
}
