//! The one table of a router's routes, and the document that describes it.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::request_context::json_value;
use super::{RequestContext, Route, RouteAccess};
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
    // Anyone may read it, so it is kept as a text, for the path of the router that was asked last.
    let kept = Arc::new(Mutex::new(None));
    let handler = move |cx: RequestContext| {
        let (kept, further) = (Arc::clone(&kept), further.clone());
        async move {
            let prefix = &*cx.reporter.prefix;
            if let Some((_, text)) = kept.lock().as_ref().filter(|(of, _): &&(String, String)| of == prefix) {
                return Ok(json_value(text.clone()));
            }
            let mut document = openapi_with(&further);
            if let Some(fields) = document.as_object_mut().filter(|_| !prefix.is_empty()) {
                fields.insert("servers".to_owned(), json!([{ "url": prefix }]));
            }
            let text = document.to_string();
            *kept.lock() = Some((prefix.to_owned(), text.clone()));
            Ok(json_value(text))
        }
    };
    Route::get("/openapi.json", "Read this document", handler)
        .access(RouteAccess::Public)
        .returns_text(200, "application/json")
}
