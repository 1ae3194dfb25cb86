// Invisible, direction-changing and control characters made visible: those of the engine's `is_invisible`, and controls.
const INVISIBLE = '\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u2800'
  + '\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffc\\u{13430}-\\u{1343f}\\u{16fe4}\\u{1bca0}-\\u{1bca3}\\u{1d159}'
  + '\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f';
// A selector after a picture or within a keycap, and a joiner between pictures, change the picture only.
const PICTURE = '[\\p{Extended_Pictographic}\\u{1f3fb}-\\u{1f3ff}]';
const EMOJI = `(?<=${PICTURE})\\ufe0f|(?<=[#*0-9])\\ufe0f(?=\\u20e3)|(?<=${PICTURE}\\ufe0f?)\\u200d(?=${PICTURE})`;
const HIDDEN = new RegExp(`${EMOJI}|([${INVISIBLE}])`, 'gu');
const QUICK = new RegExp(`[${INVISIBLE}]`, 'u');

/** The most marks in a text: the page must stay usable whatever a text has. */
const MAX_MARKS = 500;

/** Splits a text into parts `{ text, hidden }`; a hidden part has the code of its character as text, in one with too many all do. */
export function segments(text) {
  if (!QUICK.test(text)) return [{ text }];
  const parts = [];
  let from = 0;
  for (const { 0: all, 1: char, index } of text.matchAll(HIDDEN)) {
    if (!char) continue;
    const code = char.codePointAt(0).toString(16).toUpperCase().padStart(4, '0');
    parts.push({ text: text.slice(from, index) }, { text: `⟨U+${code}⟩`, hidden: true });
    from = index + all.length;
  }
  parts.push({ text: text.slice(from) });
  return parts.length <= 2 * MAX_MARKS ? parts : [{ text: '⚠ ', hidden: true }, { text: parts.map((part) => part.text).join('') }];
}

export const hasHidden = (text) => segments(text).length > 1;
/** Returns a text with hidden characters written out, for attributes. */
export const shown = (text) => segments(text).map((part) => part.text).join('');
