"""A sweep's CSV as curves: the result against the first varied path, one line for each choice of the others."""

import csv
import io

import style
from style import plt
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

FIRST_RESULT = "iteration_time_s"  # the columns before it are what was varied
BAND = {"iteration_time_s": ("iteration_time_low_s", "iteration_time_high_s")}
MOST_LEGEND_ROWS = 14
MOST_BANDS = 5  # more of them lie on top of each other and say nothing


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
        return (1, "s") if largest >= 10 else (1e-3, "ms") if largest >= 1e-3 else (1e-6, "µs")
    if key.startswith("memory_bytes.") or key.endswith("bytes_per_gpu"):
        return 2**30, "GiB"
    return 1, ""


def spoken(key):
    """breakdown_s.exposed_communication: exposed communication."""
    name = key.split(".")[-1]
    name = name.replace("_per_s", "_per_second") if name.endswith("_per_s") else name.removesuffix("_s")
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
    def __init__(self, text, key, best=None):
        rows = list(csv.DictReader(io.StringIO(text)))
        names = list(rows[0]) if rows else []
        self.varied = names[: names.index(FIRST_RESULT)] if FIRST_RESULT in names else []
        self.key = key
        self.rows = [row for row in rows if number(row.get(key, "")) is not None]
        self.best = None if best is None else rows[best]  # which the sweep's own answer names
        self.failed = sum(1 for row in rows if row["error"])
        self.reasons = [row[key + "_reason"] for row in rows if row.get(key + "_reason")]
        labels = list(dict.fromkeys(row[self.varied[0]] for row in rows)) if self.varied else []
        self.is_numeric = all(number(label) is not None for label in labels)
        self.places = {label: number(label) if self.is_numeric else place for place, label in enumerate(labels)}

    def lines(self):
        """Rows by the values of all varied paths but the first, in the order of the file."""
        groups = {}
        for row in self.rows:
            groups.setdefault(tuple(row[path] for path in self.varied[1:]), []).append(row)
        return groups

    def fits(self, row):
        """Whether the step of this row fits into a GPU's memory; unknown counts as yes."""
        return row.get("memory_bytes.fits", "") != "false"

    def has_band(self):
        return self.key in BAND and any(row[BAND[self.key][0]] for row in self.rows)

    def points(self, rows, key, scale):
        placed = [(self.places[row[self.varied[0]]], number(row[key])) for row in rows]
        placed = sorted((x, y / scale) for x, y in placed if y is not None)
        return [x for x, _ in placed], [y for _, y in placed]


def choose_x_axis(axes, sweep):
    places = list(sweep.places.values())
    axes.set_xlabel(sweep.varied[0])
    if not sweep.is_numeric:
        axes.set_xticks(places, list(sweep.places), rotation=20 if len(places) > 4 else 0,
                        ha="right" if len(places) > 4 else "center")
        axes.margins(x=0.08)
    elif is_geometric(places):
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_locator(FixedLocator(sorted(set(places))))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    elif len(set(places)) <= 12:
        axes.set_xticks(sorted(set(places)))


def look_of(index, count):
    if count <= len(style.COLOURS):
        return {"color": style.COLOURS[index], "marker": style.MARKERS[index]}
    return {"color": plt.get_cmap("viridis")(0.92 * index / (count - 1)), "marker": "o"}


def draw_band(axes, sweep, rows, look, scale):
    x, low = sweep.points(rows, BAND[sweep.key][0], scale)
    _, high = sweep.points(rows, BAND[sweep.key][1], scale)
    if sweep.is_numeric:
        axes.fill_between(x, low, high, color=look["color"], alpha=0.14, linewidth=0, zorder=1)
    else:
        axes.vlines(x, low, high, color=look["color"], linewidth=1.4, zorder=2)


def draw_line(axes, sweep, rows, label, look, scale):
    x, y = sweep.points(rows, sweep.key, scale)
    linestyle = "-" if sweep.is_numeric else ":"  # between names there is nothing to pass through
    axes.plot(x, y, label=label, markeredgecolor="white", markeredgewidth=0.8, zorder=3, linestyle=linestyle, **look)


