// Forms made from JSON schemas. A form edits a value without changing it in place: it passes on a function from the value as
// it is now, so that two changes between two drawings both count.
import { tags } from '../lib/dom.js';
import { exact, parse } from '../lib/api.js';
import { hasHidden } from '../lib/hidden.js';
import { words, written } from '../lib/format.js';

const { button, details, div, fieldset, input, label, legend, option, p, select, small, span, summary, textarea } = tags;

const isObject = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);

/** Follows references, and takes the one branch of a nullable schema. */
function resolve(schema, root, hops = 0) {
  const { $ref, ...at } = schema ?? {};
  if (hops > 20) return at;
  if ($ref) return resolve({ ...$ref.split('/').slice(1).reduce((place, key) => place?.[key.replaceAll('~1', '/').replaceAll('~0', '~')], root), ...at }, root, hops + 1);
  const branches = Array.isArray(at.type) ? at.type.map((type) => ({ ...at, type })) : at.anyOf ?? at.oneOf ?? at.allOf;
  if (!branches) return at;
  const real = branches.filter((branch) => branch?.type !== 'null');
  const optional = real.length < branches.length;
  if (real.length === 1) return { description: at.description, ...resolve(real[0], root, hops + 1), optional };
  const isFixed = real.every((branch) => isObject(branch) && ('const' in branch || branch.enum));
  return isFixed ? { ...at, enum: real.flatMap((branch) => branch.enum ?? [branch.const]), optional } : at;
}

/** The deepest level of a form's first value, and the most fields of a form: a schema may refer to itself. */
const [MAX_DEPTH, MAX_FIELDS] = [8, 500];

/** The value that a form starts with: the schema's defaults. */
export function initial(schema, root = schema, depth = 0) {
  const at = resolve(schema, root);
  if (at.default !== undefined) return structuredClone(at.default);
  if (!at.properties || depth > MAX_DEPTH) return at.type === 'boolean' ? false : undefined;
  const fields = Object.entries(at.properties).filter(([name, field]) => at.required?.includes(name) || 'default' in field);
  return Object.fromEntries(fields.map(([name, field]) => [name, initial(field, root, depth + 1)]).filter(([, value]) => value !== undefined));
}

/** Which values a control shows. A form must not hide one, so any other value is edited as JSON. */
const SHOWS = { boolean: (given) => typeof given === 'boolean', integer: isNumber, number: isNumber, array: Array.isArray, object: isObject,
  string: (given, { format }) => typeof given === 'string' && (format !== 'date-time' || local(given) !== '') };
function isNumber(given) { return ['number', 'bigint'].includes(typeof given); }
function shows(type, given) {
  if (given == null) return true;
  const options = optionsOf(type);
  return options ? options.includes(given) : SHOWS[type.properties ? 'object' : type.type]?.(given, type) ?? true;
}
const optionsOf = (type) => type.enum ?? ('const' in type && [type.const]);

/** Makes a form. `errors` are `{ pointer, detail }` of the server; `first` are the fields of a long form that show at once. With
 *  `named`, fields have their names and not the schema's titles, which may say something else; the fields of those that are `flat` stand without a
 *  frame around them; `more` is the text above the others. */
