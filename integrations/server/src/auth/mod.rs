//! Who may do what: callers, their scopes, and the checks of hosts and origins.

mod authenticate;
mod caller;
mod cors;
mod deciders;
mod headers;
mod host;
mod limits;
mod login;
mod may_start;
mod proxy;
mod scope;
mod secret;
mod session_cookie;
mod sessions;
mod site;
mod stored_callers;
mod tokens;

pub use authenticate::Authenticate;
pub use caller::Caller;
pub(crate) use cors::{allow, allowed_origin, preflight};
pub use deciders::{DeciderPolicy, DeciderRule, Deciders, InvalidDeciderRule, Question};
pub(crate) use headers::security_headers;
pub(crate) use host::allowed_host;
pub(crate) use limits::{AnswerSlot, Limits};
pub use login::Login;
pub(crate) use may_start::may_start;
pub use proxy::{InvalidIpRange, IpRange};
pub(crate) use proxy::{client_address, client_prefix, is_tls, is_trusted};
pub use scope::Scope;
pub(crate) use secret::secret;
pub(crate) use sessions::{ListedSession, LoggedIn, Sessions};
pub(crate) use site::same_site;
pub(crate) use stored_callers::StoredCallers;
pub use tokens::{Token, TokenError};
