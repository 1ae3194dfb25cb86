// The attempts to get an answer.
import { tags } from '../lib/dom.js';
import { clock, micros } from '../lib/format.js';

const { li, ol, span, time } = tags;

/** When each attempt began, how it ended, and how long the next one waited. The cause stands once above them. */
export default (list) => ol.attempts(list.map(({ id, seq, started, ended, kind: { outcome } }, i) => {
  const kind = outcome?.error?.kind?.replaceAll('_', ' ');
  const next = list[i + 1];
  const end = ended ?? outcome?.due;
  return li({ key: id }, span(i + 1), time(started != null ? clock(started).slice(0, 8) : `event ${seq}`), span(outcome?.type === 'answered' ? 'answered' : outcome?.error?.status ? `HTTP ${outcome.error.status}` : kind ?? (outcome?.type === 'refused' ? 'not valid' : 'no answer')),
    span.quiet(next ? next.started != null && end != null && next.started > end ? `waited ${micros(next.started - end)}` : '' : outcome?.type === 'answered' ? '' : 'gave up'));
}));
