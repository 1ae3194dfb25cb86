// What happens again in a fork: what reaches the world or a person in full, the rest as a sum that unfolds.
import { tags } from '../lib/dom.js';
import { placeWords } from '../lib/cause.js';
import { line, number, plural } from '../lib/format.js';

const { b, details, h2, li, p, section, span, summary, ul } = tags;

const SHOWN = 40;
const effect = ({ name, kind, path, may_repeat: isSafe, asks_again: asks }, i) => li({ key: i }, b.mono(name ?? kind), ' ', span.soft(placeWords(path)), ' ', isSafe === false && span.tag.warn('repeats a side effect'), asks && span.tag('asks a person again'));

/** Whether a repetition of an effect reaches the world or a person. */
const isFar = ({ may_repeat: isSafe, asks_again: asks }) => isSafe === false || asks;
const farWords = (far) => `${far} ${far === 1 ? 'reaches' : 'reach'} the world or a person`;
/** What happens again, in one line. */
export function effectsInShort({ rerun }) {
  const far = rerun.filter(isFar).length;
  return [rerun.length ? `Repeats ${plural(rerun.length, 'effect')}` : 'Repeats no effect', far > 0 && [', ', b.wait(farWords(far))]];
}
export function effects({ rerun, reused }) {
  const [far, near] = [rerun.filter(isFar), rerun.filter((one) => !isFar(one))];
  const names = [...new Set(near.map(({ name, kind }) => name ?? kind))];
  return section.effects({ key: 'effects' },
    h2(rerun.length ? `${plural(rerun.length, 'effect')} will run again` : 'No effect will run again', far.length > 0 && [' ', span.tag.warn(farWords(far.length))]),
    far.length > 0 && ul.results({ tabindex: '0', 'aria-label': 'Effects that reach the world or a person' }, far.slice(0, SHOWN).map(effect)),
    far.length > SHOWN && p.soft(`Showing ${SHOWN} of ${far.length}.`),
    near.length > 0 && details(summary(`${far.length ? `${number(near.length)} more` : number(near.length)}, read-only or repeatable: ${line(names.join(', '), 90)}`),
      ul.results({ tabindex: '0', 'aria-label': 'Other effects' }, near.slice(0, SHOWN).map(effect)), near.length > SHOWN && p.soft(`Showing ${SHOWN} of ${near.length}.`)),
    p.soft(`${plural(reused, 'recorded effect')} ${reused === 1 ? 'is' : 'are'} reused.`));
}
