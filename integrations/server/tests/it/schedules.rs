//! The routes of schedules.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use axum::http::request::Parts;
use futures::future::BoxFuture;
use positronic_core::model::scripted::ScriptedModel;
use positronic_core::prelude::*;
use positronic_core::store::MemoryStore;
use positronic_server::{Authenticate, Caller, Options, Problem, Scope, router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tower::ServiceExt as _;

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
struct Team {
    team: String,
}

/// Takes the caller from a header: an administrator, or a user that reads.
struct Named;

impl Authenticate for Named {
    fn authenticate<'a>(&'a self, request: &'a Parts) -> BoxFuture<'a, Result<Option<Caller>, Problem>> {
        let name = request.headers.get("x-caller").and_then(|name| name.to_str().ok());
        let caller = name.map(|name| match name {
            "admin" => Caller::service("admin", [Scope::Admin]),
            user => Caller::user(user, [Scope::Read, Scope::Run]),
        });
        Box::pin(std::future::ready(Ok(caller)))
    }
}

struct Office {
    router: Router,
    runner: Runner,
}

impl Office {
    fn new() -> Self {
        let report = brain("Report").options::<Team>().step("Print", async |_| Ok(()));
        let runner = Runner::new(ScriptedModel::new([])).store(MemoryStore::new()).brain(report);
        let options = Options::builder().brains(runner.clone()).authenticate(Named).build();
        Self { router: router(runner.client(), options), runner }
    }

    /// Sends a request, and returns the status, the `ETag` and the JSON.
    async fn send(&self, caller: &str, request: &str, tag: Option<&str>, body: Value) -> (u16, String, Value) {
        let (method, path) = request.split_once(' ').unwrap();
        let mut builder = Request::builder().method(method).uri(format!("/api/v1/schedules{path}"));
        builder = builder.header("host", "localhost").header("x-caller", caller);
        if let Some(tag) = tag {
            builder = builder.header("if-match", tag);
        }
        let body = if body.is_null() {
            Body::empty()
        } else {
            builder = builder.header("content-type", "application/json");
            Body::from(body.to_string())
        };
        let response = self.router.clone().oneshot(builder.body(body).unwrap()).await.unwrap();
        let (status, tag) = (response.status().as_u16(), response.headers().get("etag").cloned());
        if status == 201 {
            // It is relative to the path of the request, which is that of the schedule.
            assert_eq!(response.headers()["location"], path[1..]);
        }
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        let json = if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes).unwrap() };
        (status, tag.map(|tag| tag.to_str().unwrap().to_owned()).unwrap_or_default(), json)
    }

    async fn admin(&self, request: &str, body: Value) -> (u16, Value) {
        let (status, _, json) = self.send("admin", request, None, body).await;
        (status, json)
    }
}

fn daily() -> Value {
    json!({
        "brain": "Report",
        "options": {"team": "sales"},
        "user": "ann",
        "cron": ["0 9 * * MON-FRI"],
        "zone": "Europe/Berlin",
        "exclude": ["2099-12-24/2099-12-31"],
    })
}

#[tokio::test]
async fn schedule_is_set_at_its_version_and_removed() {
    let office = Office::new();
    let (status, tag, item) = office.send("admin", "PUT /report", None, daily()).await;
    assert_eq!((status, &*tag, &item["status"]), (201, "\"1\"", &json!("active")), "{item}");
    assert!(item["next"].as_str().unwrap().ends_with(":00:00.000000Z"), "{item}");
    assert_eq!(item["schedule"]["overlap"], "skip");
    assert_eq!(item["schedule"]["catch_up"], json!({"mode": "latest", "within_seconds": 3600, "most": 100}));

    // What is read can be set again.
    let again = item["schedule"].clone();
    let (status, tag, _) = office.send("admin", "PUT /report", Some("\"1\""), again).await;
    assert_eq!((status, &*tag), (200, "\"2\""));
    let (status, _, stale) = office.send("admin", "PUT /report", Some("\"1\""), daily()).await;
    assert_eq!((status, &stale["type"], &stale["version"]), (412, &json!("/problems/precondition-failed"), &json!(2)));
    assert_eq!(office.send("admin", "DELETE /report", Some("\"1\""), Value::Null).await.0, 412);
    assert_eq!(office.admin("DELETE /report", Value::Null).await.0, 204);
    assert_eq!(office.admin("GET /report", Value::Null).await.0, 404);
}

