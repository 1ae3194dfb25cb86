//! Encrypted connections, with a server whose certificate an authority of its own has signed for `localhost`.

use positronic_core::store::StoreError;
use positronic_core::store::prelude::*;
use positronic_postgres::{PostgresOptions, PostgresStore};
use positronic_store_suite::Sample;

use crate::server::{self, Server};

fn certificate(name: &str) -> String {
    format!("{}/tests/data/tls/{name}", env!("CARGO_MANIFEST_DIR"))
}

async fn open(server: &Server, host: &str, parameters: &str) -> Result<PostgresStore, StoreError> {
    let url = format!("postgres://tester@{host}:{}/postgres?{parameters}", server.port);
    PostgresStore::with(PostgresOptions::builder().url(url).connections(2).build()).await
}

#[tokio::test]
async fn sslmode_decides_which_servers_are_trusted() {
    let Some(server) = server::encrypted_server() else { return };
    let (own, other) = (certificate("ca.pem"), certificate("other-ca.pem"));
    for (host, parameters) in [
        ("127.0.0.1", "sslmode=require".to_owned()),
        ("127.0.0.1", format!("sslmode=verify-ca&sslrootcert={own}")),
        ("localhost", format!("sslmode=verify-full&sslrootcert={own}")),
    ] {
        let store = open(&server, host, &parameters).await.expect(&parameters);
        let run = Sample::new(&format!("run-{parameters}").replace('/', "-")).says("one").appended(&store).await.run;
        assert!(store.run(&run).await.is_ok(), "{parameters}");
    }
    // The server accepts no connections without encryption.
    let plain = open(&server, "127.0.0.1", "sslmode=disable").await.unwrap_err();
    assert!(matches!(&plain, StoreError::Unusable { message } if message.contains("no encryption")), "{plain:?}");
    for (host, parameters) in [
        ("127.0.0.1", format!("sslmode=verify-ca&sslrootcert={other}")),
        ("localhost", format!("sslmode=verify-full&sslrootcert={other}")),
        // The authorities of the system have not signed it.
        ("localhost", "sslmode=verify-full".to_owned()),
        ("127.0.0.1", format!("sslmode=verify-full&sslrootcert={own}")),
    ] {
        let refused = open(&server, host, &parameters).await.expect_err(&parameters);
        let StoreError::Unusable { message } = &refused else { panic!("{parameters}: {refused:?}") };
        assert!(message.contains("Check the server's certificate: `sslrootcert`"), "{parameters}: {message}");
    }
}

#[tokio::test]
async fn server_without_encryption_is_refused_if_the_address_wants_it() {
    let Some(database) = server::database().await else { return };
    let url = format!("{}?sslmode=require", database.url);
    let refused = PostgresStore::open(url).await.unwrap_err();
    assert!(matches!(&refused, StoreError::Unusable { message } if message.contains("check `sslmode`")), "{refused:?}");
}
