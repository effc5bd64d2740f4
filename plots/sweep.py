"""A sweep's CSV: the result against the first varied path, a panel for each value of the second, a line for the others.

Numbers are curves with their band, names are bars. Over bucket_cap_mb what was measured may be drawn beside.
"""

import csv
import io

import style
from style import plt
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

FIRST_RESULT = "iteration_time_s"  # the columns before it are what was varied
BAND = {"iteration_time_s": ("iteration_time_low_s", "iteration_time_high_s")}
MOST_PANELS = 12
MOST_COLUMNS = 4
MOST_BANDS = 5  # more of them lie on top of each other and say nothing
CAP = "training.bucket_cap_mb"


def number(text):
    try:
        return float(text)
    except ValueError:
        return None


def unit_of(key, values):
    """What a value is divided by, and how the axis says so."""
    largest = max(abs(value) for value in values)
    if key.endswith("per_s"):
        return 1, "1/s"
    if key.endswith("_s") or key.startswith(("breakdown_s.", "iteration_times_s.")):
        return style.time_unit(largest / 5)
    if key.startswith("memory_bytes.") or key.endswith("bytes_per_gpu"):
        return 2**30, "GiB"
    return 1, ""


def spoken(key):
    """breakdown_s.exposed_communication: exposed communication."""
    name = key.split(".")[-1]
    name = name.replace("_per_s", " per second") if name.endswith("_per_s") else name.removesuffix("_s")
    return name.replace("_", " ")


def shown(value, unit):
    digits = f"{value:,.0f}" if abs(value) >= 10000 else f"{value:#.4g}".rstrip(".")
    return f"{digits} {unit}".strip()


def is_geometric(values):
    ordered = sorted(set(values))
    if len(ordered) < 3 or ordered[0] <= 0:
        return False
    ratios = [after / before for before, after in zip(ordered, ordered[1:])]
    return min(ratios) > 1.2 and ordered[-1] / ordered[0] >= 8


class Sweep:
    """Its rows, and where each stands: at a number or a name of the first axis, in a panel, on a line."""

    def __init__(self, text, key, best=None):
        rows = [style.printable(row) for row in csv.DictReader(io.StringIO(text))]
        names = list(rows[0]) if rows else []
        self.varied = names[: names.index(FIRST_RESULT)] if FIRST_RESULT in names else []
        self.key = key
        self.rows = [row for row in rows if number(row.get(key) or "") is not None]
        self.best = None if best is None else rows[best]  # which the sweep's own answer names
        self.failed = sum(1 for row in rows if row.get("error"))
        self.reasons = [row[key + "_reason"] for row in rows if row.get(key + "_reason")]
        # Axes that advance together are one: no value of the first has two of the others.
        self.is_zipped = len(self.varied) > 1 and len(rows) == len({row[self.varied[0]] for row in rows}) == len(
            {self.choice(row) for row in rows})
        labels = list(dict.fromkeys(self.label(row) for row in rows))
        self.is_numeric = all(number(label) is not None for label in labels)
        self.places = {label: number(label) if self.is_numeric else place for place, label in enumerate(labels)}

    def choice(self, row, first=0):
        return ", ".join(row[path] for path in self.varied[first:])

    def label(self, row):
        if not self.varied:
            return ""
        return self.choice(row) if self.is_zipped else row[self.varied[0]]

    def panels(self):
        """Of each value of the second path the lines, by what the others say."""
        seconds = {row[self.varied[1]] for row in self.rows} if len(self.varied) > 1 and not self.is_zipped else {""}
        has_panels = 1 < len(seconds) <= MOST_PANELS
        panels = {}
        for row in self.rows:
            panel = row[self.varied[1]] if has_panels else ""
            line = "" if self.is_zipped else self.choice(row, 2 if has_panels else 1)
            panels.setdefault(panel, {}).setdefault(line, []).append(row)
        return panels

    def points(self, rows, key, scale):
        placed = sorted((self.places[self.label(row)], number(row[key]) / scale) for row in rows)
        return [x for x, _ in placed], [y for _, y in placed]

    def has_band(self):
        keys = BAND.get(self.key, ())
        return bool(keys) and all(number(row.get(key) or "") is not None for row in self.rows for key in keys)

    def fits(self, row):
        return row.get("memory_bytes.fits", "true") != "false"


