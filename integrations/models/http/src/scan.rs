//! Search for bytes, sixteen at a time, in bodies of which every byte is looked at.

/// Returns the position of the first byte that is one of two.
pub(super) fn find_either(bytes: &[u8], either: [u8; 2]) -> Option<usize> {
    let is_one = |byte: &u8| (*byte == either[0]) | (*byte == either[1]);
    let (chunks, _) = bytes.as_chunks::<16>();
    let has_none = |chunk: &&[u8; 16]| !chunk.iter().fold(false, |found, byte| found | is_one(byte));
    let skipped = 16 * chunks.iter().take_while(has_none).count();
    let rest = bytes.get(skipped..).unwrap_or_default();
    rest.iter().position(is_one).map(|place| skipped + place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_of_two_bytes_is_found_anywhere() {
        for length in 0..70 {
            let plain = vec![b'x'; length];
            assert_eq!(find_either(&plain, [b'"', b'\\']), None);
            for place in 0..length {
                for byte in [b'"', b'\\'] {
                    let mut bytes = plain.clone();
                    bytes[place] = byte;
                    bytes[length - 1] = if place == length - 1 { byte } else { b'"' };
                    assert_eq!(find_either(&bytes, [b'"', b'\\']), Some(place));
                }
            }
        }
    }
}
