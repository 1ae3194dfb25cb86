//! The one table of a router's routes, and the document that describes it.

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use super::{RequestContext, Route, RouteAccess, json as answer};
use crate::openapi::document_of;
use crate::{api, problem_page};

/// Returns the routes of a router: those of the API, and further ones.
pub(super) fn table(further: &[Route]) -> Vec<Route> {
    [api::routes().as_slice(), &problem_page::routes(), &[document(further)], further].concat()
}

/// Returns the OpenAPI 3.1 document of the API.
#[must_use]
pub fn openapi() -> Value {
    openapi_with(&[])
}

/// Returns the OpenAPI 3.1 document of the API with [further routes](crate::extension).
#[must_use]
pub fn openapi_with(further: &[Route]) -> Value {
    document_of(&table(further))
}

/// Returns the route of the document, which names the path of the router if it has one.
fn document(further: &[Route]) -> Route {
    let further = further.to_vec();
    let document = Arc::new(LazyLock::new(move || openapi_with(&further)));
    let handler = move |cx: RequestContext| {
        let document = Arc::clone(&document);
        async move {
            let mut document = Value::clone(&document);
            let prefix = &*cx.reporter.prefix;
            if let Some(fields) = document.as_object_mut().filter(|_| !prefix.is_empty()) {
                fields.insert("servers".to_owned(), json!([{ "url": prefix }]));
            }
            answer(&document)
        }
    };
    Route::get("/openapi.json", "Read this document", handler)
        .access(RouteAccess::Public)
        .returns_text(200, "application/json")
}