# ---- what was measured ----

MEASURED = tuple(f"measured.{key}" for key in ("iteration_time_s", "iteration_time_p10_s", "iteration_time_p90_s"))


class MeasuredCells:
    """What the table itself says was measured of its rows."""

    def __init__(self, sweep, name):
        self.sweep, self.name = sweep, name
        self.rows = [row for row in sweep.rows if number(row.get(MEASURED[0]) or "") is not None]

    def points_of(self, rows):
        points = []
        for row in rows:
            middle, *ends = (number(row[key] or "") for key in MEASURED)
            points.append((self.sweep.places[self.sweep.label(row)], middle, *(middle if end is None else end for end in ends)))
        return points

    def draw(self, axes, members, scale):
        own = [row for rows in members.values() for row in rows if row in self.rows]
        if own:
            draw_points(axes, self.points_of(own), scale)

    def extremes(self):
        return [value for point in self.points_of(self.rows) for value in point[1:]]

    def legend(self):
        has_ends = any(number(row[MEASURED[1]] or "") is not None for row in self.rows)
        by = f": {style.shortened(self.name)}" if self.name else ""
        return f"measured{by}" + (" (median, 10th to 90th percentile)" if has_ends else "")


def draw_points(axes, points, scale):
    places, middle, low, high = zip(*sorted(points))
    bars = [[max(0, (at - end) * sign) / scale for at, end in zip(middle, ends)]
            for ends, sign in ((low, 1), (high, -1))]
    axes.errorbar(places, [value / scale for value in middle], yerr=bars, linestyle="none", marker="o", zorder=5,
                  color=style.INK, markersize=6, elinewidth=1.3, capsize=3)


class Measured:
    """Iteration times over bucket caps, of one harness run or of a validation of one."""

    def __init__(self, path):
        document = style.read_json(path)
        if document.get("schema") == "lockstep.run/1":
            self.name = document["name"]
            self.points = [(entry["bucket_cap_mb"], *(entry["iteration_s"][key] for key in ("median", "p10", "p90")))
                           for entry in document["iterations"] if is_plain(entry)]
        elif document.get("schema") == "lockstep.validation/1":
            cases = [case for case in document["cases"] if "setting" in case and not case["setting"]["variant"]]
            runs = {case["setting"]["run"] for case in cases}
            if len(runs) > 1:
                raise style.WrongInput(f"--measured {path}: has {len(runs)} runs, expected one")
            self.name = next(iter(runs), "")
            self.points = [(case["setting"]["bucket_cap_mb"], case["measured"], case["setting"]["measured_p10"],
                            case["setting"]["measured_p90"]) for case in cases]
        else:
            raise style.WrongInput(f"--measured {path}: expected lockstep.run/1 or lockstep.validation/1")
        if not self.points:
            raise style.WrongInput(f"--measured {path}: has no iteration time of plain DDP over bucket_cap_mb")

    def draw(self, axes, members, scale):
        draw_points(axes, self.points, scale)

    def legend(self):
        return f"measured: {style.shortened(self.name)} (median, 10th to 90th percentile)"

    def extremes(self):
        return [value for point in self.points for value in point[1:]]


def is_plain(entry):
    return entry["overlap"] and entry["gradient_accumulation"] == 1 and entry["compression"] == "none"


# ---- a panel ----