export default function schemaForm(schema, { value, onchange, errors = [], id, root = schema, first, named, flat = [], more = 'More' }) {
  const at = resolve(schema, root);
  let left = MAX_FIELDS;
  if (!at.properties) return div.form(field(schema ?? {}, value, '', 'value', true, onchange));
  const draw = (names) => fields(at, value ?? {}, '', onchange, names);
  const rest = first ? Object.keys(at.properties).filter((name) => !first.includes(name)) : [];
  return div.form(draw(first?.filter((name) => name in at.properties)), rest.length > 0 && details(summary(more), div.form(draw(rest))));

  // What the model added beyond the schema is shown as well: a person decides about all of it.
  function fields({ properties = {}, required }, values, pointer, change, names = Object.keys({ ...properties, ...values })) {
    return names.map((name) => field(properties[name] ?? {}, values[name], `${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`, name,
      required?.includes(name), (edit) => change((now) => {
        const { [name]: before, ...others } = now ?? {};
        const item = edit(before);
        return item === undefined ? others : { ...now, [name]: item };
      })));
  }

  function field(one, given, pointer, name, required, change) {
    const known = resolve(one, root);
    const type = shows(known, given) && left-- > 0 ? known : { title: known.title, description: known.description };
    const key = `${id}${encodeURIComponent(pointer)}`;
    const wrong = errors.filter((error) => error.pointer === pointer);
    const must = Boolean(required && !type.optional);
    const props = { id: key, ref: focusAdded, required: must, 'aria-invalid': wrong.length ? 'true' : null, 'aria-describedby': `${key}-note` };
    const title = [words((!named && type.title) || name), !must && !hasShownDefault(type) && span.soft(' (optional)')];
    const text = typeof given === 'string' ? given : JSON.stringify(given) ?? '';
    // An input shows hidden characters as they are.
    const below = div({ id: `${key}-note` }, hasHidden(text) && p.hiddenNote('Hidden characters: ', text),
      wrong.map(({ detail }) => p.error({ key: detail }, detail)), type.description && small(type.description.replaceAll('`', '')));
    const items = type.type === 'array' && resolve(type.items, root);
    if (type.properties && flat.includes(name) && pointer === `/${name}`) return div.form({ key: pointer }, wrong.map(({ detail }) => p.error({ key: detail }, detail)), fields(type, given ?? {}, pointer, change),
      Object.values(type.properties).some((one) => hasShownDefault(resolve(one, root))) && p.soft('An empty field takes the value in grey.'));
    const group = (...content) => fieldset({ key: pointer }, legend(title), below, content);
    if (type.properties) {
      // The required fields of an object that may be absent are required only once it is there.
      const has = must || given != null;
      const toggle = button.small({ type: 'button', onclick: () => change(() => (has ? undefined : initial(one, root) ?? {})) }, has ? 'Remove' : 'Add');
      return Object.keys({ ...type.properties, ...given }).length > 0 && group(has && fields(type, given ?? {}, pointer, change), !must && pointer && toggle);
    }
    const unset = given == null && type.type === 'array' && hasShownDefault(type) && p.soft({ key: 'default', dir: 'auto' }, `By default: ${type.default.map(written).join(', ')}.`);
    if (items?.enum && (given ?? []).every((item) => items.enum.includes(item))) return group(unset, div.choices(items.enum.map((choice) => check(written(choice), (given ?? []).includes(choice),
      (on) => change((chosen) => items.enum.filter((item) => (item === choice ? on : chosen?.includes(item))))))));
    if (items?.type || items?.properties) return group(unset, list(items, given ?? [], type.default ?? [], pointer, name, change));
    // A person must choose, and a box that is not checked does not say whether one has.
    if (type.type === 'boolean' && must && (given == null || document.getElementById(key)?.tagName === 'SELECT')) return div.field({ key: pointer }, label({ for: key }, title), control({ enum: [true, false], names: ['Yes', 'No'] }, given, props, (to) => change(() => to)), below);
    if (type.type === 'boolean') return div.field({ key: pointer }, check(title, given === true, (on) => change(() => on), { ...props, required: null, indeterminate: given == null }), below);
    return div.field({ key: pointer }, label({ for: key }, title), control(type, given, props, (to) => change(() => to)), below);
  }

  /** A list. The first item that is added follows those of its default. */
  function list(items, given, defaults, pointer, name, change) {
    const start = initial(items, root) ?? (items.type === 'string' ? '' : null);
    return [given.map((item, i) => div.item({ key: i },
      field(items, item, `${pointer}/${i}`, `${name} ${i + 1}`, true, (edit) => change((now) => now.with(i, edit(now[i])))),
      button.plain.small({ type: 'button', 'aria-label': `Remove ${words(name)} ${i + 1}`, onclick: () => change((now) => now.toSpliced(i, 1)) }, 'Remove'))),
    button.small({ type: 'button', 'aria-label': `Add to ${words(name)}`, onclick: () => {
      let place;
      change((now) => {
        const before = now ?? defaults;
        place = before.length;
        return [...before, start];
      });
      added = `${id}${encodeURIComponent(`${pointer}/${place}`)}`;
      setTimeout(() => { added = null; }, 300);
    } }, 'Add')];
  }
}

