//! The axum router of the table.

use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request, State};
use axum::middleware::from_fn_with_state;
use axum::response::IntoResponse as _;
use axum::routing::{MethodFilter, on};
use positronic_core::runner::Client;

use super::dispatch::{ServedRoute, dispatch};
use super::middleware::outermost;
use super::table::table;
use crate::app::App;
use crate::options_builder::Options;
use crate::problem::{Problem, ProblemType};

/// Creates the router of a store's runs, which a service can nest at any path. [`OptionsBuilder::public_url`](crate::OptionsBuilder::public_url) names that path if a
/// proxy in front of the service changes it.
///
/// The client is that of the runner which works on the runs, if there is one in this process, so that answers stream.
///
/// # Panics
///
/// When two of the [further routes](crate::extension) have the same method and path.
pub fn router(client: Client, options: Options) -> Router {
    let table = table(&options.routes);
    let app = Arc::new(App::new(client, options.settings));
    let mut router = Router::new();
    for route in table {
        let (path, filter) = (route.path, MethodFilter::try_from(route.method.clone()));
        // The table has only methods that axum knows.
        let Ok(filter) = filter else { continue };
        let route = Arc::new(ServedRoute::new(route));
        let handler = move |State(app): State<Arc<App>>,
                            params: Result<RawPathParams, RawPathParamsRejection>,
                            request: Request| {
            let route = Arc::clone(&route);
            async move {
                let Ok(params) = params else { return Problem::new(ProblemType::InvalidPath).into_response() };
                let params = params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
                dispatch(app, &route, params, request).await
            }
        };
        router = router.route(path, on(filter, handler));
    }
    #[cfg(feature = "ui")]
    let router = router.merge(crate::ui::routes(&app));
    router
        .fallback(|| async { Problem::new(ProblemType::NotFound) })
        .method_not_allowed_fallback(|| async { Problem::new(ProblemType::MethodNotAllowed) })
        .layer(from_fn_with_state(Arc::clone(&app), outermost))
        .with_state(app)
}
