// Zooming the timeline of a page.
//
// Problem:   a picture of 800 pixels puts together what is thinner than one; a step has thousands of kernels.
// Idea:      the figure carries every span in data-timeline. A canvas takes the place of its SVG, which stays for those
//            who have no script and for paper. d3-zoom turns wheel, drag, pinch and double click into a transform,
//            d3-scale and d3-axis make the ticks; what is drawn is found by bisection, and of what shares a pixel the
//            first.
// Invariant: times are whole nanoseconds, as the document has them. Keys do whatever a mouse does.
// Cost:      a frame is linear in the spans within view, and never more than a rectangle a pixel and lane.
import { bisector, bisectLeft } from 'd3-array';
import { axisBottom } from 'd3-axis';
import { scaleLinear } from 'd3-scale';
import { select } from 'd3-selection';
import { zoom, zoomIdentity } from 'd3-zoom';

const LEFT = 110;
const RIGHT = 10;
const LANE = 34;
const NARROW_LANE = 22; // of many
const MANY_LANES = 10;
const AXIS = 40;
const NARROWEST_LABEL = 40;
const CLOSEST_NS = 1000; // the whole width
const BRIGHTER = 1.35; // on a dark page, as style.css has it for what else has these colours
const UNITS = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];

const unitOf = (ns) => UNITS.find(([size]) => ns >= 2 * size) ?? UNITS[3];

function timeText(ns) {
  const [size, name] = unitOf(ns);
  return `${Number((ns / size).toPrecision(4))} ${name}`;
}

// A category's colour on this page, and that of text on it: white, or black where that is told apart better.
function lookOf(colour, isDark) {
  const levels = [1, 3, 5].map((at) => Math.min(255, Math.round(parseInt(colour.slice(at, at + 2), 16) * (isDark ? BRIGHTER : 1))));
  const [red, green, blue] = levels.map((level) => (level / 255 <= 0.04045 ? level / 255 / 12.92 : ((level / 255 + 0.055) / 1.055) ** 2.4));
  const luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue; // WCAG 2: contrast is (brighter + 0.05) / (darker + 0.05)
  return { fill: `rgb(${levels.join(' ')})`, ink: 1.05 / (luminance + 0.05) >= (luminance + 0.05) / 0.05 ? '#ffffff' : '#000000' };
}

// Spans of a lane in the order of their start; where they overlap, the ends are those of the latest so far.
function laneOf(lane) {
  let latest = 0;
  const reach = lane.starts.map((start, i) => (latest = Math.max(latest, start + lane.lengths[i])));
  return { ...lane, reach };
}

class Timeline {
  constructor(figure) {
    const document = JSON.parse(figure.dataset.timeline);
    this.whole = document.length_ns;
    this.names = document.names;
    this.categories = document.categories;
    this.lanes = document.lanes.map(laneOf);
    this.laneHeight = this.lanes.length > MANY_LANES ? NARROW_LANE : LANE;
    this.boxHeight = this.laneHeight - 8;
    this.chosen = { lane: 0, span: -1 };
    this.build(figure);
    this.observe();
  }

  build(figure) {
    const frame = select(figure).select('.wide');
    this.box = frame.insert('div', 'svg').attr('class', 'zoomed').attr('tabindex', 0).attr('role', 'application')
      .attr('aria-label', `${figure.querySelector('figcaption').textContent}. Plus and minus zoom, left and right move, `
        + 'up and down choose a lane, n and p the next and the previous span, 0 shows all.');
    this.canvas = this.box.append('canvas').attr('height', this.height).node();
    this.paper = this.canvas.getContext('2d');
    this.axis = this.box.append('svg').attr('class', 'time-axis').attr('height', AXIS).attr('aria-hidden', 'true');
    this.told = select(figure).append('p').attr('class', 'told').attr('role', 'status');
    this.buttons(select(figure));
    figure.classList.add('has-zoom');
  }

  buttons(figure) {
    const bar = figure.insert('p', '.wide').attr('class', 'zoom-buttons');
    const add = (text, label, act) => bar.append('button').attr('type', 'button').attr('aria-label', label)
      .text(text).on('click', act);
    add('+', 'zoom in', () => this.zoomBy(2));
    add('\u2212', 'zoom out', () => this.zoomBy(0.5));
    add('all', 'show the whole iteration', () => this.showAll());
    bar.append('span').attr('class', 'quiet').text(' click, then wheel to zoom; drag to move; by keyboard + \u2212 \u2190 \u2192 \u2191 \u2193 n p 0');
  }

