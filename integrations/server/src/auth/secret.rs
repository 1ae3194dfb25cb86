//! Secrets of tokens, sessions and login codes, which are stored as hashes.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use positronic_core::record::sha256;

/// Returns a new secret of 256 random bits, safe in a URL.
pub(crate) fn secret() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// Returns the hash of a secret as it is stored.
pub(crate) fn hash_of(secret: &str) -> String {
    sha256(secret.as_bytes())
}