#[tokio::test]
async fn invalid_schedule_is_refused_with_pointer_and_position() {
    let office = Office::new();
    let put = async |change: fn(&mut Value)| {
        let mut body = daily();
        change(&mut body);
        office.admin("PUT /report", body).await
    };
    let (status, problem) = put(|body| body["cron"] = json!(["@daily", "0 25 * * *"])).await;
    assert_eq!((status, &problem["errors"][0]["pointer"], &problem["position"]), (422, &json!("/cron/1"), &json!(2)));
    let (status, problem) = put(|body| body["zone"] = json!("Europe/Bonn")).await;
    assert_eq!((status, &problem["errors"][0]["pointer"]), (422, &json!("/zone")));
    let (status, problem) = put(|body| body["options"] = json!({"team": 7})).await;
    assert_eq!((status, &problem["type"]), (422, &json!("/problems/options-invalid")));
    assert_eq!(put(|body| body["brain"] = json!("Audit")).await.0, 404);
    assert_eq!(put(|body| body["colour"] = json!("red")).await.0, 422);
    let (status, problem) = office.admin("PUT /a%20b", daily()).await;
    assert_eq!((status, &problem["type"]), (400, &json!("/problems/invalid-path")));
}

#[tokio::test]
async fn schedule_is_paused_triggered_previewed_and_its_ticks_are_listed() {
    let office = Office::new();
    office.admin("PUT /report", daily()).await;
    let (_, item) = office.admin("POST /report/pause", json!({"reason": "holidays"})).await;
    assert_eq!((&item["status"], &item["paused"]["by"]), (&json!("paused"), &json!("admin")));
    assert_eq!(office.admin("POST /report/resume", Value::Null).await.1["status"], "active");

    for _ in 0..3 {
        let (status, tick) = office.admin("POST /report/trigger", json!({"overlap": "allow"})).await;
        assert_eq!((status, &tick["outcome"], &tick["cause"]), (202, &json!("due"), &json!("manual")));
    }
    for timer in office.runner.client().schedules().due().await.unwrap() {
        office.runner.fire(&timer).await.unwrap().settled().await;
    }
    let (_, item) = office.admin("GET /report", Value::Null).await;
    assert_eq!(item["running"], json!([]), "its runs have ended, although no server has looked at it since");
    let (_, page) = office.admin("GET /report/ticks?limit=2", Value::Null).await;
    assert_eq!(page["items"].as_array().unwrap().len(), 2);
    assert_eq!(page["items"][0]["outcome"], "started");
    let next = format!("GET /report/ticks?limit=2&cursor={}", page["next"].as_str().unwrap());
    let (_, page) = office.admin(&next, Value::Null).await;
    assert_eq!((page["items"].as_array().unwrap().len(), &page["next"]), (1, &Value::Null));

    let (_, times) = office.admin("GET /report/preview?limit=3", Value::Null).await;
    assert_eq!(times["items"].as_array().unwrap().len(), 3);
    assert!(times["items"][0]["local"].as_str().unwrap().contains("T09:00:00+0"), "{times}");
    let mut new = daily();
    new["cron"] = json!(["30 10 * * *"]);
    let (status, times) = office.admin("POST /not-set-yet/preview?limit=2", new).await;
    assert_eq!((status, times["items"].as_array().unwrap().len()), (200, 2), "{times}");
    assert!(times["items"][0]["local"].as_str().unwrap().contains("T10:30:00+0"), "{times}");
    assert_eq!(office.admin("GET /not-set-yet", Value::Null).await.0, 404, "a preview sets nothing");
    let (status, problem) = office.admin("POST /x/preview", json!({"brain": "Report", "cron": ["never"]})).await;
    assert_eq!((status, &problem["errors"][0]["pointer"]), (422, &json!("/cron/0")), "{problem}");
    let range = json!({"from": "2020-01-01T00:00:00Z", "until": "2020-01-03T00:00:00Z"});
    let (status, filled) = office.admin("POST /report/backfill", range).await;
    assert_eq!((status, filled["items"].as_array().unwrap().len()), (202, 2), "{filled}");
    assert_eq!(filled["items"][1]["outcome"], "buffered");
    let year = json!({"from": "2020-01-01T00:00:00Z", "until": "2020-12-31T00:00:00Z"});
    assert_eq!(office.admin("POST /report/backfill", year).await.0, 422);
}