  get height() {
    return this.lanes.length * this.laneHeight;
  }

  observe() {
    // A wheel that only passes by scrolls the page.
    const isMeant = (event) => event.type !== 'wheel' || event.ctrlKey || event.metaKey
      || this.box.node() === document.activeElement;
    this.zoom = zoom().filter((event) => isMeant(event) && !event.button)
      .on('start', (event) => event.sourceEvent?.type === 'mousedown' && this.box.node().focus({ preventScroll: true }))
      .on('zoom', (event) => this.moveTo(event.transform));
    this.transform = zoomIdentity;
    this.resize();
    select(this.canvas).call(this.zoom).on('mousemove', (event) => this.point(event)).on('mouseleave', () => this.tell(null));
    this.box.on('keydown', (event) => this.press(event));
    new ResizeObserver(() => this.resize()).observe(this.box.node());
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.ask());
  }

  resize() {
    const width = this.box.node().clientWidth;
    if (width === this.width || width <= LEFT + RIGHT)
      return;
    this.width = width;
    const ratio = devicePixelRatio || 1;
    this.canvas.width = width * ratio;
    this.canvas.height = this.height * ratio;
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${this.height}px`;
    this.paper.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.axis.attr('width', width);
    const area = [[LEFT, 0], [width - RIGHT, this.height]];
    this.zoom.extent(area).translateExtent(area).scaleExtent([1, Math.max(1, this.whole / CLOSEST_NS)]);
    this.scale = scaleLinear([0, this.whole], [LEFT, width - RIGHT]);
    this.ask();
  }

  moveTo(transform) {
    this.transform = transform;
    this.ask();
  }

  // A frame at most, however many events come before it.
  ask() {
    this.asked ??= requestAnimationFrame(() => {
      this.asked = undefined;
      this.draw();
    });
  }

  get view() {
    return this.transform.rescaleX(this.scale);
  }

  // ---- drawing ----

  draw() {
    const view = this.view;
    const style = getComputedStyle(this.canvas);
    const paper = this.paper;
    paper.clearRect(0, 0, this.width, this.height);
    paper.font = '12px system-ui, sans-serif';
    paper.textBaseline = 'middle';
    const isDark = matchMedia('(prefers-color-scheme: dark)').matches;
    this.looks = this.categories.map(({ colour }) => lookOf(colour, isDark));
    this.lanes.forEach((lane, row) => this.drawLane(lane, row, view));
    paper.clearRect(0, 0, LEFT, this.height);
    paper.textAlign = 'end';
    paper.fillStyle = style.color;
    this.lanes.forEach((lane, row) => paper.fillText(lane.name, LEFT - 8, (row + 0.5) * this.laneHeight, LEFT - 10));
    this.drawAxis(view);
    this.mark(view, style.color);
  }

  drawLane(lane, row, view) {
    const [from, to] = view.domain();
    const top = this.topOf(row);
    const paper = this.paper;
    paper.textAlign = 'start';
    let taken = -1; // pixels
    for (let i = bisectLeft(lane.reach, from); i < lane.starts.length && lane.starts[i] <= to; ++i) {
      const left = Math.max(view(lane.starts[i]), LEFT);
      const right = Math.min(view(lane.starts[i] + lane.lengths[i]), this.width - RIGHT);
      if (right <= taken)
        continue;
      const wide = Math.max(right - left, 0.6);
      const look = this.looks[lane.categories[i]];
      paper.fillStyle = look.fill;
      const high = this.heightOf(lane, i);
      paper.fillRect(left, top + this.boxHeight - high, wide > 4 ? wide - 0.5 : wide, high);
      taken = wide < 1 ? left + 0.5 : right - 0.001;
      if (wide > NARROWEST_LABEL && !lane.levels)
        this.label(this.names[lane.names[i]], look.ink, { left, wide, middle: top + this.boxHeight / 2 });
    }
  }

  topOf(row) {
    return row * this.laneHeight + (this.laneHeight - this.boxHeight) / 2;
  }

  // A link's spans are as high as it is busy, in parts per thousand.
  heightOf(lane, span) {
    return lane.levels ? Math.max(1.5, this.boxHeight * lane.levels[span] / 1000) : this.boxHeight;
  }

  label(text, ink, { left, wide, middle }) {
    const most = Math.floor((wide - 8) / 6.8);
    const shown = text.length <= most ? text : `${text.slice(0, Math.max(0, most - 1))}\u2026`;
    this.paper.fillStyle = ink;
    this.paper.fillText(shown, left + 4, middle, wide - 8);
  }

  drawAxis(view) {
    const [from, to] = view.domain();
    const [size, name] = unitOf(to - from);
    const ticks = view.copy().domain([from / size, to / size]);
    this.axis.call(axisBottom(ticks).ticks(Math.max(2, Math.round(this.width / 110))));
    this.axis.selectAll('text.unit').data([`time [${name}]`]).join('text').attr('class', 'unit quiet-text')
      .attr('x', this.width - RIGHT).attr('y', AXIS - 6).attr('text-anchor', 'end').text((text) => text);
  }

  mark(view, colour) {
    const lane = this.lanes[this.chosen.lane];
    const at = lane?.starts[this.chosen.span];
    if (at === undefined)
      return;
    const left = view(at);
    const wide = Math.max(2, view(at + lane.lengths[this.chosen.span]) - left);
    this.paper.strokeStyle = colour;
    this.paper.lineWidth = 2;
    this.paper.strokeRect(left, this.topOf(this.chosen.lane), wide, this.boxHeight);
  }

  // ---- telling ----

  tell(chosen) {
    const lane = this.lanes[chosen?.lane];
    if (!lane || !(chosen.span in lane.starts)) {
      this.told.text('');
      return;
    }
    const start = lane.starts[chosen.span];
    const length = lane.lengths[chosen.span];
    const kind = this.categories[lane.categories[chosen.span]].name;
    const busy = lane.levels ? `, ${lane.levels[chosen.span] / 10} % busy` : '';
    this.told.text(`${lane.name}: ${this.names[lane.names[chosen.span]]} (${kind}), ${timeText(length)} from ${timeText(start)}${busy}`);
  }

  // Whose start is the last before the pointer, if it still runs there or is thinner than can be hit.
  point(event) {
    const bounds = this.canvas.getBoundingClientRect();
    const row = Math.floor((event.clientY - bounds.top) / this.laneHeight);
    const lane = this.lanes[row];
    const time = this.view.invert(event.clientX - bounds.left);
    const slack = this.view.invert(2) - this.view.invert(0);
    const span = lane ? bisector((start) => start).right(lane.starts, time + slack) - 1 : -1;
    const isHit = span >= 0 && lane.starts[span] + lane.lengths[span] >= time - slack;
    this.tell(isHit ? { lane: row, span } : null);
  }

  // ---- keys ----

  press(event) {
    const act = {
      '+': () => this.zoomBy(2), '=': () => this.zoomBy(2), '-': () => this.zoomBy(0.5), 0: () => this.showAll(),
      Home: () => this.showAll(), ArrowLeft: () => this.panBy(1), ArrowRight: () => this.panBy(-1),
      ArrowUp: () => this.chooseLane(-1), ArrowDown: () => this.chooseLane(1), n: () => this.step(1), p: () => this.step(-1),
    }[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey)
      return;
    event.preventDefault();
    act();
  }

  zoomBy(factor) {
    this.zoom.scaleBy(select(this.canvas), factor);
  }

  panBy(direction) {
    this.zoom.translateBy(select(this.canvas), direction * (this.width - LEFT - RIGHT) / 5 / this.transform.k, 0);
  }

  showAll() {
    this.zoom.transform(select(this.canvas), zoomIdentity);
  }

  chooseLane(step) {
    const lane = Math.min(this.lanes.length - 1, Math.max(0, this.chosen.lane + step));
    const from = Math.max(0, this.view.invert(LEFT));
    this.choose({ lane, span: Math.min(this.lanes[lane].starts.length - 1, bisectLeft(this.lanes[lane].starts, from)) });
  }

  step(direction) {
    const { lane, span } = this.chosen;
    const last = this.lanes[lane].starts.length - 1;
    this.choose({ lane, span: Math.min(last, Math.max(0, span + direction)) });
  }

  // Brought into view, at the scale that is shown.
  choose(chosen) {
    this.chosen = chosen;
    this.tell(chosen);
    const lane = this.lanes[chosen.lane];
    const middle = this.scale(lane.starts[chosen.span] + lane.lengths[chosen.span] / 2);
    const at = this.transform.applyX(middle);
    if (at < LEFT || at > this.width - RIGHT)
      this.zoom.translateTo(select(this.canvas), middle, 0);
    this.ask();
  }
}

for (const figure of document.querySelectorAll('figure[data-timeline]'))
  new Timeline(figure);
