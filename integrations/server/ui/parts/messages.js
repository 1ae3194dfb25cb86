// The messages of a request as rows, of which each can be opened and edited.
import { tags } from '../lib/dom.js';
import { icon } from '../lib/icons.js';
import { line, plural } from '../lib/format.js';

const { button, code, div, li, ol, span, textarea } = tags;

const WHO = { user: 'user', assistant: 'model', tool: 'result' };

/** Who says a message, in words. */
export const SAYS = { assistant: 'model', tool: 'result of' };
/** A text of JSON as its fields, and another text as such. */
export function fieldsOf(said, draw, otherwise = said) {
  try {
    return /^\s*[{[]/.test(said) ? draw(JSON.parse(said)) : otherwise;
  } catch {
    return otherwise;
  }
}

/** What a row says of a message. */
function about({ role, name, text, parts = [], files = [] }) {
  const calls = parts.filter(({ type }) => type === 'call');
  const said = text ?? parts.find(({ type }) => type === 'text')?.text ?? '';
  return [role === 'tool' && [code(name), ' '], said && span({ dir: 'auto' }, line(said, 120)), !said && calls.length > 0 && code(calls.map((call) => call.name).join(', ')),
    said && calls.length > 0 && span.quiet(` ${plural(calls.length, 'call')}`), files.length > 0 && span.quiet(` ${files.map((file) => file.name).join(', ')}`)];
}

/** Draws the messages. `edited` are all messages after the edits, absent without one; `change` gets them. */
export function messageRows(recorded, edited, open, change) {
  const list = edited ?? recorded;
  const same = (i) => JSON.stringify(list[i]) === JSON.stringify(recorded[i]);
  const put = (next) => change(JSON.stringify(next) === JSON.stringify(recorded) ? undefined : next);
  const editor = (value, name, set) => textarea({ key: name, class: name === 'arguments' && 'code', 'aria-label': name, rows: Math.min(12, 2 + value.length / 70), dir: 'auto', value, oninput: ({ target }) => set(target.value) });
  const row = (message, i) => {
    const set = (fields) => put(list.with(i, { ...message, ...fields }));
    const setPart = (at, fields) => set({ parts: message.parts.with(at, { ...message.parts[at], ...fields }) });
    const isOpen = open.has(i);
    return li({ key: i, class: same(i) ? '' : 'new' },
      button.twist({ type: 'button', 'aria-expanded': String(isOpen), onclick: () => open.delete(i) || open.add(i) }, icon('chevron'), span.who(WHO[message.role] ?? message.role), span.cut(about(message)), !same(i) && span.good(i < recorded.length ? 'changed' : 'new')),
      isOpen && div.editors(message.text !== undefined && editor(message.text, 'text', (text) => set({ text })),
        message.parts?.map((part, at) => (part.type === 'call' ? div({ key: at }, code(part.name), editor(part.arguments, 'arguments', (given) => setPart(at, { arguments: given })))
          : part.text !== undefined && div({ key: at }, editor(part.text, part.type, (text) => setPart(at, { text }))))),
        i === list.length - 1 && list.length > 1 && button.small({ type: 'button', onclick: () => { open.delete(i); put(list.slice(0, -1)); } }, 'Remove the last message')));
  };
  return div.field({ key: 'messages' }, span.labelText('Messages ', span.quiet(`${list.length}, ${edited ? 'changed' : 'as recorded'}`)),
    ol.messageRows(list.map(row)), button.small({ type: 'button', onclick: () => { open.add(list.length); put([...list, { role: 'user', text: '' }]); } }, icon('plus'), 'Add a message'));
}
