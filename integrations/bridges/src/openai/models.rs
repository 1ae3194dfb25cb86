//! `/models`: the brains that the caller may start.

use axum::response::Response;
use positronic_server::extension::{RequestContext, Route};
use positronic_server::{Problem, ProblemType, Scope};
use schemars::JsonSchema;
use serde::Serialize;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/openai/v1/models", "List the brains as models of OpenAI's API", list)
            .scopes(&[Scope::Read])
            .returns::<ModelList>(200),
        Route::get("/api/v1/openai/v1/models/{model}", "Read a brain as a model of OpenAI's API", read)
            .scopes(&[Scope::Read])
            .returns::<ModelEntry>(200)
            .problems(&[ProblemType::UnknownBrain]),
    ]
}

/// The brains.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "OpenAiModelList")]
struct ModelList {
    object: &'static str,
    data: Vec<ModelEntry>,
}

/// A brain.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "OpenAiModel")]
struct ModelEntry {
    /// Its title.
    id: String,
    object: &'static str,
    /// The version of its code. The protocol has a time here, which a brain does not have.
    created: u64,
    owned_by: &'static str,
}

impl ModelEntry {
    fn of(title: &str, version: u32) -> Self {
        Self { id: title.to_owned(), object: "model", created: version.into(), owned_by: "positronic" }
    }
}

async fn list(cx: RequestContext) -> Result<Response, Problem> {
    let brains = cx.brains()?;
    let data = brains.iter().map(|brain| ModelEntry::of(&brain.title, brain.version)).collect();
    cx.answer(200, &ModelList { object: "list", data })
}

async fn read(cx: RequestContext) -> Result<Response, Problem> {
    let title = cx.param("model")?;
    match cx.brains()?.iter().find(|brain| brain.title == title) {
        Some(brain) => cx.answer(200, &ModelEntry::of(&brain.title, brain.version)),
        None => Err(unknown(title)),
    }
}

pub(super) fn unknown(title: &str) -> Problem {
    Problem::new(ProblemType::UnknownBrain)
        .detail(format!("there is no brain `{title}` that this caller may start; `GET /models` lists them"))
}
