"""A sweep's CSV as curves: the result against the first varied path, one line for each choice of the others."""

import csv
import io

import style
from style import plt
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

FIRST_RESULT = "iteration_time_s"  # the columns before it are what was varied
BAND = {"iteration_time_s": ("iteration_time_low_s", "iteration_time_high_s")}
MOST_LEGEND_ROWS = 14


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
    return name.removesuffix("_s").replace("_", " ") if not name.endswith("per_s") else name.replace("_per_s", " per second")


def is_geometric(values):
    ordered = sorted(set(values))
    if len(ordered) < 3 or ordered[0] <= 0:
        return False
    ratios = [after / before for before, after in zip(ordered, ordered[1:])]
    return min(ratios) > 1.2 and ordered[-1] / ordered[0] >= 8


class Sweep:
    def __init__(self, text, key):
        rows = list(csv.DictReader(io.StringIO(text)))
        names = list(rows[0]) if rows else []
        self.varied = names[: names.index(FIRST_RESULT)] if FIRST_RESULT in names else []
        self.key = key
        self.rows = [row for row in rows if number(row.get(key, "")) is not None]
        self.failed = sum(1 for row in rows if row["error"])
        labels = list(dict.fromkeys(row[self.varied[0]] for row in rows)) if self.varied else []
        self.is_numeric = all(number(label) is not None for label in labels)
        self.places = {label: number(label) if self.is_numeric else place for place, label in enumerate(labels)}

    def lines(self):
        """Rows by the values of all varied paths but the first, in the order of the file."""
        groups = {}
        for row in self.rows:
            groups.setdefault(tuple(row[path] for path in self.varied[1:]), []).append(row)
        return groups

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


def draw_line(axes, sweep, rows, label, look, scale):
    x, y = sweep.points(rows, sweep.key, scale)
    axes.plot(x, y, label=label, markeredgecolor="white", markeredgewidth=0.8, zorder=3, **look)
    for low_key, high_key in [BAND[sweep.key]] if sweep.key in BAND else []:
        low_x, low = sweep.points(rows, low_key, scale)
        high_x, high = sweep.points(rows, high_key, scale)
        if low_x == high_x == x:
            axes.fill_between(x, low, high, color=look["color"], alpha=0.14, linewidth=0, zorder=1)


def mark_minimum(axes, sweep, scale, unit):
    best = min(sweep.rows, key=lambda row: number(row[sweep.key]))
    x, y = sweep.places[best[sweep.varied[0]]], number(best[sweep.key]) / scale
    axes.plot([x], [y], marker="o", markersize=15, markerfacecolor="none", markeredgecolor=style.INK,
              markeredgewidth=1.6, linestyle="none", zorder=4)
    places = list(sweep.places.values())
    is_right = places and (places.index(x) if not sweep.is_numeric else sorted(set(places)).index(x)) > len(set(places)) / 2
    axes.annotate(f"{y:.4g} {unit}".strip() + f" at {best[sweep.varied[0]]}", (x, y),
                  xytext=(-14 if is_right else 14, -20), textcoords="offset points",
                  ha="right" if is_right else "left", fontweight="bold", color=style.INK, zorder=5,
                  bbox={"boxstyle": "round,pad=0.2", "facecolor": "white", "edgecolor": "none", "alpha": 0.75})


def draw(sweep):
    figure, axes = plt.subplots(figsize=(8, 4.8))
    scale, unit = unit_of(sweep.key, [number(row[sweep.key]) for row in sweep.rows])
    groups = sweep.lines()
    for index, (choice, rows) in enumerate(groups.items()):
        label = ", ".join(choice) or f"predicted {spoken(sweep.key)}"
        draw_line(axes, sweep, rows, label, look_of(index, len(groups)), scale)
    has_band = sweep.key in BAND and any(row[BAND[sweep.key][0]] for row in sweep.rows)
    if has_band:
        axes.fill_between([], [], [], color=style.GREY, alpha=0.3, linewidth=0, label="10th to 90th percentile\nof calibration residuals")
    choose_x_axis(axes, sweep)
    axes.set_ylabel(f"{spoken(sweep.key)} ({unit})" if unit else spoken(sweep.key))
    axes.set_title(f"Predicted {spoken(sweep.key)}")
    axes.margins(y=0.16)
    mark_minimum(axes, sweep, scale, unit)
    if sweep.failed:
        axes.annotate(f"{sweep.failed} cells could not be simulated", (1, 1.02), xycoords="axes fraction",
                      ha="right", fontsize=9.5, color=style.GREY)
    if len(groups) > 1 or has_band:
        axes.legend(title=", ".join(sweep.varied[1:]) or None, loc="upper left", bbox_to_anchor=(1.02, 1), alignment="left",
                    ncols=1 + len(groups) // MOST_LEGEND_ROWS)
    return figure


def main():
    given = style.arguments(__doc__, ("--key", {"default": FIRST_RESULT, "help": "the result column to draw"}))
    sweep = Sweep(style.read_text(given.input), given.key)
    if not sweep.varied or not sweep.rows:
        raise SystemExit(f"sweep.py: {given.input} has no row with a value of {given.key}")
    style.save(draw(sweep), given.output)


if __name__ == "__main__":
    main()
