//! Links to the inspector page that sign a browser in, and the error of an address that cannot be listened on.

use std::io;
use std::net::SocketAddr;

use positronic_core::runner::{Clock as _, SystemClock};
use positronic_server::Login;

use super::Failure;

/// Returns the URL of the page, with a code that signs one browser in. The fragment is in no request and no log.
pub(crate) fn sign_in_url(page: &str, login: &Login) -> Result<String, Failure> {
    let code = login.code(SystemClock.now());
    let code =
        code.map_err(|error| Failure::environment(format!("the system has no source of randomness: {error}")))?;
    Ok(format!("{page}#code={code}"))
}

/// Returns the failure to listen on an address.
pub(crate) fn cannot_listen(address: SocketAddr, error: &io::Error) -> Failure {
    Failure::environment(format!("cannot listen on {address}: {error}")).hint("choose another address with --listen")
}
