// Reading the points of a chart.
//
// Problem:   a dot of an SVG says what it is only to a mouse that hits it, and to nobody who reads by keyboard or ear.
// Idea:      the figure carries its points in data-chart: where they are drawn and what each says. The one nearest to the
//            pointer, or chosen by arrow keys, is marked, and told in a line below that screen readers hear.
// Invariant: the drawing stays the document's; without a script it is as readable as its table. Keys do whatever a
//            mouse does, and a point that is chosen is in view.
// Cost:      linear in the points each time that the pointer moves.
import { bisectCenter, leastIndex } from 'd3-array';
import { pointer, select } from 'd3-selection';

const HOW = 'Point at the chart, or focus it and press \u2190 \u2192 \u2191 \u2193.';

class Chart {
  constructor(figure) {
    const { top, bottom, series } = JSON.parse(figure.dataset.chart);
    this.series = series;
    this.all = series.flatMap(({ points }, line) => points.map(([x, y], place) => ({ x, y, line, place })));
    if (this.all.length === 0)
      return;
    this.frame = select(figure).select('.wide');
    this.build(figure, top, bottom);
    this.observe();
  }

  build(figure, top, bottom) {
    this.svg = this.frame.select('svg');
    this.svg.attr('tabindex', 0).attr('role', 'application').attr('aria-label', `${figure.querySelector('figcaption').textContent}. `
      + 'Left and right move between points, up and down between lines, Home and End to the first and last, Escape lets go.');
    this.cursor = this.svg.append('g').attr('class', 'cursor').attr('aria-hidden', 'true').style('display', 'none');
    this.cursor.append('line').attr('y1', top).attr('y2', bottom);
    this.cursor.append('circle').attr('r', 7);
    this.told = select(figure).append('p').attr('class', 'told quiet').attr('role', 'status').text(HOW);
  }

  observe() {
    this.svg.on('pointermove pointerdown', (event) => this.point(event))
      .on('pointerleave', () => this.svg.node() !== document.activeElement && this.choose(null))
      .on('keydown', (event) => this.press(event))
      .on('focus', () => !this.chosen && this.choose(this.first()))
      .on('blur', () => this.choose(null));
  }

  first() {
    return { line: this.series.findIndex(({ points }) => points.length > 0), place: 0 };
  }

  choose(chosen) {
    this.chosen = chosen;
    this.cursor.style('display', chosen ? null : 'none');
    this.told.classed('quiet', !chosen);
    if (!chosen) {
      this.told.text(HOW);
      return;
    }
    const { name, points } = this.series[chosen.line];
    const [x, y, words] = points[chosen.place];
    this.cursor.select('line').attr('x1', x).attr('x2', x);
    this.cursor.select('circle').attr('cx', x).attr('cy', y);
    const isNamed = this.series.length < 2 || !name || words.includes(name);
    this.told.text(isNamed ? words : `${name}: ${words}`);
  }

  point(event) {
    const [x, y] = pointer(event, this.svg.node());
    this.choose(this.all[leastIndex(this.all, (at) => (at.x - x) ** 2 + (at.y - y) ** 2)]);
  }

  // ---- keys ----

  press(event) {
    const act = {
      ArrowLeft: () => this.step(-1), ArrowRight: () => this.step(1), ArrowUp: () => this.change(-1),
      ArrowDown: () => this.change(1), Home: () => this.step(-Infinity), End: () => this.step(Infinity),
      Escape: () => this.choose(null),
    }[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey)
      return;
    event.preventDefault();
    act();
    this.show();
  }

  step(by) {
    if (!this.chosen && Number.isFinite(by))
      return this.choose(this.first());
    const { line, place } = this.chosen ?? this.first();
    const last = this.series[line].points.length - 1;
    return this.choose({ line, place: Math.min(last, Math.max(0, place + by)) });
  }

  // To the point of the next line that has any which lies nearest.
  change(by) {
    if (!this.chosen)
      return this.choose(this.first());
    const { line, place } = this.chosen;
    const [x] = this.series[line].points[place];
    let next = line + by;
    while (this.series[next]?.points.length === 0)
      next += by;
    if (!this.series[next])
      return undefined;
    return this.choose({ line: next, place: bisectCenter(this.series[next].points.map(([at]) => at), x) });
  }

  // On a narrow screen the chart is wider than its frame.
  show() {
    if (!this.chosen)
      return;
    const frame = this.frame.node();
    const at = this.cursor.select('circle').node().getBoundingClientRect();
    const box = frame.getBoundingClientRect();
    if (at.left < box.left || at.right > box.right)
      frame.scrollLeft += (at.left + at.right) / 2 - (box.left + box.right) / 2;
  }
}

for (const figure of document.querySelectorAll('figure[data-chart]'))
  new Chart(figure);
