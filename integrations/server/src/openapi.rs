//! The OpenAPI 3.1 document of the table of routes.

use std::collections::BTreeMap;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::problem::ProblemType;
use crate::routes::{Body, Ownership, Route, RouteAccess, is_json};

/// What the document says about the whole API.
const ABOUT: &str = "The runs of a Positronic store: what they do, what they wait for, and the decisions of people. \
Times are RFC 3339 in UTC; inside of events, timelines and states they are microseconds since 1970. \
Unknown parameters of a query are an error. Every refusal is a problem document (RFC 9457).";

/// What the document says about streams.
const STREAM: &str = "Server-sent events. An event with an `id` moves the position of `Last-Event-ID`; `delta` and `settled` \
have none. After `end` the run has no more, and a reconnect gets 204. `problem` has a problem document; the client connects again.";

/// Describes a table of routes.
pub(crate) fn document_of(table: &[Route]) -> Value {
    let mut generator = SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = "/components/schemas".into())
        .into_generator();
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for route in table {
        let methods = paths.entry(route.path).or_default();
        methods.insert(route.method.as_str().to_lowercase(), operation(route, &mut generator));
    }
    let mut schemas = generator.take_definitions(true);
    schemas.insert("Problem".to_owned(), problem_schema());
    let mut document = json!({
        "openapi": "3.1.0",
        "info": { "title": "Positronic", "version": env!("CARGO_PKG_VERSION"), "description": ABOUT },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer", "description": "A token of `token create`." },
                "session": { "type": "apiKey", "in": "cookie", "name": "positronic" },
            },
        },
    });
    remove_empty_defaults(&mut document);
    document
}

/// Removes the defaults that only say that a field may be absent. Generators of clients take a field with a default as one that
/// is always there.
fn remove_empty_defaults(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let is_empty = |default: &Value| {
                default.is_null()
                    || default.as_array().is_some_and(Vec::is_empty)
                    || default.as_object().is_some_and(Map::is_empty)
            };
            if fields.get("default").is_some_and(is_empty) {
                fields.remove("default");
            }
            fields.values_mut().for_each(remove_empty_defaults);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_empty_defaults),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn operation(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let mut operation = json!({
        "operationId": operation_id(route),
        "summary": route.summary,
        "tags": [tag(route.path)],
        "parameters": parameters(route, generator),
        "responses": responses(route, generator),
    });
    let mut add = |name: &str, value: Value| {
        if let Some(fields) = operation.as_object_mut() {
            fields.insert(name.to_owned(), value);
        }
    };
    match route.access {
        RouteAccess::Public => add("security", json!([])),
        RouteAccess::Authenticated => add("security", json!([{ "token": [] }, { "session": [] }])),
        RouteAccess::Scopes(scopes) => {
            add("security", json!([{ "token": [] }, { "session": [] }]));
            add("x-scopes", json!(scopes));
        }
    }
    if route.ownership == Ownership::Run {
        add("x-ownership", json!("run"));
    }
    match route.body {
        Body::None => {}
        Body::Json(schema) => {
            let schema = schema(generator);
            add("requestBody", json!({ "required": true, "content": { "application/json": { "schema": schema } } }));
        }
        Body::Raw => {
            add("requestBody", json!({ "required": true, "content": { "*/*": { "schema": {} } } }));
        }
    }
    operation
}

/// Returns a name such as `get_runs_run_events`.
fn operation_id(route: &Route) -> String {
    let place = route.path.trim_start_matches("/api/v1").replace(['{', '}'], "").replace(['.', '-', ':'], "_");
    format!("{}{}", route.method.as_str().to_lowercase(), place.replace('/', "_"))
}

fn tag(path: &str) -> &str {
    path.trim_start_matches("/api/v1").split('/').nth(1).filter(|tag| !tag.contains('.')).unwrap_or("server")
}

