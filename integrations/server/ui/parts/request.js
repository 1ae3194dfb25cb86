// Forms and dialogs that send one request. Their fields are those of the request's schema in the API's own description.
import { tags, redraw } from '../lib/dom.js';
import { get, newKey, request } from '../lib/api.js';
import { ends, openDialog } from '../lib/keys.js';
import { at } from '../lib/page.js';
import schemaForm, { initial } from './schema_form.js';

const { button, div, form, h2, li, p, ul } = tags;

let description;

/** Makes the form of a request; returns how to draw it. `route` is as in `POST /schedules/{schedule}/pause`. Placeholders that
 *  `params` lacks become fields, `hide` names fields that are sent as `value` has them, `check` finds errors before anything is sent, `sends` changes the body, `schemas` replaces schemas of fields. */
export function requestForm({ route, title, verb, note, danger, name, params = {}, hide = [], schemas = {}, value = {}, first, flat, more, skip = () => [], above, below, ready, isReady = () => true, changed, check, explain, done, headers, sends = (body) => body }) {
  const [method, path] = route.split(' ');
  const missing = [...path.matchAll(/{(\w+)}/g)].map(([, param]) => param).filter((param) => !(param in params));
  const asked = { value, use, set, body: () => sends(Object.fromEntries(Object.entries(asked.value).filter(([field]) => !missing.includes(field)))) };
  let [root, schema, problem, busy, key] = [];

  /** Sets the schema of a field, which has its own definitions, and the field's value. */
  function use(field, given, now = asked.value[field]) {
    root.$defs = given?.$defs ?? root.$defs;
    schema.properties[field] = given ?? {};
    asked.value = { ...asked.value, [field]: now };
    redraw();
  }
  /** Sets several fields at once. */
  function set(fields) {
    asked.value = { ...asked.value, ...fields };
    changed?.(asked);
    redraw();
  }
  async function load() {
    description ??= get('/../../openapi.json');
    root = { ...await description.catch((error) => { description = null; throw error; }) };
    const { requestBody } = root.paths[`/api/v1${path}`][method.toLowerCase()];
    const given = root.components.schemas[requestBody?.content['application/json'].schema.$ref.split('/').pop()] ?? {};
    // A body of several types is of the one that `value` names.
    const body = given.oneOf?.find(({ properties }) => properties.type.const === value.type) ?? given;
    const all = [...missing.map((param) => [param, { type: 'string', title: `${param} name` }]), ...Object.entries(body.properties ?? {})];
    schema = { properties: Object.fromEntries(all.filter(([field]) => !hide.includes(field))), required: [...missing, ...(body.required ?? [])] };
    asked.value = { ...initial(schema, root), ...value };
    for (const field in schemas) use(field, schemas[field]);
    await ready?.(asked);
  }
  async function send(event) {
    event.preventDefault();
    if (busy || !isReady()) return;
    const wrong = check?.(asked) ?? [];
    if (wrong.length) {
      problem = { body: { errors: wrong } };
      requestAnimationFrame(() => requestAnimationFrame(() => document.querySelector('form [aria-invalid=true]')?.focus()));
      return;
    }
    // A request without an answer may have arrived, so that its repetition has the same key.
    [busy, problem, key] = [true, null, problem?.status === 0 ? key : newKey()];
    const to = path.replace(/\/{(\w+)}/g, (_, param) => at(params[param] ?? asked.value[param]));
    await request(method, to, { body: method === 'DELETE' ? undefined : asked.body(), headers: { ...headers, ...(method === 'POST' && { 'Idempotency-Key': key }) } }).then(done, fail);
    busy = false;
  }
  const fail = (error) => { problem = error; };
  load().catch(fail).then(redraw);
  return (close) => {
    const errors = problem?.body?.errors ?? [];
    const hidden = [...hide, ...skip()];
    const shown = schema && { ...schema, properties: Object.fromEntries(Object.entries(schema.properties).filter(([field]) => !hidden.includes(field))) };
    // An error below a field that is shown stands at the field.
    const elsewhere = errors.filter(({ pointer }) => !shown?.properties[pointer.split('/')[1]]);
    return form({ class: name, 'aria-label': title, onsubmit: send }, h2(title), note && p.soft(note), above?.(),
      shown && schemaForm(shown, { value: Object.fromEntries(Object.entries(asked.value).filter(([field]) => !hidden.includes(field))), errors, id: 'request', root, first, flat, more, onchange: (edit) => {
        asked.value = edit(asked.value);
        changed?.(asked);
      } }),
      below?.(),
      problem?.message && p.problem({ role: 'alert' }, explain?.(problem) ?? problem.message),
      elsewhere.length > 0 && ul(elsewhere.map(({ pointer, detail }) => li.error({ key: pointer }, `${pointer} ${detail}`))),
      ends(close, button({ class: danger ? 'danger' : 'primary', disabled: busy || !schema || !isReady() }, busy ? 'Sending…' : verb)));
  };
}

/** Opens a dialog for one request. `done` gets the answer after the dialog has closed. */
export function ask({ done, ...spec }) {
  const draw = requestForm({ ...spec, done: (answer) => {
    close();
    done?.(answer);
  } });
  const close = openDialog(spec.title, draw);
}

/** Buttons that open a request each, by their texts. */
export const requests = (specs) => div.buttons(Object.entries(specs).filter(([, spec]) => spec)
  .map(([text, spec]) => button.small({ key: text, onclick: () => ask(spec) }, text)));
