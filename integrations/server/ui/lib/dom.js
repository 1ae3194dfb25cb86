// Virtual nodes and their reconciliation with the document. Text from data becomes text nodes only.
import { hasHidden, shown, segments } from './hidden.js';

const SVG = 'http://www.w3.org/2000/svg';
const PROPERTIES = new Set(['value', 'checked', 'disabled', 'selected', 'open', 'indeterminate']);
const OWN = new Set(['key', 'memo', 'ref', 'opaque']);

class VirtualNode {
  constructor(tag, props, children) {
    Object.assign(this, { tag, props, children, key: props.key ?? null });
  }
}

/** A builder of one tag with classes. A property of it is the builder with one more class: `div.card.runHead`. */
function builder(tag, classes) {
  const more = new Map();
  const own = classes ? { class: classes } : {};
  const build = (first, ...rest) => {
    if (first?.constructor !== Object) return new VirtualNode(tag, own, [first, ...rest]);
    return new VirtualNode(tag, classes ? { ...first, class: first.class ? `${classes} ${first.class}` : classes } : first, rest);
  };
  return new Proxy(build, {
    get(_, name) {
      if (!more.has(name)) {
        const dashed = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
        more.set(name, builder(tag, classes ? `${classes} ${dashed}` : dashed));
      }
      return more.get(name);
    },
  });
}

/** Builders of virtual nodes by tag: `const { div, h2 } = tags; div.card.wide({ onclick }, h2('Title'), child, …)`. The first
 *  argument is the properties if it is a plain object. `key` names a node among its siblings; `memo` (an array) skips an
 *  unchanged one, whose children may then be a function; `opaque` leaves the children to other code. */
export const tags = new Proxy({}, { get: (known, tag) => (known[tag] ??= builder(tag, '')) });

/** Flattens children into virtual nodes and strings; strings with hidden characters become marked segments. */
function flat(children, into = []) {
  for (const child of children) {
    if (child == null || typeof child === 'boolean') continue;
    if (Array.isArray(child)) flat(child, into);
    else if (typeof child === 'function') flat([child()], into);
    else if (typeof child === 'object') into.push(child);
    else into.push(hasHidden(child) ? tags.bdi(marked(child)) : String(child));
  }
  return into;
}

/** A text whose hidden characters are marked and named. */
export const marked = (text) => segments(String(text)).map((part) => (part.name ? tags.mark.hiddenChar({ title: part.name }, part.text) : part.text));

/** Makes the children of an element equal to the given ones. */
export const render = (parent, ...children) => reconcile(parent, flat(children), parent.namespaceURI === SVG);

function reconcile(parent, kids, svg) {
  const old = [...parent.childNodes];
  const keyed = new Map(old.filter((node) => node.$v?.key != null).map((node) => [node.$v.key, node]));
  const free = old.filter((node) => node.$v?.key == null);
  let from = 0;
  const known = kids.map((kid) => {
    if (kid.key != null) {
      const node = keyed.get(kid.key);
      return node && same(node, kid) && keyed.delete(kid.key) ? node : null;
    }
    const at = free.findIndex((node, index) => index >= from && same(node, kid));
    if (at < 0) return null;
    from = at + 1;
    return free[at];
  });
  // Nodes that go are removed first, so that those that stay need not move, which would take their focus.
  const kept = new Set(known);
  for (const node of old) if (!kept.has(node)) node.remove();
  let place = parent.firstChild;
  kids.forEach((kid, index) => {
    const node = known[index] ?? create(kid, svg);
    if (known[index]) patch(node, kid, svg);
    if (node === place) place = place.nextSibling;
    else parent.insertBefore(node, place);
  });
}

const same = (node, kid) => (typeof kid === 'string' ? node.nodeType === 3 : node.$v?.tag === kid.tag);

function create(kid, svg) {
  if (typeof kid === 'string') return document.createTextNode(kid);
  const inSvg = svg || kid.tag === 'svg';
  const node = inSvg ? document.createElementNS(SVG, kid.tag) : document.createElement(kid.tag);
  node.$v = { props: {} };
  patch(node, kid, inSvg);
  kid.props.ref?.(node);
  return node;
}

function patch(node, kid, svg) {
  if (typeof kid === 'string') {
    if (node.data !== kid) node.data = kid;
    return;
  }
  const before = node.$v.props;
  const { memo } = kid.props;
  if (memo && before.memo?.length === memo.length && memo.every((value, i) => value === before.memo[i])) return;
  node.$v = kid;
  // A select takes its value only after its options exist.
  if (!kid.props.opaque) reconcile(node, flat(kid.children), svg || kid.tag === 'svg');
  for (const name in before) if (!(name in kid.props)) assign(node, name, null, before[name]);
  for (const name in kid.props) assign(node, name, kid.props[name], before[name]);
}

function assign(node, name, value, before) {
  if (OWN.has(name)) return;
  if (name.startsWith('on')) {
    // A handler that returns `false` would cancel what the browser does by itself.
    node[name] = value ? (event) => { value(event); } : null;
  } else if (PROPERTIES.has(name)) {
    const wanted = value ?? (name === 'value' ? '' : false);
    if (node[name] !== wanted) node[name] = wanted;
  } else if (name === 'style') {
    for (const key of Object.keys({ ...before, ...value })) {
      if (before?.[key] !== value?.[key]) node.style.setProperty(key, value?.[key] ?? '');
    }
  } else if (value !== before) {
    if (value == null || value === false || (['href', 'src'].includes(name) && !isOwn(value))) node.removeAttribute(name);
    else node.setAttribute(name, value === true ? '' : shown(String(value)));
  }
}

/** An address of this server. Every other address, and every `javascript:` one, is never made a link. */
const isOwn = (address) => /^(\/(?![/\\\s])|#|\?)/.test(address);

/** Combines drawing requests into one per frame. */
export function perFrame(draw) {
  let frame = 0;
  return () => {
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      draw();
    });
  };
}
