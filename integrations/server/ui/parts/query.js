// The search of runs as people type it: `brain:support status:failed "two words"`, and as the filter that the API knows.

/** The keys of the language; each other word, text in quotes and field such as `amount:249` has to be in an event of a run. */
export const KEYS = {
  status: 'running, waiting, paused, completed, failed, cancelled, stuck, queued, sleeping, parked or cut off', brain: 'a title', user: 'who it runs for', tag: 'a tag', conversation: 'an id',
  tool: 'the name of a tool that was called', model: 'the name of a model that has answered', cost: 'an amount such as >0.1, <=5 or 0.1..5', needs: 'decision', since: 'today, 24h or a time', before: 'a time',
};

/** The words of a search: each as it stands, its field if it has one, what is in its quotes, and its value. */
export const wordsOf = (q) => [...String(q ?? '').matchAll(/(?:([a-z]\w*):(?!\/\/))?(?:"([^"]*)"|(\S+))/g)].map(([word, field, quoted, plain]) => ({ word, field, quoted, value: quoted ?? plain }));

/** Splits a text at its conditions, which are each second part: a field with a value. */
export const conditions = (text) => text.split(/((?:[a-z]\w*):(?!\/\/)(?:"[^"]*"|[^\s"]\S*))/);

/** Reads what a person has typed. Titles are found whatever their case. */
export function parse(text, titles = []) {
  const filter = {};
  const words = [];
  for (const { word, field, quoted, value } of wordsOf(text)) {
    if (!Object.hasOwn(KEYS, field ?? '')) words.push(quoted !== undefined && field === undefined && !/[:\s]/.test(quoted) ? quoted : word);
    else filter[field] = field === 'brain' ? titles.find((title) => title.toLowerCase() === value.toLowerCase()) ?? value : value;
  }
  return words.length ? { ...filter, q: words.join(' ') } : filter;
}

/** Writes a condition. */
const condition = ([key, value]) => `${key}:${/\s/.test(value) ? `"${value}"` : value}`;

/** The filter as the API knows it: what has no parameter is a word of the search. */
export function asked({ tool, model, cost, q, ...filter }) {
  const words = [...Object.entries({ tool, model, cost }).filter(([, value]) => value).map(condition), q].filter(Boolean).join(' ');
  return words ? { ...filter, q: words } : filter;
}

/** The words, texts and values that a filter looks for in the events. */
export const texts = ({ q, tool }) => [tool, ...wordsOf(q).map(({ value }) => value)].filter(Boolean);

/** Writes a filter as a person would type it. */
export const write = ({ q, ...filter }) => [...Object.entries(filter).map(condition), q].filter(Boolean).join(' ');

const HOURS = { '1h': 1, '24h': 24, '7d': 168 };
/** Makes times of the words of a filter: `today`, and the last hours or days. */
export function dated({ since, ...filter }) {
  if (since === 'today') return { ...filter, since: new Date(new Date().setHours(0, 0, 0, 0)).toISOString() };
  if (!HOURS[since]) return { ...filter, since };
  // Whole minutes, so that the pages of a list have one filter.
  return { ...filter, since: new Date(Math.floor(Date.now() / 60_000) * 60_000 - HOURS[since] * 3_600_000).toISOString() };
}
