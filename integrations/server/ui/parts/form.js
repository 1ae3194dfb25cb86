// A form from a JSON schema. It edits a value without changing it in place.
import { tags } from '../lib/dom.js';
import { segments, hasHidden } from '../lib/hidden.js';
import { words } from '../lib/format.js';

const { button, div, fieldset, input, legend, mark, option, p, select, small, span, textarea } = tags;

/** Follows references, and takes the one branch of a nullable schema. */
function resolve(schema, root) {
  let at = schema ?? {};
  for (let hops = 0; at.$ref && hops < 20; hops++) {
    const target = at.$ref.split('/').slice(1).reduce((place, key) => place?.[key.replaceAll('~1', '/').replaceAll('~0', '~')], root) ?? {};
    at = { ...target, ...Object.fromEntries(Object.entries(at).filter(([name]) => name !== '$ref')) };
  }
  const branches = at.anyOf ?? at.oneOf ?? (at.allOf?.length === 1 ? at.allOf : null);
  if (branches) {
    const real = branches.filter((branch) => branch.type !== 'null');
    if (real.length === 1) return { ...resolve(real[0], root), ...(at.description ? { description: at.description } : {}), optional: real.length < branches.length };
    if (real.every((branch) => 'const' in branch || branch.enum)) return { ...at, enum: real.flatMap((branch) => branch.enum ?? [branch.const]), optional: real.length < branches.length };
  }
  if (Array.isArray(at.type)) {
    const types = at.type.filter((type) => type !== 'null');
    if (types.length === 1) return { ...at, type: types[0], optional: types.length < at.type.length };
  }
  return at;
}

/** The value a form starts with: the schema's defaults. */
export function initial(schema, root = schema) {
  const at = resolve(schema, root);
  if (at.default !== undefined) return structuredClone(at.default);
  if (at.type === 'object' || at.properties) {
    const value = {};
    for (const [name, field] of Object.entries(at.properties ?? {})) {
      const given = initial(field, root);
      if (given !== undefined) value[name] = given;
      else if (at.required?.includes(name) && resolve(field, root).type === 'boolean') value[name] = false;
    }
    return value;
  }
  return undefined;
}

let forms = 0;

/** Makes a form. `errors` are `{ pointer, detail }` of the server. */
export function schemaForm(schema, { value, onchange, errors = [], id = `form${forms++}` }) {
  const form = { root: schema, errors, id };
  const at = resolve(schema, schema);
  if (at.properties) return div.form(fields(at, value ?? {}, '', form, onchange));
  return div.form(field(schema ?? {}, value, '', 'value', true, form, onchange));
}

function fields(schema, value, pointer, form, onchange) {
  const set = (name, item) => {
    const next = { ...value };
    if (item === undefined) delete next[name];
    else next[name] = item;
    onchange(next);
  };
  const known = Object.keys(schema.properties ?? {});
  // What the model added beyond the schema is shown as well: a person decides about all of it.
  const extra = Object.keys(value).filter((name) => !known.includes(name));
  return [...known, ...extra].map((name) => field(schema.properties?.[name] ?? {}, value[name], `${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`, name,
    schema.required?.includes(name), form, (item) => set(name, item)));
}

function field(schema, value, pointer, name, required, form, onchange) {
  const at = resolve(schema, form.root);
  const id = `${form.id}${pointer.replaceAll('/', '-')}`;
  const errors = form.errors.filter((error) => error.pointer === pointer);
  const type = at.enum || 'const' in at ? 'enum' : at.type ?? (at.properties ? 'object' : typeof value === 'string' ? 'string' : 'json');
  const notes = [errors.length ? `${id}-error` : null, at.description ? `${id}-note` : null].filter(Boolean).join(' ') || null;
  const common = { id, 'aria-invalid': errors.length ? 'true' : null, 'aria-describedby': notes, required: required && !at.optional };
  const label = [words(at.title ?? name), required && !at.optional ? null : span.soft(' (optional)')];
  const below = [
    at.description && small.soft({ id: `${id}-note` }, at.description),
    typeof value === 'string' && hasHidden(value) && div.hiddenNote('Hidden characters: ', segments(value).map((part) => (part.hidden ? mark.hiddenChar({ title: part.name }, part.text) : part.text))),
    errors.map((error) => p.error({ id: `${id}-error`, key: error.detail }, error.detail)),
  ];
  if (type === 'object' && at.properties) {
    return fieldset({ key: pointer }, legend(label), below, fields(at, value ?? {}, pointer, form, onchange));
  }
  if (type === 'boolean') {
    return div.field({ key: pointer }, tags.label.check(input({ ...common, required: null, type: 'checkbox', checked: value === true, onchange: (event) => onchange(event.target.checked) }), label), below);
  }
  if (type === 'array' && at.items && resolve(at.items, form.root).type !== undefined) {
    const items = value ?? [];
    return fieldset({ key: pointer }, legend(label), below,
      items.map((item, index) => div.item({ key: index },
        field(at.items, item, `${pointer}/${index}`, `${name} ${index + 1}`, true, form, (next) => onchange(items.map((old, i) => (i === index ? next : old)))),
        button.plain.small({ type: 'button', onclick: () => onchange(items.filter((_, i) => i !== index)) }, 'Remove'))),
      button.small({ type: 'button', onclick: () => onchange([...items, initial(at.items, form.root) ?? (resolve(at.items, form.root).type === 'string' ? '' : null)]) }, 'Add'));
  }
  return div.field({ key: pointer }, tags.label({ for: id }, label), control(type, at, value, common, onchange), below);
}

function control(type, at, value, common, onchange) {
  if (type === 'enum') {
    const options = at.enum ?? [at.const];
    return select({ ...common, value: value === undefined ? '' : String(value), onchange: (event) => onchange(options.find((option) => String(option) === event.target.value)) },
      option({ value: '' }, '–'), options.map((option) => tags.option({ value: String(option), key: String(option) }, String(option))));
  }
  if (type === 'integer' || type === 'number') {
    return input({ ...common, type: 'number', step: type === 'integer' ? 1 : 'any', min: at.minimum, max: at.maximum, value: value ?? '',
      oninput: (event) => onchange(event.target.value === '' ? undefined : Number(event.target.value)) });
  }
  if (type === 'string') {
    const long = String(value ?? '').length > 60 || String(value ?? '').includes('\n') || at.maxLength > 200;
    const empty = (text) => (text === '' && !common.required ? undefined : text);
    const props = { ...common, value: value ?? '', dir: 'auto', oninput: (event) => onchange(empty(event.target.value)) };
    return long ? textarea({ ...props, rows: Math.min(10, 2 + String(value).length / 70) }) : input({ ...props, type: 'text', autocomplete: 'off' });
  }
  // Any other schema is edited as JSON; an incomplete text keeps the last valid value.
  return textarea.code({ ...common, rows: 4, spellcheck: 'false', ref: (node) => { node.value = value === undefined ? '' : JSON.stringify(value, null, 2); },
    oninput: (event) => {
      const { target } = event;
      try {
        const next = target.value.trim() === '' ? undefined : JSON.parse(target.value);
        target.setCustomValidity('');
        onchange(next);
      } catch {
        target.setCustomValidity('This is not JSON yet.');
      }
    } });
}
