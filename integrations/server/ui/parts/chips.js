// The chips behind the text of a search: one for each condition that has a value.
import { tags } from '../lib/dom.js';
import { conditions } from './query.js';

const { i, span } = tags;

/** Draws the text without being seen, so that each chip stands below its condition. */
export default (text) => span.chips({ 'aria-hidden': 'true' }, conditions(text).map((part, n) => (n % 2 ? i(part) : part && span(part))));
