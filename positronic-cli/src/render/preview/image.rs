//! Decoding of images, and their escape sequences.

use std::fmt::Write as _;
use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::imageops::FilterType;
use image::{DynamicImage, ImageFormat, ImageReader, Limits};

use super::Graphics;
use super::sixel::sixel;

/// The maximum size of a file.
const LARGEST: usize = 4 << 20;

/// The maximum width and height of an image in pixels, and the maximum memory of its decoder in bytes.
const MAX_PIXELS: u32 = 10_000;
const MAX_MEMORY: u64 = 128 << 20;

/// The maximum rows and columns of a preview.
const ROWS: u32 = 12;
const COLUMNS: u32 = 60;

/// The size of a cell in pixels. Terminals have larger ones: then a sixel image leaves rows free.
const CELL: (u32, u32) = (8, 16);

/// The maximum length of a piece of base64 in kitty's protocol.
const PIECE: usize = 4096;

/// The size of an image in the cells of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cells {
    columns: u32,
    rows: u32,
}

/// Puts an image into empty rows, and the cursor behind the last of them.
fn placed(image: &str, rows: u32) -> String {
    let mut text = String::with_capacity(image.len() + 64);
    for _ in 0..rows {
        // Rows of an earlier frame may stand here.
        text.push_str("\x1b[2K\r\n");
    }
    _ = write!(text, "\x1b[2K\x1b[{rows}A\x1b7{image}\x1b8\x1b[{rows}B");
    text
}

/// Renders a preview of an image for a terminal of `columns` and `rows`; `None` if the file is too large, damaged or of
/// another format.
pub(crate) fn preview(graphics: Graphics, bytes: &[u8], (columns, rows): (usize, usize)) -> Option<String> {
    if bytes.len() > LARGEST {
        return None;
    }
    let reader = || ImageReader::new(Cursor::new(bytes)).with_guessed_format().ok();
    let format = reader()?.format()?;
    let (width, height) = reader()?.into_dimensions().ok()?;
    if width == 0 || height == 0 || width > MAX_PIXELS || height > MAX_PIXELS {
        return None;
    }
    let within = |length: usize, most: u32| u32::try_from(length).unwrap_or(most).clamp(1, most);
    // The empty rows must not scroll beyond the top.
    let most = Cells { columns: within(columns, COLUMNS), rows: within(rows / 2, ROWS) };
    let cells = fit(width, height, most);
    let decoded = || {
        let mut reader = reader()?;
        let mut limits = Limits::default();
        limits.max_alloc = Some(MAX_MEMORY);
        reader.limits(limits);
        let image = reader.decode().ok()?;
        let (most_wide, most_high) = (cells.columns * CELL.0, cells.rows * CELL.1);
        let is_larger = width > most_wide || height > most_high;
        Some(if is_larger { image.resize(most_wide, most_high, FilterType::Triangle) } else { image })
    };
    let image = match graphics {
        Graphics::Iterm => iterm(bytes, cells),
        Graphics::Kitty if format == ImageFormat::Png => kitty(bytes, cells),
        Graphics::Kitty => kitty(&png(&decoded()?)?, cells),
        Graphics::Sixel => sixel(&decoded()?.to_rgba8()),
    };
    Some(placed(&image, cells.rows))
}

/// Fits an image into the cells of a preview, in its proportions. A smaller image keeps its size.
fn fit(width: u32, height: u32, most: Cells) -> Cells {
    let (most_wide, most_high) = (u64::from(most.columns * CELL.0), u64::from(most.rows * CELL.1));
    let (wide, high) = (u64::from(width), u64::from(height));
    // The scale is a fraction: the smaller of the two that fit, at most 1.
    let (up, down) = [(most_wide, wide), (most_high, high), (1, 1)]
        .into_iter()
        .min_by(|one, other| (one.0 * other.1).cmp(&(other.0 * one.1)))
        .unwrap_or((1, 1));
    let cells =
        |pixels: u64, cell: u32| u32::try_from((pixels * up).div_ceil(down * u64::from(cell))).unwrap_or(1).max(1);
    Cells { columns: cells(wide, CELL.0), rows: cells(high, CELL.1) }
}

fn png(image: &DynamicImage) -> Option<Vec<u8>> {
    let mut bytes = Cursor::new(Vec::new());
    image.to_rgba8().write_to(&mut bytes, ImageFormat::Png).ok()?;
    Some(bytes.into_inner())
}

