// Forms made from JSON schemas. A form edits a value without changing it in place.
import { tags } from '../lib/dom.js';
import { hasHidden } from '../lib/hidden.js';
import { words } from '../lib/format.js';

const { button, details, div, fieldset, input, label, legend, option, p, select, small, span, summary, textarea } = tags;

const pointerKey = (key) => key.replaceAll('~1', '/').replaceAll('~0', '~');
const escapeKey = (name) => name.replaceAll('~', '~0').replaceAll('/', '~1');

/** Follows references, and takes the one branch of a nullable schema. */
function resolve(schema, root, hops = 0) {
  const { $ref, ...at } = schema ?? {};
  if ($ref && hops < 20) {
    const target = $ref.split('/').slice(1).reduce((place, key) => place?.[pointerKey(key)], root);
    return resolve({ ...target, ...at }, root, hops + 1);
  }
  const types = Array.isArray(at.type) ? at.type.map((type) => ({ ...at, type })) : null;
  const branches = types ?? at.anyOf ?? at.oneOf ?? (at.allOf?.length === 1 ? at.allOf : null);
  if (!branches) return at;
  const real = branches.filter((branch) => branch.type !== 'null');
  const optional = real.length < branches.length;
  const { description = real[0]?.description } = at;
  if (real.length === 1 && hops < 20) return { ...resolve(real[0], root, hops + 1), description, optional };
  const fixed = real.every((branch) => 'const' in branch || branch.enum);
  return fixed ? { ...at, enum: real.flatMap((branch) => branch.enum ?? [branch.const]), optional } : at;
}

/** The value a form starts with: the schema's defaults. */
export function initial(schema, root = schema) {
  const at = resolve(schema, root);
  if (at.default !== undefined) return structuredClone(at.default);
  if (at.type === 'boolean') return false;
  if (!at.properties) return undefined;
  const fields = Object.entries(at.properties).filter(([name, field]) => at.required?.includes(name) || 'default' in field);
  const values = fields.map(([name, field]) => [name, initial(field, root)]);
  return Object.fromEntries(values.filter(([, value]) => value !== undefined));
}

/** Makes a form. `errors` are `{ pointer, detail }` of the server; `first` are the fields of a long form that show at once. */
export function schemaForm(schema, { value, onchange, errors = [], id, root = schema, first }) {
  const form = { root, errors, id };
  const at = resolve(schema, root);
  if (!at.properties) return div.form(field(schema ?? {}, value, '', 'value', true, form, onchange));
  if (!first) return div.form(fields(at, value ?? {}, '', form, onchange));
  const draw = (names) => fields(at, value ?? {}, '', form, onchange, names);
  const rest = Object.keys(at.properties).filter((name) => !first.includes(name));
  return div.form(draw(first.filter((name) => name in at.properties)),
    rest.length > 0 && details.rest(summary('More'), div.form(draw(rest))));
}

function fields(schema, value, pointer, form, onchange, names) {
  // What the model added beyond the schema is shown as well: a person decides about all of it.
  const all = names ?? [...new Set([...Object.keys(schema.properties ?? {}), ...Object.keys(value)])];
  return all.map((name) => {
    const set = (item) => {
      const { [name]: _, ...others } = value;
      onchange(item === undefined ? others : { ...value, [name]: item });
    };
    const place = `${pointer}/${escapeKey(name)}`;
    return field(schema.properties?.[name] ?? {}, value[name], place, name, schema.required?.includes(name), form, set);
  });
}