fn parameters(route: &Route, generator: &mut SchemaGenerator) -> Vec<Value> {
    let mut parameters = Vec::new();
    for name in route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')) {
        parameters.push(json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }));
    }
    if let Some(query) = route.query {
        let schema = query(generator).to_value();
        let required: Vec<&str> =
            schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let mut property = property.clone();
            let description = property.as_object_mut().and_then(|fields| fields.remove("description"));
            let is_required = required.contains(&name.as_str());
            let mut parameter = json!({ "name": name, "in": "query", "required": is_required, "schema": property });
            if let (Some(fields), Some(description)) = (parameter.as_object_mut(), description) {
                fields.insert("description".to_owned(), description);
            }
            parameters.push(parameter);
        }
    }
    if route.idempotent {
        let about = "The client's own id of the request: the same key with the same body gets the same answer.";
        parameters.push(header("Idempotency-Key", about));
    }
    if route.answers.iter().any(|answer| answer.media_type == Some("text/event-stream")) {
        parameters.push(header("Last-Event-ID", "The last event of a stream that the client has seen."));
    }
    parameters
}

fn header(name: &str, about: &str) -> Value {
    json!({ "name": name, "in": "header", "description": about, "schema": { "type": "string" } })
}

fn responses(route: &Route, generator: &mut SchemaGenerator) -> Map<String, Value> {
    let mut responses = Map::new();
    for answer in &route.answers {
        let described = axum::http::StatusCode::from_u16(answer.status);
        let described = described.ok().and_then(|status| status.canonical_reason()).unwrap_or("An answer.");
        let entry = responses.entry(answer.status.to_string()).or_insert_with(|| json!({ "description": described }));
        let Some(media_type) = answer.media_type else { continue };
        let schema = match answer.schema {
            Some(schema) => schema(generator).to_value(),
            None if media_type == "text/event-stream" => json!({ "type": "string", "description": STREAM }),
            None if media_type == "application/json" => json!({ "type": "object", "additionalProperties": true }),
            None => json!({ "type": "string" }),
        };
        if let Some(fields) = entry.as_object_mut() {
            let content = fields.entry("content").or_insert_with(|| json!({}));
            if let Some(content) = content.as_object_mut() {
                content.insert(media_type.to_owned(), json!({ "schema": schema }));
            }
        }
    }
    let mut by_status: BTreeMap<u16, Vec<ProblemType>> = BTreeMap::new();
    for problem in route.all_problems() {
        by_status.entry(problem.status()).or_default().push(problem);
    }
    for (status, problems) in by_status {
        let slugs: Vec<_> = problems.iter().map(|problem| format!("`{}`", problem.slug())).collect();
        let (media_type, schema) = match route.problem_form {
            Some(form) if is_json(form.media_type) => (form.media_type, json!({ "type": "object" })),
            Some(form) => (form.media_type, json!({ "type": "string" })),
            None => ("application/problem+json", json!({ "$ref": "#/components/schemas/Problem" })),
        };
        let content = json!({ media_type: { "schema": schema } });
        let response = json!({ "description": slugs.join(", "), "content": content });
        responses.insert(status.to_string(), response);
    }
    responses
}

fn problem_schema() -> Value {
    let slugs: Vec<_> = ProblemType::ALL.iter().map(|kind| format!("/problems/{}", kind.slug())).collect();
    json!({
        "type": "object",
        "description": "A problem document (RFC 9457). A type may have further fields.",
        "required": ["type", "title", "status"],
        "properties": {
            "type": { "type": "string", "description": "The path of a page about the type.", "examples": slugs },
            "title": { "type": "string" },
            "status": { "type": "integer" },
            "detail": { "type": "string" },
            "instance": { "type": "string", "description": "The id of the request." },
            "errors": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["pointer", "detail"],
                    "properties": { "pointer": { "type": "string" }, "detail": { "type": "string" } },
                },
            },
            "retry_after": { "type": "integer", "description": "Seconds." },
        },
        "additionalProperties": true,
    })
}
