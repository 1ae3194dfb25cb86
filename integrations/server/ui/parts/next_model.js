// Which model answers next in a run that is about to start, and that none does, before it is started.
import { tags } from '../lib/dom.js';
import { quoted } from '../lib/cause.js';
import { icon } from '../lib/icons.js';

const { b, div, p, span } = tags;

/** Warns that no worker of the server has a model for what is about to start; `other` is a way on that has one. */
export const noModel = ({ missing } = {}, other, what = 'The new run') => missing && div.note.lost({ key: 'no-model', role: 'status' }, icon('warn'), div(b('No worker of this server has a model for it: '), span({ dir: 'auto' }, quoted(missing)), '. ',
  `${what} waits until a worker has one. Start the server with the key of its provider; the run then continues by itself.`, other && p(other)));

/** Says that another model answers from here on than the one before. */
export const otherModel = ({ answers = [] } = {}, before) => before && answers.length > 0 && !answers.includes(before) && p.soft({ key: 'other-model', dir: 'auto' }, `So far ${before} has answered. This server asks ${answers.join(' or ')}.`);

/** The model's own name, without its provider. */
export const nameOf = (model) => model?.split('/').slice(1).join('/') || model;