def mark_out_of_memory(axes, sweep, scale):
    rows = [row for row in sweep.rows if not sweep.fits(row)]
    if not rows:
        return
    x, y = sweep.points(rows, sweep.key, scale)
    axes.plot(x, y, marker="x", markersize=11, markeredgewidth=2, color=style.INK, linestyle="none", zorder=5,
              label="does not fit in memory")


def mark_best(axes, sweep, scale, unit):
    best = sweep.best
    if best is None:
        return
    x, y = sweep.places[best[sweep.varied[0]]], number(best[sweep.key]) / scale
    axes.plot([x], [y], marker="o", markersize=15, markerfacecolor="none", markeredgecolor=style.INK,
              markeredgewidth=1.6, linestyle="none", zorder=4)
    places = sorted(set(sweep.places.values()))
    is_right = places.index(x) > len(places) / 2
    choice = best[sweep.varied[0]]
    if len(sweep.varied) > 1:
        choice = ", ".join(f"{path.split('.')[-1]} {best[path]}" for path in sweep.varied)
    axes.annotate(f"{shown(y, unit)} at {choice}", (x, y), xytext=(-14 if is_right else 14, -20),
                  textcoords="offset points", ha="right" if is_right else "left", fontweight="bold", color=style.INK,
                  zorder=5, bbox={"boxstyle": "round,pad=0.2", "facecolor": "white", "edgecolor": "none", "alpha": 0.8})


def missing_cells(sweep):
    """What the curves leave out, and why."""
    def cells(count):
        return f"{count} {'cell' if count == 1 else 'cells'}"
    parts = [f"{cells(sweep.failed)} could not be simulated"] if sweep.failed else []
    if sweep.reasons:
        parts.append(f"{cells(len(sweep.reasons))} without a value: {sweep.reasons[0].split(':')[0]}")
    return "; ".join(parts)


def draw(sweep):
    figure, axes = plt.subplots(figsize=(8, 4.8))
    scale, unit = unit_of(sweep.key, [number(row[sweep.key]) for row in sweep.rows])
    groups = sweep.lines()
    has_band = sweep.has_band() and len(groups) <= MOST_BANDS
    for index, (choice, rows) in enumerate(groups.items()):
        look = look_of(index, len(groups))
        draw_line(axes, sweep, rows, ", ".join(choice) or f"predicted {spoken(sweep.key)}", look, scale)
        if has_band:
            draw_band(axes, sweep, rows, look, scale)
    if has_band:
        axes.fill_between([], [], [], color=style.GREY, alpha=0.3, linewidth=0,
                          label="10th to 90th percentile\nof calibration residuals")
    choose_x_axis(axes, sweep)
    axes.set_ylabel(f"{spoken(sweep.key)} ({unit})" if unit else spoken(sweep.key))
    axes.set_title(f"Predicted {spoken(sweep.key)}")
    axes.margins(y=0.16)
    if max(abs(limit) for limit in axes.get_ylim()) >= 10000:
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    mark_best(axes, sweep, scale, unit)
    mark_out_of_memory(axes, sweep, scale)
    missing = missing_cells(sweep)
    if missing:
        axes.annotate(missing, (1, -0.17), xycoords="axes fraction", ha="right", va="top", fontsize=9.5,
                      color=style.GREY)
    if len(groups) > 1 or has_band or not all(sweep.fits(row) for row in sweep.rows):
        axes.legend(title=", ".join(sweep.varied[1:]) or None, loc="upper left", bbox_to_anchor=(1.02, 1),
                    alignment="left", ncols=1 + len(groups) // MOST_LEGEND_ROWS)
    return figure


def main():
    given = style.arguments(__doc__, ("--key", {"default": FIRST_RESULT, "help": "the result column to draw"}),
                            ("--best", {"type": int, "help": "the row to mark, from 0"}))
    sweep = Sweep(style.read_text(given.input), given.key, given.best)
    if not sweep.varied or not sweep.rows:
        raise SystemExit(f"sweep.py: {given.input} has no row with a value of {given.key}")
    style.save(draw(sweep), given.output)


if __name__ == "__main__":
    main()