/** Whether a field shows its default in grey, where a value would be, or above its items. */
const hasShownDefault = (type) => type.default != null && type.default !== '' && (optionsOf(type) || ['string', 'integer', 'number'].includes(type.type) || (Array.isArray(type.default) && type.default.length > 0 && type.default.every((item) => typeof item !== 'object')));

/** The field of an item that has just been added, which gets the focus. */
let added = null;
function focusAdded(node) {
  if (node.id === added) node.focus();
}

const check = (text, checked, change, props) => label.check(input({ ...props, type: 'checkbox', checked,
  onchange: ({ target }) => change(target.checked) }), text);

/** The time of a browser's input in UTC; the server refuses an invalid one. */
function instant(text) {
  const at = new Date(text);
  return Number.isNaN(at.getTime()) ? text : at.toISOString();
}

/** A time as the browser's input has it: local, without a zone. */
function local(time) {
  const at = new Date(time);
  return Number.isNaN(at.getTime()) ? '' : new Date(at - at.getTimezoneOffset() * 60000).toISOString().slice(0, 19);
}

/** Keeps a form from being sent once after letters were typed into its empty number field: the browser drops them, and the field looks as if it had been left alone. */
const refuseLetters = {
  onbeforeinput: ({ data, target }) => { if (data && target.value === '' && !/[\d.,+-]/.test(data)) target.setCustomValidity('Letters are no number: the field is empty.'); },
  oninvalid: ({ target }) => { setTimeout(() => target.setCustomValidity('')); },
};

function control(at, value, props, change) {
  const placeholder = hasShownDefault(at) ? String(at.default) : null;
  const typed = (type, more, shown, read) => input({ ...props, ...more, type, placeholder, value: shown, oninput: ({ target }) => {
    target.setCustomValidity('');
    change(target.value === '' ? undefined : read(target.value));
  } });
  const options = optionsOf(at);
  if (options) {
    // No choice has the empty value, which a required field refuses.
    return select({ ...props, value: options.includes(value) ? String(options.indexOf(value)) : '', onchange: ({ target }) => change(options[target.value]) },
      option({ value: '' }, hasShownDefault(at) ? `${written(at.default)}, by default` : '–'), options.map((one, i) => option({ value: String(i), key: i }, at.names?.[i] ?? written(one))));
  }
  if (['integer', 'number'].includes(at.type)) return typed('number', { ...refuseLetters, step: at.type === 'integer' ? 1 : 'any', min: at.minimum, max: at.maximum }, value == null ? value : String(value), exact);
  if (at.format === 'date-time') return typed('datetime-local', { step: 1, max: '9999-12-31T23:59:59' }, value && local(value), (text) => instant(text));
  if (at.type === 'string' || (!at.type && typeof value === 'string')) {
    // A text may be empty, if it is there.
    const own = { ...props, required: props.required && value == null && placeholder === null, placeholder, value, dir: 'auto', autocomplete: 'off', oninput: ({ target }) => change(target.value || props.required ? target.value : undefined) };
    // A field that is shown stays what it is and as high as it is, whatever is typed.
    const known = document.getElementById(props.id);
    const isLong = known ? known.tagName === 'TEXTAREA' : /^.{61}|\n/s.test(value ?? placeholder ?? '') || at.maxLength > 200;
    return isLong ? textarea({ ...own, rows: known?.rows ?? Math.floor(Math.min(10, 2 + (value ?? placeholder ?? '').length / 70)) }) : input({ ...own, type: 'text' });
  }
  // Any other schema is edited as JSON. An incomplete text is invalid, and stays until the value itself changes.
  const write = (node) => {
    const json = JSON.stringify(value, null, 2) ?? '';
    if (node.$written === json) return;
    [node.value, node.$written] = [json, json];
    node.setCustomValidity('');
  };
  return textarea.code({ ...props, rows: 4, spellcheck: 'false', drawn: write, oninput: ({ target }) => {
    try {
      const edit = target.value.trim() ? parse(target.value) : undefined;
      target.$written = JSON.stringify(edit, null, 2) ?? '';
      target.setCustomValidity('');
      change(edit);
    } catch {
      target.setCustomValidity('This is not JSON yet.');
    }
  } });
}
