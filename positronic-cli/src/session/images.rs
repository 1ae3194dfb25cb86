//! The images of an event, for their previews.

use positronic_core::projection::files;
use positronic_core::record::{Event, FileKind};
use positronic_core::runner::Client;

/// The maximum number of previews of one event.
const MOST: usize = 4;

/// Loads the images that an event records. One that the store does not have has no preview.
pub(crate) async fn images(client: &Client, event: &Event) -> Vec<Vec<u8>> {
    let mut images = Vec::new();
    for file in files([event]).iter().map(|file| &file.file).filter(|file| file.kind() == FileKind::Image).take(MOST) {
        if let Some(hash) = file.blob()
            && let Ok(Some(bytes)) = client.blob(hash).await
        {
            images.push(bytes);
        }
    }
    images
}