/// Transmits a PNG and shows it, without an answer of the terminal and without moving the cursor.
fn kitty(png: &[u8], Cells { columns, rows }: Cells) -> String {
    let data = STANDARD.encode(png);
    let mut text = String::with_capacity(data.len() + 64);
    let mut rest = data.as_str();
    let mut keys = format!("a=T,f=100,q=2,C=1,c={columns},r={rows},");
    loop {
        let (piece, later) = rest.split_at(rest.len().min(PIECE));
        let more = u8::from(!later.is_empty());
        _ = write!(text, "\x1b_G{keys}m={more};{piece}\x1b\\");
        if later.is_empty() {
            return text;
        }
        (rest, keys) = (later, "q=2,".to_owned());
    }
}

/// Shows a file in a format that the terminal decodes.
fn iterm(bytes: &[u8], Cells { columns, rows }: Cells) -> String {
    let (size, data) = (bytes.len(), STANDARD.encode(bytes));
    format!("\x1b]1337;File=inline=1;size={size};width={columns};height={rows};preserveAspectRatio=1:{data}\x07")
}

#[cfg(test)]
mod tests {
    use image::RgbaImage;

    use super::*;

    /// A picture of one colour.
    fn file(width: u32, height: u32, format: ImageFormat) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        let image = RgbaImage::from_pixel(width, height, image::Rgba([255, 0, 0, 255]));
        DynamicImage::from(image).to_rgb8().write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    }

    #[test]
    fn each_protocol_shows_a_small_png_in_one_row() {
        let png = file(2, 2, ImageFormat::Png);
        let data = STANDARD.encode(&png);
        let size = png.len();
        let around = |image: &str| format!("\x1b[2K\r\n\x1b[2K\x1b[1A\x1b7{image}\x1b8\x1b[1B");

        let kitty = format!("\x1b_Ga=T,f=100,q=2,C=1,c=1,r=1,m=0;{data}\x1b\\");
        assert_eq!(preview(Graphics::Kitty, &png, (80, 24)).unwrap(), around(&kitty));
        let iterm = format!("\x1b]1337;File=inline=1;size={size};width=1;height=1;preserveAspectRatio=1:{data}\x07");
        assert_eq!(preview(Graphics::Iterm, &png, (80, 24)).unwrap(), around(&iterm));
        let sixel = "\x1bP0;1;0q\"1;1;2;2#0;2;100;0;0#0!2B\x1b\\";
        assert_eq!(preview(Graphics::Sixel, &png, (80, 24)).unwrap(), around(sixel));
    }

    #[test]
    fn other_formats_are_decoded_for_kitty_and_sent_in_pieces() {
        for format in [ImageFormat::Jpeg, ImageFormat::Gif, ImageFormat::WebP] {
            let shown = preview(Graphics::Kitty, &file(8, 16, format), (80, 24)).unwrap();
            assert!(shown.contains("f=100,q=2,C=1,c=1,r=1,m=0;iVBOR"), "{format:?}: {shown:?}");
        }
        let long = kitty(&[7; 10_000], Cells { columns: 1, rows: 1 });
        let pieces: Vec<_> = long.split_terminator("\x1b\\").collect();
        assert_eq!(pieces.len(), 4);
        assert!(pieces[1].starts_with("\x1b_Gq=2,m=1;") && pieces[3].starts_with("\x1b_Gq=2,m=0;"), "{pieces:?}");
    }

    #[test]
    fn preview_keeps_proportions_within_its_cells() {
        let cells = |width, height, columns| {
            let cells = fit(width, height, Cells { columns, rows: ROWS });
            (cells.columns, cells.rows)
        };
        assert_eq!((cells(1, 1, 60), cells(80, 32, 60)), ((1, 1), (10, 2)));
        assert_eq!(cells(4_000, 3_000, 60), (32, 12));
        assert_eq!(cells(10_000, 100, 60), (60, 1));
        assert_eq!((cells(100, 10_000, 60), cells(4_000, 3_000, 10)), ((1, 12), (10, 4)));
    }

    #[test]
    fn file_that_cannot_be_shown_has_no_preview() {
        let png = file(2, 2, ImageFormat::Png);
        assert_eq!(preview(Graphics::Sixel, &png[..png.len() / 2], (80, 24)), None, "damaged");
        assert_eq!(preview(Graphics::Iterm, b"<svg/>", (80, 24)), None, "another format");
        assert_eq!(preview(Graphics::Iterm, &[png, vec![0; LARGEST]].concat(), (80, 24)), None, "too large");
        assert_eq!(preview(Graphics::Kitty, &file(MAX_PIXELS + 1, 1, ImageFormat::Png), (80, 24)), None, "too wide");
    }
}
