//! Base64 of RFC 4648, with padding.
//!
//! Own code, because no crate that the core already depends on has it.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes bytes.
#[must_use]
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0_u32, |group, byte| group << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = DIGITS.get((group >> (18 - 6 * place) & 63) as usize).filter(|_| place <= chunk.len());
            text.push(char::from(*digit.unwrap_or(&b'=')));
        }
    }
    text
}

/// Decodes a text, whose padding may be missing; `None` if it is invalid.
#[must_use]
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim().trim_end_matches('=').as_bytes();
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    for chunk in digits.chunks(4) {
        let group = chunk.iter().try_fold(0_u32, |group, digit| Some(group << 6 | value(*digit)?))?;
        match chunk.len() {
            4 => bytes.extend_from_slice(group.to_be_bytes().get(1..)?),
            3 => bytes.extend_from_slice((group >> 2).to_be_bytes().get(2..)?),
            2 => bytes.extend_from_slice((group >> 4).to_be_bytes().get(3..)?),
            _ => return None,
        }
    }
    Some(bytes)
}

fn value(digit: u8) -> Option<u32> {
    Some(u32::from(match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn encoding_matches_the_crate_and_decodes(bytes: Vec<u8>) {
            let text = encode(&bytes);
            prop_assert_eq!(&text, &STANDARD.encode(&bytes));
            prop_assert_eq!(decode(text.trim_end_matches('=')), Some(bytes.clone()));
            prop_assert_eq!(decode(&text), Some(bytes));
        }
    }

    #[test]
    fn invalid_text_is_refused() {
        for text in ["a", "abcde", "ab c", "äöü", "ab=c"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
