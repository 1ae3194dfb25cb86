// Virtual nodes and their reconciliation with the document. Text from data becomes text nodes only.
import { hasHidden, shown, segments } from './hidden.js';

const SVG = 'http://www.w3.org/2000/svg';
const PROPERTIES = new Set(['value', 'checked', 'disabled', 'selected', 'open', 'indeterminate']);

class VirtualNode {
  constructor(tag, props, children) {
    Object.assign(this, { tag, props, children, key: props.key ?? null });
  }
}

/** A builder of one tag with classes. A property of it is the builder with one more class: `div.card['run-head'].runHead`. */
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
 *  unchanged one, whose children may then be a function. */
export const tags = new Proxy({}, { get: (known, tag) => (known[tag] ??= builder(tag, '')) });

/** Flattens children into virtual nodes and strings; strings with hidden characters become marked segments. */
function flat(children, into = []) {
  for (const child of children) {
    if (child == null || child === false || child === true) continue;
    if (Array.isArray(child)) flat(child, into);
    else if (typeof child === 'object') into.push(child);
    else if (typeof child === 'function') flat([child()], into);
    else if (hasHidden(child)) into.push(marked(String(child)));
    else into.push(String(child));
  }
  return into;
}

function marked(text) {
  const parts = segments(text).map((part) =>
    part.hidden ? tags.mark.hiddenChar({ title: part.name }, part.text) : part.text);
  return tags.bdi.hasHidden(parts);
}

/** Makes the children of an element equal to the given ones. */
export function render(parent, ...children) {
  reconcile(parent, flat(children), parent.namespaceURI === SVG && parent.tagName !== 'foreignObject');
}

function reconcile(parent, kids, svg) {
  const keyed = new Map();
  const free = [];
  const wanted = new Set(kids.map((kid) => kid.key));
  // Nodes that go are removed first, so that those that stay need not move, which would take their focus.
  for (const node of [...parent.childNodes]) {
    const key = node.$v?.key;
    if (key == null) free.push(node);
    else if (wanted.has(key)) keyed.set(key, node);
    else node.remove();
  }
  let place = parent.firstChild;
  let from = 0;
  for (const kid of kids) {
    let node = null;
    if (typeof kid === 'object' && kid.key != null) {
      const known = keyed.get(kid.key);
      if (known && same(known, kid)) {
        node = known;
        keyed.delete(kid.key);
      }
    } else {
      for (let i = from; i < free.length; i++) {
        if (!same(free[i], kid)) continue;
        node = free[i];
        for (let skipped = from; skipped < i; skipped++) {
          if (place === free[skipped]) place = place.nextSibling;
          free[skipped].remove();
        }
        from = i + 1;
        break;
      }
    }
    if (node) patch(node, kid, svg);
    else node = create(kid, svg);
    if (node === place) place = place.nextSibling;
    else parent.insertBefore(node, place);
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

function same(node, kid) {
  if (typeof kid === 'string') return node.nodeType === 3;
  return node.nodeType === 1 && node.$v?.tag === kid.tag;
}

function create(kid, svg) {
  if (typeof kid === 'string') return document.createTextNode(kid);
  const inSvg = svg || kid.tag === 'svg';
  const node = inSvg ? document.createElementNS(SVG, kid.tag) : document.createElement(kid.tag);
  node.$v = { tag: kid.tag, key: kid.key, props: {} };
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
  node.$v = { tag: kid.tag, key: kid.key, props: kid.props };
  // A select takes its value only after its options exist.
  if (!kid.props.opaque) reconcile(node, flat(kid.children), svg || kid.tag === 'svg');
  for (const name in before) if (!(name in kid.props)) assign(node, name, null, before[name]);
  for (const name in kid.props) assign(node, name, kid.props[name], before[name]);
}

function assign(node, name, value, before) {
  if (name === 'key' || name === 'memo' || name === 'ref' || name === 'opaque') return;
  if (name.startsWith('on')) {
    node[name] = typeof value === 'function' ? value : null;
  } else if (PROPERTIES.has(name)) {
    const wanted = value ?? (name === 'value' ? '' : false);
    if (node[name] !== wanted) node[name] = wanted;
  } else if (name === 'style') {
    for (const key in before ?? {}) if (!(key in (value ?? {}))) node.style.removeProperty(key);
    for (const key in value ?? {}) if (before?.[key] !== value[key]) node.style.setProperty(key, value[key]);
  } else if (value === before) {
    return;
  } else if (value == null || value === false) {
    node.removeAttribute(name);
  } else if ((name === 'href' || name === 'src') && !isOwn(value)) {
    node.removeAttribute(name);
  } else {
    node.setAttribute(name, value === true ? '' : shown(String(value)));
  }
}

/** An address of this server. Every other address, and every `javascript:` one, is never made a link. */
const isOwn = (address) => /^(\/(?![/\\\s])|#|\?)/.test(address);

/** Combines drawing requests into one per frame. */
export function perFrame(draw) {
  let due = false;
  return () => {
    if (due) return;
    due = true;
    requestAnimationFrame(() => {
      due = false;
      draw();
    });
  };
}
