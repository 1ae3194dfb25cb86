//! How the caller of a request is found.

use axum::http::request::Parts;
use futures::future::BoxFuture;

use super::Caller;
use crate::problem::Problem;

/// Finds the caller of a request: a service's own authentication. Give [`Scope::Decide`](super::Scope::Decide) only to people who may approve, and see
/// [`OptionsBuilder::deciders`](crate::OptionsBuilder::deciders) for rules about whom.
///
/// ```
/// use axum::http::request::Parts;
/// use futures::future::BoxFuture;
/// use positronic_server::{Authenticate, Caller, Problem, Scope};
///
/// /// Trusts the user that the service's own middleware has found.
/// struct Own;
///
/// #[derive(Clone)]
/// struct User(String);
///
/// impl Authenticate for Own {
///     fn authenticate<'a>(&'a self, request: &'a Parts) -> BoxFuture<'a, Result<Option<Caller>, Problem>> {
///         let user = request.extensions.get::<User>().map(|user| user.0.clone());
///         Box::pin(async { Ok(user.map(|user| Caller::user(user, [Scope::Read, Scope::Run]))) })
///     }
/// }
/// ```
pub trait Authenticate: Send + Sync + 'static {
    /// Returns the caller of a request; `None` if it has none.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if the caller cannot be found now.
    fn authenticate<'a>(&'a self, request: &'a Parts) -> BoxFuture<'a, Result<Option<Caller>, Problem>>;
}
