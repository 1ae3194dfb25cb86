// The Markdown of models as nodes of the document: paragraphs, headings, lists, tables, code, emphasis and links. Markup in it stays text, images
// are named and not loaded, and a link leads to http(s) only and shows its host.
import { tags } from '../lib/dom.js';

const { a, b, blockquote, br, code, div, em, h4, hr, li, ol, p, pre, span, table, tbody, td, th, thead, tr, ul } = tags;

/** Longer texts are shown as they are, since each character would be looked at several times. */
const LONGEST = 60_000;
const INLINE = /(`+)(.+?)\1|!\[([^\]]*)\]\(([^()\s]*)\)|\[([^\]]+)\]\(([^()\s]+)\)|\*\*(?=\S)(.+?\S?)\*\*|__(?=\S)(.+?\S?)__|(?<![\w*])\*(?=\S)([^*]+?\S?)\*(?![\w*])|(?<![\w_])_(?=\S)([^_]+?\S?)_(?![\w_])/gs;

/** Draws what is within a paragraph. */
function inline(text, depth = 0) {
  if (depth > 4) return text;
  const parts = [];
  let from = 0;
  for (const found of text.matchAll(INLINE)) {
    const [all, , literal, alt, image, label, url, strong, strong2, soft, soft2] = found;
    parts.push(text.slice(from, found.index));
    from = found.index + all.length;
    const bold = strong ?? strong2;
    if (literal !== undefined) parts.push(code({ key: from }, literal));
    else if (alt !== undefined) parts.push(span.quiet({ key: from }, `[image ${alt || image}]`));
    else if (label !== undefined) parts.push(link(label, url, from, depth));
    else if (bold !== undefined) parts.push(b({ key: from }, inline(bold, depth + 1)));
    else parts.push(em({ key: from }, inline(soft ?? soft2, depth + 1)));
  }
  return [...parts, text.slice(from)].map((part) => (typeof part === 'string' ? part.split('\n').map((line, i) => [i > 0 && br(), line]) : part));
}

/** A link of a model: its text may say another address than it has, so that the host stands beside it. */
function link(label, url, key, depth) {
  const to = URL.canParse(url) && new URL(url);
  if (!to || !['http:', 'https:'].includes(to.protocol)) return `${label} (${url})`;
  return span({ key }, a({ web: to.href, title: to.href }, inline(label, depth + 1)), label.includes(to.host) ? null : span.quiet(` (${to.host})`));
}

const cells = (line) => line.trim().replace(/^\||\|$/g, '').split('|').map((cell) => cell.trim());
const isRule = (line) => /^\s*\|?\s*:?-{2,}:?\s*(\|\s*:?-{2,}:?\s*)*\|?\s*$/.test(line ?? '') && line.includes('|');
const ITEM = /^(\s*)(?:([-*+])|(\d{1,9})[.)])\s+(.*)$/;
const STARTS = /^\s*(#{1,6}\s|>|```|~~~|([-*_])(\s*\2){2,}\s*$)/;

/** Draws lines as blocks. */
function blocks(lines, depth = 0) {
  const made = [];
  for (let at = 0; at < lines.length;) {
    const key = at;
    const line = lines[at];
    const fence = /^\s*(```+|~~~+)/.exec(line)?.[1];
    const head = /^\s*(#{1,6})\s+(.*?)\s*#*$/.exec(line);
    if (!line.trim()) {
      at++;
    } else if (fence) {
      const end = lines.findIndex((other, i) => i > at && other.trim().startsWith(fence));
      const to = end < 0 ? lines.length : end;
      made.push(pre({ key }, lines.slice(at + 1, to).join('\n')));
      at = to + 1;
    } else if (head) {
      made.push(h4({ key }, inline(head[2])));
      at++;
    } else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) {
      made.push(hr({ key }));
      at++;
    } else if (/^\s*>/.test(line) && depth < 4) {
      const from = at;
      while (at < lines.length && /^\s*>/.test(lines[at])) at++;
      made.push(blockquote({ key }, blocks(lines.slice(from, at).map((one) => one.replace(/^\s*> ?/, '')), depth + 1)));
    } else if (line.includes('|') && isRule(lines[at + 1])) {
      const from = at;
      while (at < lines.length && lines[at].includes('|')) at++;
      const [names, , ...rows] = lines.slice(from, at).map(cells);
      made.push(div.scroll({ key, tabindex: '0', role: 'region', 'aria-label': 'Table' }, table(thead(tr(names.map((cell) => th({ scope: 'col' }, inline(cell))))), tbody(rows.map((row) => tr(names.map((_, i) => td(inline(row[i] ?? '')))))))));
    } else if (ITEM.test(line) && depth < 6) {
      const [, indent, , number] = ITEM.exec(line);
      const items = [];
      for (let found; at < lines.length; at++) {
        found = ITEM.exec(lines[at]);
        if (found && found[1].length <= indent.length && Boolean(found[3]) === Boolean(number)) items.push([found[4]]);
        else if (items.length && /^\s{2,}\S/.test(lines[at])) items.at(-1).push(lines[at].slice(Math.min(indent.length + 2, lines[at].search(/\S/))));
        else if (!(lines[at].trim() === '' && ITEM.test(lines[at + 1] ?? ''))) break;
      }
      made.push((number ? ol : ul)({ key, start: number && number !== '1' ? number : null }, items.map((one) => li(one.length > 1 ? blocks(one, depth + 1) : inline(one[0])))));
    } else {
      const from = at++;
      while (at < lines.length && lines[at].trim() && !STARTS.test(lines[at]) && !ITEM.test(lines[at]) && !isRule(lines[at + 1])) at++;
      made.push(p({ key }, inline(lines.slice(from, at).join('\n'))));
    }
  }
  return made;
}

/** Draws a text of a model. */
export default function markdown(text) {
  return text.length > LONGEST ? div.prose.long({ dir: 'auto' }, text) : div.md({ dir: 'auto' }, blocks(text.replace(/\r\n?/g, '\n').split('\n')));
}
