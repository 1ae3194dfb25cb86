// Virtual nodes and their reconciliation with the document. Text from data becomes text nodes only.
import { segments, shown } from './hidden.js';

const SVG = 'http://www.w3.org/2000/svg';
const PROPERTIES = ['value', 'checked', 'indeterminate', 'disabled', 'open'];
const OWN = ['key', 'memo', 'ref', 'drawn', 'opaque', 'final'];

class VirtualNode {
  /** The builder's own `classes` say what a node without a key is, those of its properties how it stands. */
  constructor(tag, classes, props, children) {
    Object.assign(this, { tag, classes, props, children, key: props.key });
  }
}

/** A builder of one tag with classes. A property of it is the builder with one more class: `div.card.runHead`. */
const builder = (tag, classes) => new Proxy((first, ...rest) => {
  const isProps = first?.constructor === Object;
  const props = isProps ? { ...first } : {};
  if (classes) props.class = props.class ? `${classes} ${props.class}` : classes;
  return new VirtualNode(tag, classes, props, isProps ? rest : [first, ...rest]);
}, {
  get(made, name) {
    const dashed = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    return (made[`$${name}`] ??= builder(tag, classes ? `${classes} ${dashed}` : dashed));
  },
});

/** Builders by tag: `const { div, h2 } = tags; div.card({ onclick }, h2('Title'), …)`. A plain object first is the properties.
 *  `key` names a node among its siblings; `memo` (an array) skips an unchanged node, whose children may then be a function;
 *  `final` children are strings and nodes as they are; `opaque` leaves the children to other code; `ref` gets the element once it is
 *  in the document, `drawn` at each drawing. */
export const tags = new Proxy({}, { get: (made, tag) => (made[tag] ??= builder(tag, '')) });

/** A text, in which hidden characters are marks. */
function marked(text) {
  const parts = segments(text);
  return parts.length > 1 ? tags.bdi({ final: true }, ...parts.map((part) => (part.hidden ? tags.mark.hiddenChar(part.text) : part.text))) : text;
}

/** Flattens children into virtual nodes and strings. Any other object is data, and only ever text. */
function flat(children, into = []) {
  for (const child of children) {
    if (child == null || typeof child === 'boolean') continue;
    if (Array.isArray(child)) flat(child, into);
    else if (typeof child === 'function') flat([child()], into);
    else if (child instanceof VirtualNode) into.push(child);
    else into.push(marked(typeof child === 'object' ? JSON.stringify(child) : String(child)));
  }
  return into;
}

const calls = [];
/** Makes the children of an element equal to the given ones. */
export function render(parent, ...children) {
  if (parent.contains(document.activeElement)) noteFocus();
  reconcile(parent, flat(children), false);
  for (let call; (call = calls.shift());) call[0](call[1]);
  if (inUse) giveFocus();
}

/** The element that had the focus at the last drawing, with its caret and the address at which it got it. */
let [inUse, focusedAt] = [null, ''];
addEventListener('focusin', () => { [inUse, focusedAt] = [null, location.pathname]; });
addEventListener('pointerdown', () => { inUse = null; }, true);
function noteFocus() {
  const node = document.activeElement;
  inUse = { node, id: node.id, from: node.selectionStart, to: node.selectionEnd };
}
/** Gives the focus back if the drawing has taken it: to the element, which has moved, or to the one with its id that stands in its place, now or
 *  once its part is loaded. A person may be typing. At another address, the same id is another thing. */
function giveFocus() {
  const { node, id, from, to } = inUse;
  if (document.activeElement !== document.body) inUse = null;
  else if (focusedAt === location.pathname) {
    const now = node.isConnected ? node : id && document.getElementById(id);
    if (!now) return;
    now.focus({ preventScroll: true });
    if (from != null) now.setSelectionRange(from, to);
    // The caret of a number is not known; one types at its end.
    else if (now !== node && now.type === 'number') [now.value, now.value] = ['', now.value];
  }
}

const same = (node, kid) => (typeof kid === 'string' ? node.nodeType === 3 : node.$v?.tag === kid.tag && node.$v.key === kid.key && (kid.key != null || node.$v.classes === kid.classes));

function reconcile(parent, kids, svg) {
  const old = [...parent.childNodes];
  const keyed = new Map(old.map((node) => [node.$v?.key, node]));
  let from = 0;
  const known = kids.map((kid) => {
    if (kid.key != null) {
      const node = keyed.get(kid.key);
      return node && same(node, kid) && keyed.delete(kid.key) ? node : null;
    }
    let index = from;
    while (index < old.length && !same(old[index], kid)) index++;
    if (index < old.length) from = index + 1;
    return old[index];
  });
  // Nodes that go are removed first, so that those that stay need not move, which would take their focus.
  const kept = new Set(known);
  for (const node of old) if (!kept.has(node)) node.remove();
  let place = parent.firstChild;
  kids.forEach((kid, i) => {
    const node = known[i] ?? create(kid, svg);
    if (known[i]) patch(node, kid, svg);
    if (node === place) place = place.nextSibling;
    else parent.insertBefore(node, place);
  });
}