function field(schema, value, pointer, name, required, form, onchange) {
  const at = resolve(schema, form.root);
  const id = `${form.id}${pointer.replaceAll('/', '-')}`;
  const errors = form.errors.filter((error) => error.pointer === pointer);
  const described = [errors.length && `${id}-error`, at.description && `${id}-note`].filter(Boolean).join(' ');
  const must = Boolean(required && !at.optional);
  const props = { id, required: must, 'aria-invalid': errors.length ? 'true' : null, 'aria-describedby': described || null };
  const title = [words(at.title ?? name), !must && span.soft(' (optional)')];
  const below = [
    hidden(value) && p.hiddenNote('Hidden characters: ', hidden(value)),
    errors.map((error) => p.error({ id: `${id}-error`, key: error.detail }, error.detail)),
    at.description && small({ id: `${id}-note` }, at.description.replaceAll('`', '')),
  ];
  const items = at.type === 'array' && at.items ? resolve(at.items, form.root) : {};
  const group = (...content) => fieldset({ key: pointer }, legend(title), below, content);
  if (at.properties) return Object.keys(at.properties).length > 0 && group(fields(at, value ?? {}, pointer, form, onchange));
  if (items.enum) return group(choices(items.enum, value ?? [], onchange));
  if (items.type || items.properties) return group(list(items, value ?? [], pointer, name, form, onchange));
  if (at.type !== 'boolean') return div.field({ key: pointer }, label({ for: id }, title), control(at, value, props, onchange), below);
  const check = { ...props, required: null, type: 'checkbox', checked: value === true, onchange: (event) => onchange(event.target.checked) };
  return div.field({ key: pointer }, label.check(input(check), title), below);
}

/** The text of a value if it has invisible or direction-changing characters. An input shows them as they are. */
const hidden = (value) => {
  const text = typeof value === 'string' ? value : value && JSON.stringify(value);
  return text && hasHidden(text) ? text : null;
};

const choices = (all, value, onchange) => div.choices(all.map((one) => label.check({ key: one }, input({ type: 'checkbox',
  checked: value.includes(one),
  onchange: ({ target }) => onchange(all.filter((item) => (item === one ? target.checked : value.includes(item)))) }), one)));

const list = (items, value, pointer, name, form, onchange) => [
  value.map((item, index) => div.item({ key: index },
    field(items, item, `${pointer}/${index}`, `${name} ${index + 1}`, true, form, (next) => onchange(value.with(index, next))),
    button.plain.small({ type: 'button', 'aria-label': `Remove ${words(name)} ${index + 1}`,
      onclick: () => onchange(value.toSpliced(index, 1)) }, 'Remove'))),
  button.small({ type: 'button', onclick: () => onchange([...value, initial(items, form.root) ?? (items.type === 'string' ? '' : null)]) },
    `Add ${words(name)}`),
];

/** A time as the browser's input has it: local, without a zone. */
const local = (time) => {
  const at = new Date(time);
  return Number.isNaN(at.getTime()) ? '' : new Date(at - at.getTimezoneOffset() * 60000).toISOString().slice(0, 19);
};

function control(at, value, props, onchange) {
  const options = at.enum ?? ('const' in at ? [at.const] : null);
  if (options) {
    return select({ ...props, value: String(value ?? ''), onchange: ({ target }) => onchange(options.find((one) => String(one) === target.value)) },
      option({ value: '' }, '–'), options.map((one) => option({ value: String(one), key: String(one) }, words(one))));
  }
  if (at.type === 'integer' || at.type === 'number') {
    return input({ ...props, type: 'number', step: at.type === 'integer' ? 1 : 'any', min: at.minimum, max: at.maximum, value: value ?? '',
      oninput: ({ target }) => onchange(target.value === '' ? undefined : Number(target.value)) });
  }
  if (at.format === 'date-time') {
    return input({ ...props, type: 'datetime-local', step: 1, value: value ? local(value) : '',
      oninput: ({ target }) => onchange(target.value ? new Date(target.value).toISOString() : undefined) });
  }
  if (at.type === 'string' || (!at.type && typeof value === 'string')) {
    const text = String(value ?? '');
    const own = { ...props, value: text, dir: 'auto', autocomplete: 'off',
      oninput: ({ target }) => onchange(target.value === '' && !props.required ? undefined : target.value) };
    const long = text.length > 60 || text.includes('\n') || at.maxLength > 200;
    return long ? textarea({ ...own, rows: Math.min(10, 2 + text.length / 70) }) : input({ ...own, type: 'text' });
  }
  // Any other schema is edited as JSON; an incomplete text keeps the last valid value.
  const start = (node) => { node.value = value === undefined ? '' : JSON.stringify(value, null, 2); };
  return textarea.code({ ...props, rows: 4, spellcheck: 'false', ref: start, oninput: ({ target }) => {
    try {
      onchange(target.value.trim() === '' ? undefined : JSON.parse(target.value));
      target.setCustomValidity('');
    } catch {
      target.setCustomValidity('This is not JSON yet.');
    }
  } });
}