def choose_x_axis(axes, sweep):
    places = list(sweep.places.values())
    if not sweep.is_numeric:
        axes.set_xticks(places, [style.shortened(label, 24) for label in sweep.places], rotation=0 if len(places) < 5 else 30,
                        ha="center" if len(places) < 5 else "right")
        axes.grid(visible=False, axis="x")
    elif is_geometric(places):
        ticks = sorted(set(places))
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(FixedLocator(ticks[:: -(-len(ticks) // 9)]))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    elif len(set(places)) <= 12:
        axes.set_xticks(sorted(set(places)))


def look_of(index, count):
    if count <= len(style.COLOURS):
        return {"color": style.COLOURS[index], "marker": style.MARKERS[index]}
    return {"color": plt.get_cmap("viridis")(0.92 * index / (count - 1)), "marker": "o"}


def draw_curve(axes, sweep, rows, look, scale, has_band):
    x, y = sweep.points(rows, sweep.key, scale)
    axes.plot(x, y, markeredgecolor="white", markeredgewidth=0.8, zorder=3, **look)
    if has_band:
        _, low = sweep.points(rows, BAND[sweep.key][0], scale)
        _, high = sweep.points(rows, BAND[sweep.key][1], scale)
        axes.fill_between(x, low, high, color=look["color"], alpha=0.16, linewidth=0, zorder=1)


def draw_bars(axes, sweep, rows, look, scale, slot):
    """A group of bars at each name: `slot` is which of how many."""
    index, count = slot
    x, y = sweep.points(rows, sweep.key, scale)
    width = 0.72 / count
    x = [place + (index - (count - 1) / 2) * width for place in x]
    axes.bar(x, y, width=width * 0.94, color=look["color"], zorder=2)
    if sweep.has_band():
        _, low = sweep.points(rows, BAND[sweep.key][0], scale)
        _, high = sweep.points(rows, BAND[sweep.key][1], scale)
        axes.vlines(x, low, high, color=style.INK, linewidth=1.3, zorder=4)


def mark_out_of_memory(axes, sweep, rows, scale):
    rows = [row for row in rows if not sweep.fits(row)]
    if rows:
        x, y = sweep.points(rows, sweep.key, scale)
        axes.plot(x, y, marker="x", markersize=11, markeredgewidth=2, color=style.INK, linestyle="none", zorder=5)


def mark_best(axes, sweep, rows, scale):
    if sweep.best in rows and sweep.is_numeric:
        axes.plot([sweep.places[sweep.label(sweep.best)]], [number(sweep.best[sweep.key]) / scale], marker="o",
                  markersize=15, markerfacecolor="none", markeredgecolor=style.INK, markeredgewidth=1.6,
                  linestyle="none", zorder=4)


def draw_panel(axes, sweep, lines, looks, scale):
    has_band = sweep.has_band() and len(looks) <= MOST_BANDS
    for index, (line, look) in enumerate(looks.items()):
        rows = lines.get(line, [])
        if rows and sweep.is_numeric:
            draw_curve(axes, sweep, rows, look, scale, has_band)
        elif rows:
            draw_bars(axes, sweep, rows, look, scale, (index, len(looks)))
    every = [row for rows in lines.values() for row in rows]
    mark_best(axes, sweep, every, scale)
    mark_out_of_memory(axes, sweep, every, scale)
    choose_x_axis(axes, sweep)


# ---- the figure ----

def missing_cells(sweep):
    """What the curves leave out, and why."""
    def cells(count):
        return f"{count} {'cell' if count == 1 else 'cells'}"
    parts = [f"{cells(sweep.failed)} could not be simulated"] if sweep.failed else []
    if sweep.reasons:
        parts.append(f"{cells(len(sweep.reasons))} without a value: {sweep.reasons[0].split(':')[0]}")
    return parts


def best_text(sweep, scale, unit):
    if sweep.best is None or number(sweep.best.get(sweep.key) or "") is None:
        return []
    choice = ", ".join(f"{path.split('.')[-1]} {sweep.best[path]}" for path in sweep.varied)
    return [f"best: {shown(number(sweep.best[sweep.key]) / scale, unit)} at {choice}"]


def legend_of(sweep, looks, measured):
    entries = []
    for line, look in looks.items():
        name = style.legend_name(style.shortened(line or "predicted", 60))
        entries.append(Line2D([], [], label=name, markeredgecolor="white", **look) if sweep.is_numeric
                       else Patch(color=look["color"], label=name))
    if sweep.has_band() and (len(looks) <= MOST_BANDS or not sweep.is_numeric):
        entries.append(Patch(color=style.GREY, alpha=0.35, label=style.BAND_NAME) if sweep.is_numeric
                       else Line2D([], [], color=style.INK, linewidth=1.3, label=style.BAND_NAME))
    if measured:
        entries.append(Line2D([], [], color=style.INK, marker="o", linestyle="none",
                              label=measured.legend()))
    if not all(sweep.fits(row) for row in sweep.rows):
        entries.append(Line2D([], [], marker="x", markersize=9, markeredgewidth=2, color=style.INK, linestyle="none",
                              label="does not fit in memory"))
    return entries


def drawn_values(sweep, measured, scale):
    keys = (sweep.key, *(BAND[sweep.key] if sweep.has_band() else ()))
    values = [number(row[key]) / scale for row in sweep.rows for key in keys]
    return values + [value / scale for value in (measured.extremes() if measured else [])]


def finish_axes(axes, sweep, values, unit):
    if sweep.is_numeric:
        axes.set_ylim(min(values) - 0.08 * (max(values) - min(values)), max(values) + 0.1 * (max(values) - min(values))
                      or 1.1 * max(values))
    axes.set_ylabel(f"{spoken(sweep.key)} ({unit})" if unit else spoken(sweep.key))
    if not sweep.is_numeric and min(values) >= 0:
        axes.set_ylim(0, max(values) * 1.1)
    else:
        style.begin_at_zero(axes, values)
    if max(values) >= 10000:
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def axis_name(sweep):
    names = [path.split(".")[-1] for path in (sweep.varied if sweep.is_zipped else sweep.varied[:1])]
    return ", ".join(name + (" (MiB)" if name.endswith("_mb") else "") for name in names)


def draw_panels(sweep, measured, scale, unit):
    panels = sweep.panels()
    lines = list(dict.fromkeys(line for members in panels.values() for line in members))
    looks = {line: look_of(index, len(lines)) for index, line in enumerate(lines)}
    columns = min(MOST_COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    size = (8.4, 4.4) if len(panels) == 1 else (1.2 + 3.1 * columns, 0.6 + 2.9 * rows)
    figure, grid = plt.subplots(rows, columns, figsize=size, squeeze=False, sharey=True, layout="constrained")
    every = [axes for row in grid for axes in row]
    for place, (axes, (panel, members)) in enumerate(zip(every, panels.items())):
        draw_panel(axes, sweep, members, looks, scale)
        if measured:
            measured.draw(axes, members, scale)
        finish_axes(axes, sweep, drawn_values(sweep, measured, scale), unit)
        if place % columns:
            axes.set_ylabel("")
        axes.set_xlabel(axis_name(sweep) if place + columns >= len(panels) else "")
        if panel:
            axes.set_title(style.shortened(f"{sweep.varied[1].split('.')[-1]} {panel}", 36), fontsize=11)
    for axes in every[len(panels):]:
        axes.set_visible(False)
    entries = legend_of(sweep, looks, measured)
    if len(entries) > 1:
        others = sweep.varied[2 if len(panels) > 1 else 1:] if not sweep.is_zipped else []
        figure.legend(handles=entries, loc="upper center", bbox_to_anchor=(0.5, 0), ncols=min(3, len(entries)),
                      title=", ".join(others) or None)
    return figure


def draw(given):
    sweep = Sweep(style.read_text(given.input), given.key, given.best)
    if not sweep.varied or not sweep.rows:
        raise style.WrongInput(f"has no row with a value of {given.key}")
    measured = Measured(given.measured) if given.measured else None
    if measured is None and given.key == FIRST_RESULT:
        beside = MeasuredCells(sweep, given.measured_by)
        measured = beside if beside.rows else None
    elif measured and (sweep.varied[0], given.key) != (CAP, FIRST_RESULT):
        raise style.WrongInput(f"--measured: is drawn over {CAP} as {FIRST_RESULT}, found {given.key} over "
                               f"{sweep.varied[0]}")
    scale, unit = unit_of(sweep.key, [number(row[sweep.key]) for row in sweep.rows])
    figure = draw_panels(sweep, measured, scale, unit)
    told = [given.machine] if given.machine else []
    told += [f"predicted {spoken(sweep.key)}", *best_text(sweep, scale, unit), *missing_cells(sweep)]
    style.head(figure, given.name or "Sweep", "; ".join(told))
    return figure


if __name__ == "__main__":
    style.run(draw, __doc__, ("--key", {"default": FIRST_RESULT, "help": "the result column to draw"}),
              ("--best", {"type": int, "help": "the row to mark, from 0"}),
              ("--measured", {"help": "what was measured over bucket_cap_mb: lockstep.run/1 or lockstep.validation/1"}),
              ("--measured-by", {"help": "what the table's measured columns are called", "type": style.printable,
                                 "default": ""}),
              ("--name", {"help": "the scenario's name", "type": style.printable}),
              ("--machine", {"help": "the machine's", "type": style.printable}))
