//! How many tokens a file takes in a request, as an estimate.

use super::file::{FileKind, FileRef};

impl FileRef {
    /// Estimates its tokens in a request.
    ///
    /// Providers count a picture by its size in pixels, which are not known here: the most that Anthropic counts for one is about
    /// 1,600. A page of a PDF is a picture and its text, about 2,500, and has about 50 KB. Gemini counts 32 for a second of sound, which
    /// has about 16 KB as an MP3 file, and about 300 for one of a film, of about 250 KB. Other files count a quarter of their bytes.
    #[must_use]
    pub fn estimated_tokens(&self) -> u64 {
        let size = self.size;
        match self.kind() {
            FileKind::Image => 1600,
            FileKind::Pdf => 2500 * size.div_ceil(50_000).max(1),
            FileKind::Audio => 32 * size.div_ceil(16_000).max(1),
            FileKind::Video => 300 * size.div_ceil(250_000).max(1),
            FileKind::Text | FileKind::Other => size / 4,
        }
    }
}
