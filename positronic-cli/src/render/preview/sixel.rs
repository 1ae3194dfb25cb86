//! Sixel: an image as bands of six rows of pixels, each colour of a band on its own.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use color_quant::NeuQuant;
use image::RgbaImage;

/// The maximum number of colours.
const COLOURS: usize = 256;

/// Half of the maximum opacity: pixels with less stay free.
const OPAQUE: u8 = 128;

/// Renders an image. Its transparent pixels keep the terminal's background.
pub(super) fn sixel(image: &RgbaImage) -> String {
    let (width, height) = image.dimensions();
    let (palette, indices) = colours(image);
    let mut text = format!("\x1bP0;1;0q\"1;1;{width};{height}");
    for (number, colour) in palette.iter().enumerate() {
        let [red, green, blue] = colour.map(|part| (u32::from(part) * 100 + 127) / 255);
        _ = write!(text, "#{number};2;{red};{green};{blue}");
    }
    let width = usize::try_from(width).unwrap_or(0).max(1);
    for (number, band) in indices.chunks(6 * width).enumerate() {
        if number > 0 {
            text.push('-');
        }
        // The pixels of each colour in the band: six bits a column.
        let mut masks: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
        for (row, pixels) in band.chunks(width).enumerate() {
            for (column, colour) in pixels.iter().enumerate() {
                let Some(colour) = colour else { continue };
                let columns = masks.entry(*colour).or_insert_with(|| vec![0; width]);
                if let Some(mask) = columns.get_mut(column) {
                    *mask |= 1 << row;
                }
            }
        }
        for (place, (colour, columns)) in masks.iter().enumerate() {
            if place > 0 {
                text.push('$');
            }
            _ = write!(text, "#{colour}");
            for run in columns.chunk_by(|one, next| one == next) {
                let sign = char::from(b'?' + run.first().copied().unwrap_or(0));
                match run.len() {
                    1 => text.push(sign),
                    long => _ = write!(text, "!{long}{sign}"),
                }
            }
        }
    }
    text.push_str("\x1b\\");
    text
}

/// Returns the colours of an image, and that of each pixel; `None` for a transparent one.
fn colours(image: &RgbaImage) -> (Vec<[u8; 3]>, Vec<Option<usize>>) {
    let opaque = || image.pixels().map(|pixel| Some(pixel.0).filter(|[.., opacity]| *opacity >= OPAQUE));
    let mut known: BTreeMap<[u8; 3], usize> = BTreeMap::new();
    for [red, green, blue, _] in opaque().flatten() {
        if known.len() > COLOURS {
            break;
        }
        let next = known.len();
        known.entry([red, green, blue]).or_insert(next);
    }
    if known.len() <= COLOURS {
        let mut palette = vec![[0; 3]; known.len()];
        for (colour, number) in &known {
            if let Some(place) = palette.get_mut(*number) {
                *place = *colour;
            }
        }
        let number = |[red, green, blue, _]: [u8; 4]| known.get(&[red, green, blue]).copied();
        return (palette, opaque().map(|pixel| pixel.and_then(number)).collect());
    }
    let quantised = NeuQuant::new(10, COLOURS, image.as_raw());
    let palette = quantised.color_map_rgb().chunks_exact(3).filter_map(|colour| colour.try_into().ok()).collect();
    (palette, opaque().map(|pixel| pixel.map(|pixel| quantised.index_of(&pixel))).collect())
}

#[cfg(test)]
mod tests {
    use image::Rgba;

    use super::*;

    #[test]
    fn bands_have_six_rows_and_transparent_pixels_stay_free() {
        let mut image = RgbaImage::from_pixel(2, 7, Rgba([0, 0, 255, 255]));
        image.put_pixel(0, 0, Rgba([255, 255, 255, 255]));
        image.put_pixel(1, 0, Rgba([0, 0, 0, 0]));

        assert_eq!(sixel(&image), "\x1bP0;1;0q\"1;1;2;7#0;2;100;100;100#1;2;0;0;100#0@?$#1!2}-#1!2@\x1b\\");
    }

    #[test]
    fn image_of_many_colours_has_256_of_them() {
        for side in [17_u32, 64] {
            let image = RgbaImage::from_fn(side, side, |x, y| Rgba([(x * 3) as u8, (y * 3) as u8, (x * y) as u8, 255]));

            let (palette, indices) = colours(&image);

            assert_eq!((palette.len(), indices.len()), (COLOURS, image.pixels().len()));
            assert!(indices.iter().flatten().all(|index| *index < COLOURS));
            assert!(sixel(&image).contains("#255;2;"));
        }
    }
}
