// Forms and dialogs that send one request. Their fields are those of the request's schema in the API's own description.
import { tags } from '../lib/dom.js';
import { get, request } from '../lib/api.js';
import { openDialog } from '../lib/keys.js';
import { initial, schemaForm } from './form.js';

const { button, footer, form, h2, li, p, ul } = tags;

let description = null;
async function api() {
  description ??= get('/../../openapi.json').catch((error) => { description = null; throw error; });
  return description;
}

/** A form for one request. `route` is as in `POST /schedules/{schedule}/pause`. Placeholders that `params` lacks become
 *  fields. `hide` names fields that are sent as `value` has them, `schemas` replaces the schemas of fields. */
export class RequestForm {
  constructor(context, spec) {
    Object.assign(this, { redraw: context.redraw, params: {}, hide: [], schemas: {}, value: {} }, spec);
    [this.method, this.path] = spec.route.split(' ');
    this.load().catch((error) => { this.problem = error; }).finally(() => this.redraw());
  }

  async load() {
    const root = await api();
    const { requestBody } = root.paths[`/api/v1${this.path}`][this.method.toLowerCase()];
    const name = requestBody?.content['application/json'].schema.$ref.split('/').pop();
    const body = root.components.schemas[name] ?? {};
    this.missing = [...this.path.matchAll(/{(\w+)}/g)].map(([, param]) => param).filter((param) => !(param in this.params));
    const given = Object.fromEntries(this.missing.map((param) => [param, { type: 'string', title: `${param} name` }]));
    const properties = Object.entries({ ...given, ...body.properties }).filter(([field]) => !this.hide.includes(field));
    this.root = { ...root };
    this.schema = { properties: Object.fromEntries(properties), required: [...this.missing, ...(body.required ?? [])] };
    this.value = { ...initial(this.schema, root), ...this.value };
    for (const [field, schema] of Object.entries(this.schemas)) this.use(field, schema);
    await this.ready?.(this);
  }

  /** Sets the schema of a field, which has its own definitions, and the field's value. */
  use(field, schema, value = this.value[field]) {
    Object.assign(this.root, { $defs: schema?.$defs ?? this.root.$defs });
    this.schema.properties[field] = schema ?? {};
    this.value = { ...this.value, [field]: value };
    this.redraw();
  }

  /** The body of the request, without the values of placeholders. */
  get body() {
    return Object.fromEntries(Object.entries(this.value).filter(([name]) => !this.missing?.includes(name)));
  }

  async send() {
    Object.assign(this, { busy: true, problem: null });
    this.redraw();
    try {
      const params = { ...this.value, ...this.params };
      const path = this.path.replace(/{(\w+)}/g, (_, name) => encodeURIComponent(params[name]));
      this.done(await request(this.method, path, this.method === 'DELETE' ? undefined : this.body, this.headers));
    } catch (error) {
      this.problem = error;
    }
    this.busy = false;
    this.redraw();
  }

  change(value) {
    this.value = value;
    this.changed?.(this);
    this.redraw();
  }

  render(close) {
    const errors = this.problem?.body?.errors ?? [];
    // An error below a field that is shown stands at the field.
    const elsewhere = errors.filter(({ pointer }) => !this.schema?.properties[pointer.split('/')[1]]);
    return form({ class: this.class, 'aria-label': this.title, onsubmit: (event) => { event.preventDefault(); this.send(); } },
      h2(this.title), this.note && p.soft(this.note), this.above?.(),
      this.schema && schemaForm(this.schema, { value: this.value, onchange: (value) => this.change(value), errors, id: 'request',
        root: this.root, first: this.first }),
      this.below?.(this),
      this.problem && p.problem({ role: 'alert' }, this.explain?.(this.problem) ?? this.problem.message),
      elsewhere.length > 0 && ul(elsewhere.map((error) => li.error({ key: error.pointer }, `${error.pointer} ${error.detail}`))),
      footer(button({ class: this.danger ? 'danger' : 'primary', disabled: this.busy || !this.schema }, this.busy ? 'Sending…' : this.verb),
        close && button.plain({ type: 'button', onclick: close }, 'Close')));
  }
}

/** Opens a dialog for one request. `done` gets the answer after the dialog has closed. */
export function ask(context, { done, ...spec }) {
  let dialog = null;
  const draw = () => dialog?.draw();
  const asked = new RequestForm({ redraw: draw }, { ...spec, done: (answer) => { dialog.close(); done?.(answer); } });
  openDialog(spec.title, (close, redraw) => {
    dialog = { close, draw: redraw };
    return asked.render(close);
  });
  return asked;
}