#[tokio::test]
async fn schedules_have_a_budget_and_are_listed_in_pages() {
    let office = Office::new();
    for id in ["a", "b", "c"] {
        let mut body = daily();
        body["budget"] = json!({ "max_tokens": 5000 });
        let (status, item) = office.admin(&format!("PUT /{id}"), body).await;
        assert_eq!((status, &item["schedule"]["budget"]["max_tokens"]), (201, &json!(5000)), "{item}");
    }

    let (_, first) = office.admin("GET ?limit=2", Value::Null).await;
    let (_, second) =
        office.admin(&format!("GET ?limit=2&cursor={}", first["next"].as_str().unwrap()), Value::Null).await;

    let ids =
        |page: &Value| page["items"].as_array().unwrap().iter().map(|item| item["id"].clone()).collect::<Vec<_>>();
    assert_eq!((ids(&first), ids(&second)), (vec![json!("a"), json!("b")], vec![json!("c")]));
    assert_eq!(second["next"], Value::Null);
}

#[tokio::test]
async fn users_see_only_their_own_schedules_and_change_none() {
    let office = Office::new();
    office.admin("PUT /report", daily()).await;
    let names = async |caller| {
        let (_, _, list) = office.send(caller, "GET ", None, Value::Null).await;
        list["items"].as_array().unwrap().len()
    };
    assert_eq!((names("admin").await, names("ann").await, names("bob").await), (1, 1, 0));
    for request in ["GET /report", "GET /report/ticks", "GET /report/preview"] {
        assert_eq!(office.send("ann", request, None, Value::Null).await.0, 200, "{request}");
        assert_eq!(office.send("bob", request, None, Value::Null).await.0, 404, "{request}");
    }
    for request in
        ["PUT /report", "DELETE /report", "POST /report/pause", "POST /report/trigger", "POST /report/backfill"]
    {
        assert_eq!(office.send("ann", request, None, json!({})).await.0, 403, "{request}");
    }
}

#[tokio::test]
async fn list_names_a_schedule_that_cannot_be_read() {
    let office = Office::new();
    for id in ["audit", "broken"] {
        let (status, _, answer) = office.send("admin", &format!("PUT /{id}"), None, daily()).await;
        assert_eq!(status, 201, "{answer}");
    }
    let client = office.runner.client();
    let entry = client.store().entry("schedule", "broken").await.unwrap().unwrap();
    client.store().put_entry("schedule", "broken", &json!("of a later release"), Some(entry.revision)).await.unwrap();

    let (status, _, listed) = office.send("admin", "GET ", None, Value::Null).await;

    assert_eq!((status, &listed["items"][0]["id"]), (200, &json!("audit")), "{listed}");
    let unreadable = &listed["unreadable"][0];
    assert_eq!(unreadable["id"], "broken");
    assert!(unreadable["error"].as_str().unwrap().contains("the schedule `broken`"), "{unreadable}");
    let (_, _, of_user) = office.send("ann", "GET ", None, Value::Null).await;
    assert_eq!(of_user["unreadable"], json!([]), "whose it is is not known");
}
