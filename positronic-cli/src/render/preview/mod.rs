//! Previews of images in the scrollback of a terminal: kitty's graphics protocol, iTerm2's inline images, and sixel.
//!
//! A preview is a [`Line`](super::Line) whose text moves the cursor below the image, whatever the protocol does with it:
//!
//! ```text
//! empty rows · cursor up · save · image · restore · cursor down
//! ```
//!
//! Images come from models, tools and people, so their size is limited before and while they are decoded.

#[cfg(feature = "preview")]
mod image;
#[cfg(feature = "preview")]
mod sixel;

#[cfg(feature = "preview")]
pub(crate) use image::preview;

/// How a terminal shows images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Graphics {
    /// The graphics protocol of kitty, which Ghostty has, too.
    Kitty,
    /// The inline images of iTerm2, which WezTerm and mintty have, too.
    Iterm,
    /// Sixel, as in foot, Contour and mlterm.
    Sixel,
}

/// Shows no image: the feature `preview` is off.
#[cfg(not(feature = "preview"))]
pub(crate) const fn preview(_: Graphics, _: &[u8], _: (usize, usize)) -> Option<String> {
    None
}
