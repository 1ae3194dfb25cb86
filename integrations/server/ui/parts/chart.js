// Small charts as SVG, each with a table of its values for screen readers. They take sums, never rows, and nothing in them moves.
import { tags } from '../lib/dom.js';

const { caption, div, g, line, path, rect, span, svg, table, tbody, td, th, thead, tr } = tags;

const [WIDTH, HEIGHT, TOP] = [240, 72, 6];
const round = (n) => Math.round(n * 100) / 100;

/** The table of a chart: a row for each column of it. */
const values = (label, columns, series, format) => table.unseen(caption(label),
  thead(tr(th({ scope: 'col' }, 'From'), series.map(({ name }) => th({ key: name, scope: 'col' }, name)))),
  tbody(columns.map((text, i) => tr({ key: i }, th({ scope: 'row' }, text), series.map(({ name, of }) => td({ key: name }, of[i] == null ? '–' : format(of[i])))))));

/** Columns of stacked bars. A bar that is not zero has at least one unit. */
function bars(columns, series, most) {
  const step = WIDTH / columns.length;
  return columns.map((_, i) => {
    let y = HEIGHT;
    return g({ key: i }, series.map(({ name, tone, of }) => {
      if (!of[i]) return null;
      const height = Math.max(1, (of[i] / most) * (HEIGHT - TOP));
      y -= height;
      return rect({ key: name, class: tone, x: round(i * step + step * 0.1), y: round(Math.max(y, 0)), width: round(step * 0.8), height: round(height) });
    }));
  });
}

/** A line through the values that are there; with `isStepped` each value holds to the next one, and the area below is filled. */
function curve({ name, tone, of }, y, isStepped) {
  const step = WIDTH / of.length;
  const places = of.map((value, i) => (value == null ? null : [round(i * step), round(y(value))]));
  let [d, dots, isDown] = ['', '', false];
  places.forEach((place, i) => {
    if (place) d += isStepped ? `${isDown ? 'V' : `M${place[0]} `}${place[1]}H${round((i + 1) * step)}` : `${isDown ? 'L' : 'M'}${round(place[0] + step / 2)} ${place[1]}`;
    // A value between two gaps is a dot.
    if (place && !isStepped && !places[i - 1] && !places[i + 1]) dots += `M${round(place[0] + step / 2)} ${place[1]}h.01`;
    isDown = Boolean(place);
  });
  return [isStepped && d && path({ key: `${name} area`, class: `area ${tone}`, d: `${d}V${HEIGHT}H0Z` }), path({ key: name, class: `curve ${tone}`, d, 'vector-effect': 'non-scaling-stroke' }),
    dots && path({ key: `${name} dots`, class: `curve dots ${tone}`, d: dots, 'vector-effect': 'non-scaling-stroke' })];
}

/** Draws a chart. `columns` are the beginnings of its parts as texts, `series` are `{ name, tone, of }` with a number, or `null`, for each
 *  column; `kind` is `bars`, `steps`, or `lines` on a logarithmic scale; `marks` are the texts of the axis. */
export function chart({ label, kind = 'bars', columns, series, format, marks, version }) {
  const sums = kind === 'bars' ? columns.map((_, i) => series.reduce((sum, { of }) => sum + (of[i] ?? 0), 0)) : series.flatMap(({ of }) => of.filter((value) => value != null));
  const most = Math.max(0, ...sums);
  const least = Math.max(1, Math.min(...sums.filter((value) => value > 0)));
  const linear = (value) => HEIGHT - (most ? (value / most) * (HEIGHT - TOP) : 0);
  // Two thirds of the height for the values between the least and the most, so that the least is no zero.
  const logarithmic = (value) => HEIGHT - (HEIGHT - TOP) * (most > least ? 1 / 3 + (2 / 3) * (Math.log(Math.max(value, least) / least) / Math.log(most / least)) : 2 / 3);
  return div.chart({ memo: [version, label] },
    svg({ viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' },
      [TOP, (HEIGHT + TOP) / 2, HEIGHT - 0.5].map((y) => line.gridLine({ key: y, x1: 0, x2: WIDTH, y1: y, y2: y, 'vector-effect': 'non-scaling-stroke' })),
      kind === 'bars' ? bars(columns, series, most) : series.map((one) => curve(one, kind === 'steps' ? linear : logarithmic, kind === 'steps'))),
    most > 0 && span.most({ 'aria-hidden': 'true' }, format(most), kind === 'lines' && ', log'),
    div.ticks({ 'aria-hidden': 'true' }, marks.map((text, i) => span({ key: i }, text))),
    values(label, columns, series, format));
}

/** The names of the series with their colours. */
export const legend = (series) => span.series({ 'aria-hidden': 'true' }, series.map(({ name, tone }) => span({ key: name }, svg({ viewBox: '0 0 8 8' }, rect({ class: tone, width: 8, height: 8, rx: 2 })), name)));

/** A line of bars beside a number, which says the same in `label`. */
export function spark(label, counts, version) {
  const [width, height, most] = [78, 20, Math.max(1, ...counts)];
  // At most 24 bars fit.
  const size = Math.ceil(counts.length / 24);
  const groups = Array.from({ length: Math.ceil(counts.length / size) }, (_, i) => counts.slice(i * size, (i + 1) * size).reduce((sum, n) => sum + n, 0));
  const [step, top] = [width / groups.length, Math.max(most, ...groups)];
  return svg.spark({ memo: [version], viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': label },
    line.gridLine({ x1: 0, x2: width, y1: height - 0.5, y2: height - 0.5, 'stroke-dasharray': '3 2' }),
    groups.map((n, i) => n > 0 && rect({ key: i, class: 'failed', x: round(i * step), y: round(height - Math.max(2, (n / top) * height)), width: round(step * 0.75), height: round(Math.max(2, (n / top) * height)) })));
}

/** A share of a whole as a bar; the number stands beside it. */
export const meter = (share) => svg.meter({ viewBox: '0 0 100 4', preserveAspectRatio: 'none', 'aria-hidden': 'true' }, rect.rest({ width: 100, height: 4, rx: 2 }), share > 0 && rect.s1({ width: round(Math.max(1, share * 100)), height: 4, rx: 2 }));
