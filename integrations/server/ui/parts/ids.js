// Finds a run by the end of its id, as the page shows it, since the API knows whole ids and beginnings of eight characters.
import { get } from '../lib/api.js';
import { longId } from '../lib/format.js';

/** How many runs of the list are read at most, and how many at once. */
const [MOST, PAGE] = [5000, 500];
const isEnd = (text) => /^[\da-f]{4,12}$/i.test(text);

/** Lists the ids that a text may mean: `last` or `@` is the run that started last. */
export async function idsOf(text) {
  if (['last', '@'].includes(text)) return (await get('/runs', { limit: 1 })).items.map(({ id }) => id);
  if (!isEnd(text)) return [];
  const end = text.toLowerCase();
  if (longId(end)) return [longId(end)];
  const found = [];
  let next = null;
  for (let read = 0; read < MOST; read += PAGE) {
    const page = await get('/runs', { limit: PAGE, cursor: next });
    found.push(...page.items.map(({ id }) => id).filter((id) => id.endsWith(end)));
    next = page.next;
    if (!next) break;
  }
  return found;
}
