//! HMAC-SHA256 digests, and their comparison in constant time.

use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use subtle::{Choice, ConstantTimeEq as _};

/// A digest.
pub(super) type Digest = [u8; 32];

/// Computes the digest of the parts, one after the other.
pub(super) fn digest(key: &[u8], parts: &[&[u8]]) -> Digest {
    // HMAC accepts keys of any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return Digest::default() };
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

/// Returns whether one of the expected digests is among the given ones. Compares all of them.
pub(super) fn is_among(expected: &[Digest], given: &[Digest]) -> bool {
    let pairs = expected.iter().flat_map(|one| given.iter().map(move |other| one.ct_eq(other)));
    pairs.fold(Choice::from(0), |found, equal| found | equal).into()
}

/// Decodes 64 hexadecimal digits.
pub(super) fn from_hex(text: &str) -> Option<Digest> {
    let mut digest = Digest::default();
    if text.len() != 2 * digest.len() {
        return None;
    }
    for (byte, pair) in digest.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let digits =
            std::str::from_utf8(pair).ok().filter(|pair| pair.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
        *byte = u8::from_str_radix(digits, 16).ok()?;
    }
    Some(digest)
}

/// Encodes bytes as hexadecimal digits.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing into a string cannot fail.
        _ = write!(text, "{byte:02x}");
        text
    })
}
