//! Addresses of databases.

use positronic_core::store::StoreError;
use sqlx_core::connection::ConnectOptions as _;
use sqlx_postgres::PgConnectOptions;

/// Parses an address. Returns the name of its schema, too, which is not a parameter of the server.
pub(crate) fn parsed(url: &str) -> Result<(PgConnectOptions, Option<String>), StoreError> {
    // The errors of the parsers may contain the address, and so the password.
    let invalid = |reason: &str| StoreError::Unusable {
        message: format!("invalid address of a PostgreSQL database: {reason}; write postgres://user@host/database"),
    };
    let mut url: sqlx_core::Url = url.parse().map_err(|_| invalid("it is not a URL"))?;
    if !matches!(url.scheme(), "postgres" | "postgresql") {
        return Err(invalid("its scheme is not `postgres`"));
    }
    let mut schema = None;
    let rest: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    url.query_pairs_mut().clear().extend_pairs(rest.iter().filter(|(name, value)| {
        let is_schema = name == "schema";
        if is_schema {
            schema = Some(value.clone());
        }
        !is_schema
    }));
    let options = PgConnectOptions::from_url(&url).map_err(|_| invalid("a part of it is invalid"))?;
    Ok((options, schema))
}

/// Describes a database without its password.
pub(crate) fn database(options: &PgConnectOptions) -> String {
    let name = options.get_database().unwrap_or_else(|| options.get_username());
    match options.get_socket() {
        Some(socket) => format!("the PostgreSQL database `{name}` at {}", socket.display()),
        None => format!("the PostgreSQL database `{name}` at {}:{}", options.get_host(), options.get_port()),
    }
}
