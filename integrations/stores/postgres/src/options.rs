//! Options of the store.

use std::time::Duration;

/// Options of a [`PostgresStore`](crate::PostgresStore).
///
/// ```
/// use positronic_postgres::PostgresOptions;
///
/// let options = PostgresOptions::builder().url("postgres://app@db.example.com/agents").schema("team_a").build();
/// assert_eq!(options.connections, 10);
/// ```
#[derive(Clone, typed_builder::TypedBuilder)]
#[non_exhaustive]
pub struct PostgresOptions {
    /// The address, such as `postgres://user:password@host:5432/database?sslmode=require`. Parts that it does not have
    /// are those of the environment variables of libpq, such as `PGPASSWORD`.
    #[builder(setter(into))]
    pub url: String,
    /// The schema with the tables. It is created if it does not exist. A parameter `schema` of the address is used if
    /// this is not set, and then `positronic`.
    #[builder(default, setter(into, strip_option))]
    pub schema: Option<String>,
    /// The largest number of connections of this store, besides one that listens for notifications and one for leases.
    ///
    /// An append holds a connection for one round trip, so 10 connections serve some thousand appends a second. All
    /// stores of all processes together must stay below the server's `max_connections` (100 by default).
    #[builder(default = 10)]
    pub connections: usize,
    /// How long to wait for a connection: for a free one, and for the server to accept a new one.
    #[builder(default = Duration::from_secs(10))]
    pub connect_timeout: Duration,
    /// How long a statement may take, also if the network is gone. A search may take ten minutes.
    ///
    /// The server enforces it, too, so that a lost append cannot commit later than this.
    #[builder(default = Duration::from_secs(30))]
    pub statement_timeout: Duration,
    /// How long a worker counts as alive after it last renewed its lease.
    ///
    /// A shorter one lets other workers continue its runs sooner after its machine has died; a longer one lets it
    /// survive a longer outage of the database. 45 seconds survive a failover of 30.
    #[builder(default = Duration::from_secs(45))]
    pub lease_ttl: Duration,
    /// Whether statements are prepared once for each connection.
    ///
    /// Set this to `false` for a pooler in transaction mode that does not know prepared statements, such as PgBouncer
    /// before 1.21. Each statement is then one without a name, in a transaction of its own: four round trips in place of
    /// one. A parameter `prepared_statements=false` of the address does the same. The schema must be created and migrated,
    /// and the search index created, without the pooler.
    #[builder(default = true)]
    pub prepared_statements: bool,
    /// Whether a search uses an index of trigrams. Without it a search reads all events.
    ///
    /// The index is as large as the events, and makes appends slower. It is created when the store is opened for
    /// writing; this needs the extension `pg_trgm`, or the right to create it.
    #[builder(default)]
    pub search_index: bool,
    /// Whether the store refuses writes. The schema must exist then.
    #[builder(default)]
    pub read_only: bool,
}

impl std::fmt::Debug for PostgresOptions {
    // The address may contain a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresOptions")
            .field("schema", &self.schema)
            .field("connections", &self.connections)
            .field("read_only", &self.read_only)
            .finish_non_exhaustive()
    }
}
