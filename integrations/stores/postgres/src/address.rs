//! Addresses of databases.

use positronic_core::store::StoreError;
use sqlx_core::connection::ConnectOptions as _;
use sqlx_postgres::PgConnectOptions;

/// A parsed address.
pub(crate) struct Address {
    pub(crate) options: PgConnectOptions,
    /// The parameters for the store and not for the server.
    pub(crate) schema: Option<String>,
    pub(crate) prepared_statements: bool,
}

/// Parses an address.
pub(crate) fn parsed(url: &str) -> Result<Address, StoreError> {
    // The errors of the parsers may contain the address, and so the password.
    let invalid = |reason: &str| StoreError::Unusable {
        message: format!("invalid address of a PostgreSQL database: {reason}; write postgres://user@host/database"),
    };
    let mut url: sqlx_core::Url = url.parse().map_err(|_| invalid("it is not a URL"))?;
    if !matches!(url.scheme(), "postgres" | "postgresql") {
        return Err(invalid("its scheme is not `postgres`"));
    }
    let (mut schema, mut prepared_statements) = (None, true);
    let all: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    let mut rest = url.query_pairs_mut();
    rest.clear();
    for (name, value) in all {
        match (name.as_str(), value.as_str()) {
            ("schema", _) => schema = Some(value),
            ("prepared_statements", "true") => prepared_statements = true,
            ("prepared_statements", "false") => prepared_statements = false,
            ("prepared_statements", _) => return Err(invalid("`prepared_statements` must be `true` or `false`")),
            _ => _ = rest.append_pair(&name, &value),
        }
    }
    drop(rest);
    let options = PgConnectOptions::from_url(&url).map_err(|_| invalid("a part of it is invalid"))?;
    Ok(Address { options, schema, prepared_statements })
}

/// Describes a database without its password.
pub(crate) fn database(options: &PgConnectOptions) -> String {
    let name = options.get_database().unwrap_or_else(|| options.get_username());
    match options.get_socket() {
        Some(socket) => format!("the PostgreSQL database `{name}` at {}", socket.display()),
        None => format!("the PostgreSQL database `{name}` at {}:{}", options.get_host(), options.get_port()),
    }
}
