//! Addresses of the servers: the only module that reads the environment.

/// Returns the URL in an environment variable that a script has set, such as `http://127.0.0.1:4010`.
#[expect(clippy::disallowed_methods, reason = "the script that starts the servers says here where they are")]
#[track_caller]
pub(crate) fn address(variable: &str, script: &str) -> String {
    match std::env::var(variable) {
        Ok(address) if !address.is_empty() => address,
        _ => panic!("{variable} does not say where the server is; run this test by `{script}`, which starts it"),
    }
}
