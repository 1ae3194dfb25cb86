//! Decompression of bodies that a server compressed, although the requests do not allow it.

use std::borrow::Cow;
use std::io::Write as _;

use flate2::write::{MultiGzDecoder, ZlibDecoder};
use positronic_core::record::{ModelError, ModelErrorKind};

/// The first bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Unpacks the bytes of a body as they arrive.
#[derive(Debug)]
pub(super) enum Unpack {
    /// The first bytes, which tell gzip whether or not a header names it.
    Begin(Vec<u8>),
    Plain,
    Gzip(Box<MultiGzDecoder<Vec<u8>>>),
    Deflate(Box<ZlibDecoder<Vec<u8>>>),
    Unknown(String),
}

impl Unpack {
    /// Begins a body whose `content-encoding` is this.
    pub(super) fn of(encoding: Option<&str>) -> Self {
        match encoding.map(|encoding| encoding.trim().to_ascii_lowercase()) {
            Some(encoding) if encoding == "deflate" => Self::Deflate(Box::new(ZlibDecoder::new(Vec::new()))),
            Some(encoding) if !["gzip", "x-gzip", "identity", ""].contains(&&*encoding) => Self::Unknown(encoding),
            _ => Self::Begin(Vec::new()),
        }
    }

    /// Unpacks bytes.
    ///
    /// # Errors
    ///
    /// [`Malformed`](ModelErrorKind::Malformed) for damaged bytes and for unknown compressions.
    pub(super) fn feed<'a>(&mut self, bytes: &'a [u8]) -> Result<Cow<'a, [u8]>, ModelError> {
        match self {
            Self::Plain => Ok(bytes.into()),
            Self::Begin(first) if first.is_empty() && bytes.first().is_some_and(|byte| *byte != GZIP[0]) => {
                *self = Self::Plain;
                Ok(bytes.into())
            }
            Self::Begin(first) => {
                first.extend_from_slice(bytes);
                if first.len() < GZIP.len() && GZIP.starts_with(first) {
                    return Ok(Cow::Owned(Vec::new()));
                }
                let first = std::mem::take(first);
                if !first.starts_with(&GZIP) {
                    *self = Self::Plain;
                    return Ok(first.into());
                }
                *self = Self::Gzip(Box::new(MultiGzDecoder::new(Vec::new())));
                self.feed(&first).map(|unpacked| unpacked.into_owned().into())
            }
            Self::Gzip(decoder) => {
                let unpacked = decoder.write_all(bytes).and_then(|()| decoder.flush());
                unpacked.map_err(|error| damaged("gzip", &error)).map(|()| std::mem::take(decoder.get_mut()).into())
            }
            Self::Deflate(decoder) => {
                let unpacked = decoder.write_all(bytes).and_then(|()| decoder.flush());
                unpacked.map_err(|error| damaged("deflate", &error)).map(|()| std::mem::take(decoder.get_mut()).into())
            }
            Self::Unknown(encoding) => {
                let sentence = format!(
                    "the server compressed its answer with `{encoding}`, which the request did not offer; switch that off on \
                     the server, or in the proxy before it"
                );
                Err(ModelError::new(ModelErrorKind::Malformed, sentence))
            }
        }
    }
}

fn damaged(encoding: &str, error: &std::io::Error) -> ModelError {
    ModelError::new(ModelErrorKind::Malformed, format!("cannot unpack the answer, compressed with {encoding}: {error}"))
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};

    use super::*;

    fn unpack(encoding: Option<&str>, body: &[u8], size: usize) -> Vec<u8> {
        let mut unpack = Unpack::of(encoding);
        body.chunks(size).flat_map(|bytes| unpack.feed(bytes).unwrap().into_owned()).collect()
    }

    #[test]
    fn compressed_bodies_are_unpacked_as_they_arrive() {
        let text = b"data: {\"a\": 1}\n\n".repeat(40);
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(&text).unwrap();
        let gzip = gzip.finish().unwrap();
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        zlib.write_all(&text).unwrap();
        let zlib = zlib.finish().unwrap();
        for size in [1, 7, 10_000] {
            for encoding in [None, Some("gzip"), Some("GZIP"), Some("identity")] {
                assert_eq!(unpack(encoding, &gzip, size), text, "{encoding:?} {size}");
                assert_eq!(unpack(encoding, &text, size), text, "{encoding:?} {size}");
            }
            assert_eq!(unpack(Some("deflate"), &zlib, size), text, "{size}");
        }
        assert_eq!(unpack(None, b"\x1f", 1), b"");
    }

    #[test]
    fn what_cannot_be_unpacked_is_named() {
        let error = Unpack::of(Some("br")).feed(b"x").unwrap_err();
        assert!(error.message.contains("with `br`"), "{error}");

        let error = Unpack::of(None).feed(b"\x1f\x8b damaged damaged").unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Malformed);
    }
}