function create(kid, svg) {
  if (typeof kid === 'string') return document.createTextNode(kid);
  const inside = svg || kid.tag === 'svg';
  const node = inside ? document.createElementNS(SVG, kid.tag) : document.createElement(kid.tag);
  node.$v = { props: {} };
  patch(node, kid, inside);
  if (kid.props.ref) calls.push([kid.props.ref, node]);
  return node;
}

function patch(node, kid, svg) {
  if (typeof kid === 'string') {
    if (node.data !== kid) node.data = kid;
    return;
  }
  const { props } = kid;
  const before = node.$v.props;
  if (props.memo && before.memo?.length === props.memo.length && props.memo.every((value, i) => value === before.memo[i])) return;
  node.$v = kid;
  // A select takes its value only after its options exist.
  if (!props.opaque) reconcile(node, props.final ? kid.children : flat(kid.children), svg || kid.tag === 'svg');
  for (const name of Object.keys({ ...before, ...props })) assign(node, name, props[name], before[name]);
  if (props.drawn) calls.push([props.drawn, node]);
}

function assign(node, name, value, before) {
  if (OWN.includes(name)) return;
  if (name.startsWith('on')) {
    // A handler that returns `false` would cancel what the browser does by itself.
    node[name] = value ? (event) => { value(event); redraw(); } : null;
  } else if (PROPERTIES.includes(name)) {
    const wanted = value ?? (name === 'value' ? '' : false);
    // What a person is typing stays until the value itself changes.
    const isTyped = name === 'value' && value === before && node === document.activeElement;
    // What a person has opened stays, too.
    if (node[name] !== wanted && !isTyped && !isSameNumber(node, wanted) && !(name === 'open' && value === before)) node[name] = wanted;
  } else if (name === 'style') {
    for (const key of Object.keys({ ...before, ...value })) node.style.setProperty(key, value?.[key] ?? '');
  } else if (value === before) {
    return;
  } else if (name === 'web') {
    // A link of a model leaves the page, which must not learn of the one that it came from.
    const isWeb = /^https?:$/.test(URL.canParse(value) && new URL(value).protocol);
    for (const [attribute, text] of Object.entries({ href: value, target: '_blank', rel: 'noopener noreferrer nofollow' })) {
      if (isWeb) node.setAttribute(attribute, text);
      else node.removeAttribute(attribute);
    }
  } else if (value == null || value === false || (['href', 'src'].includes(name) && !isOwn(value))) {
    node.removeAttribute(name);
  } else {
    node.setAttribute(name, value === true ? '' : shown(String(value)));
  }
}

/** Whether a number field has the wanted value in another form, such as `1.0` before `1.05` is typed. */
const isSameNumber = ({ type, value }, wanted) => type === 'number' && value !== '' && wanted !== '' && Number(value) === Number(wanted)
  && Math.abs(Number(value)) <= Number.MAX_SAFE_INTEGER;

/** An address of this server. Every other address, and every `javascript:` one, is never made a link. */
const isOwn = (address) => /^(\/(?![/\\\s])|#|\?)/.test(address);

/** Combines the calls of a function into one per frame. */
export function perFrame(draw) {
  let frame = 0;
  return () => {
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      draw();
    });
  };
}

const drawings = new Set();
const drawAll = perFrame(() => drawings.forEach((draw) => {
  try {
    draw();
  } catch (error) {
    reportError(error);
  }
}));
/** For how long, in milliseconds, a press can hold the drawing back: some ends of a press are never told, such as one of a scroll bar. */
const LONGEST_PRESS = 1000;
let [pressed, isDue] = [0, false];
function press() {
  clearTimeout(pressed);
  pressed = setTimeout(releasePress, LONGEST_PRESS);
}
function releasePress() {
  clearTimeout(pressed);
  pressed = 0;
  if (isDue) drawAll();
  isDue = false;
}
addEventListener('pointerdown', press, true);
addEventListener('pointerup', releasePress, true);
addEventListener('pointercancel', releasePress, true);
// Of the window only: a press itself takes the focus from another element.
addEventListener('blur', releasePress);
/** Draws the page and the open dialogs in the next frame. Each handler, answer and streamed event does so. What is pressed stays in its
 *  place until it is released: a browser gives a click to no button that has moved away from the pointer. */
export function redraw() {
  if (pressed) isDue = true;
  else drawAll();
}
/** Adds what `redraw` draws; returns how to remove it. */
export function onRedraw(draw) {
  drawings.add(draw);
  redraw();
  return () => drawings.delete(draw);
}
