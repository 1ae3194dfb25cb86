// Invisible, direction-changing and control characters made visible. The list is that of the engine's `is_invisible`.
const INVISIBLE = '\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u2800'
  + '\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb\\u{13430}-\\u{1343f}\\u{16fe4}\\u{1bca0}-\\u{1bca3}\\u{1d159}'
  + '\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}';
const CONTROL = '\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f';
// Joiners and selectors within an emoji change the picture only.
const EMOJI = '(?<=[\\p{Extended_Pictographic}\\u{1f3fb}-\\u{1f3ff}#*0-9]\\ufe0f?)(?:\\ufe0f|\\u200d(?=\\p{Extended_Pictographic}))';
const HIDDEN = new RegExp(`${EMOJI}|([${INVISIBLE}${CONTROL}])`, 'gu');
const QUICK = new RegExp(`[${INVISIBLE}${CONTROL}]`, 'u');

const NAMES = {
  0x1b: 'ESC', 0x200b: 'zero width space', 0x200c: 'zero width non-joiner', 0x200d: 'zero width joiner',
  0x200e: 'left-to-right mark', 0x200f: 'right-to-left mark', 0x202a: 'left-to-right embedding',
  0x202b: 'right-to-left embedding', 0x202c: 'end of embedding', 0x202d: 'left-to-right override',
  0x202e: 'right-to-left override', 0x2066: 'left-to-right isolate', 0x2067: 'right-to-left isolate',
  0x2068: 'first strong isolate', 0x2069: 'end of isolate', 0xfeff: 'byte order mark', 0xad: 'soft hyphen',
};

export const hasHidden = (text) => QUICK.test(text);

/** Splits a text into visible and hidden parts; a hidden part has its code as text. */
export function segments(text) {
  const parts = [];
  let from = 0;
  for (const match of text.matchAll(HIDDEN)) {
    if (match[1] === undefined) continue;
    if (match.index > from) parts.push({ text: text.slice(from, match.index) });
    const code = match[1].codePointAt(0);
    const id = `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
    parts.push({ hidden: true, text: code === 0x1b ? '␛' : `⟨${id}⟩`, name: NAMES[code] ? `${id} ${NAMES[code]}` : `${id} hidden character` });
    from = match.index + match[0].length;
  }
  if (from < text.length) parts.push({ text: text.slice(from) });
  return parts;
}

/** Returns a text with hidden characters written out, for attributes. */
export const shown = (text) => (hasHidden(text) ? segments(text).map((part) => part.text).join('') : text);
