//! Encrypted connections.

use rustls::crypto::{CryptoProvider, aws_lc_rs};

/// Chooses the provider of cryptography of the process, unless the program has chosen one. With `sslmode=verify-ca` rustls
/// takes this one, and panics if the process has chosen none and its crates enable several.
pub(crate) fn choose_cryptography() {
    if CryptoProvider::get_default().is_none() {
        // Another thread may have installed one meanwhile.
        _ = aws_lc_rs::default_provider().install_default();
    }
}
