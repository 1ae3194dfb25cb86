//! The pages of the problem types, which the `type` of a problem document names.

use axum::response::{Html, IntoResponse as _, Response};

use crate::problem::{Problem, ProblemType};
use crate::routes::{RequestContext, Route, RouteAccess};

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/problems/{slug}", "Describe a type of problem", page)
            .access(RouteAccess::Public)
            .returns_text(200, "text/html")
            .problems(&[ProblemType::NotFound]),
    ]
}

async fn page(cx: RequestContext) -> Result<Response, Problem> {
    let slug = cx.param("slug")?;
    let kind = ProblemType::ALL.iter().find(|kind| kind.slug() == slug);
    let kind = kind.ok_or_else(|| Problem::new(ProblemType::NotFound))?;
    let (title, status, text) = (kind.title(), kind.status(), marked(kind.text()));
    // The texts are this crate's own.
    Ok(Html(format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>\n<h1>{title}</h1>\n\
         <p>HTTP status {status}, <code>{slug}</code></p>\n<p>{text}</p>\n</html>\n"
    ))
    .into_response())
}

/// Marks what is quoted in backticks as code.
fn marked(text: &str) -> String {
    let mut parts = text.split('`');
    let mut html = parts.next().unwrap_or_default().to_owned();
    for (index, part) in parts.enumerate() {
        html.push_str(if index % 2 == 0 { "<code>" } else { "</code>" });
        html.push_str(part);
    }
    html
}
