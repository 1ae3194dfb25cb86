//! Invisible characters, and characters that change the display of their neighbours.
//!
//! Texts for people and file names share this list. A person who decides about a text must see all of it, and names that
//! look the same must be the same.

/// Returns whether a character is invisible: joiners, variation selectors, fillers, tags, direction marks.
///
/// Control characters are not included; use [`char::is_control`].
///
/// ```
/// use positronic_core::record::is_invisible;
///
/// assert!(is_invisible('\u{200b}') && is_invisible('\u{202e}') && is_invisible('\u{e0041}'));
/// assert!(!is_invisible('a') && !is_invisible(' ') && !is_invisible('茶'));
/// ```
#[must_use]
pub const fn is_invisible(char: char) -> bool {
    // The source is the property `Default_Ignorable_Code_Point` of Unicode 17 (`DerivedCoreProperties.txt`). Added to it are
    // the line and paragraph separators, which only some programs take for line ends; the Braille pattern without dots and
    // the musical null notehead, which are blank; the object replacement character, for which fonts draw nothing; fillers and controls of Khitan, Egyptian hieroglyphs and interlinear
    // annotations.
    matches!(
        char,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffc}' | '\u{13430}'..='\u{1343f}'
            | '\u{16fe4}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d159}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Returns the first character of a text that is not displayed: a control character or an [invisible](is_invisible) one.
///
/// ```
/// use positronic_core::record::first_hidden;
///
/// assert_eq!(first_hidden("order 17"), None);
/// assert_eq!(first_hidden("order\u{200b} 17"), Some('\u{200b}'));
/// ```
#[must_use]
pub fn first_hidden(text: &str) -> Option<char> {
    text.chars().find(|char| char.is_control() || is_invisible(*char))
}

#[cfg(test)]
mod tests {
    use icu_properties::CodePointSetData;
    use icu_properties::props::DefaultIgnorableCodePoint;

    use super::*;

    #[test]
    fn every_ignorable_character_of_unicode_is_included() {
        let ignorable = CodePointSetData::new::<DefaultIgnorableCodePoint>();

        let missing: Vec<_> =
            ('\0'..=char::MAX).filter(|letter| ignorable.contains(*letter) && !is_invisible(*letter)).collect();
        assert!(missing.is_empty(), "{missing:x?}");
    }

    #[test]
    fn letters_and_spaces_are_not_included() {
        for letter in "a é 茶 क ا ✓ 👩 \u{a0}\u{3000}\n\t".chars() {
            assert!(!is_invisible(letter), "{letter:?}");
        }
    }
}
