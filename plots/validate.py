"""A validation's JSON as two panels: measured against predicted, and the signed error of every case by group."""

import json

import style
from style import plt
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

CLIPPED_AT = 40  # percent: what lies further is drawn at the edge with its number


def colours_of(groups):
    """One colour a group while there are enough; else one for each first word (the source of the data)."""
    names = [group["group"] for group in groups]
    families = list(dict.fromkeys(names if len(set(names)) <= len(style.COLOURS) else [name.split()[0] for name in names]))
    by_family = {family: style.COLOURS[index % len(style.COLOURS)] for index, family in enumerate(families)}
    return {name: by_family.get(name, by_family.get(name.split()[0])) for name in names}, by_family


def look_of(case, colours):
    if "caution" in case:
        return {"marker": "x", "color": style.GREY, "markerfacecolor": style.GREY}
    colour = colours.get(case["group"], style.GREY)
    return {"marker": "o", "color": colour, "markerfacecolor": "white" if case["split"] == "fit" else colour}


def time_text(value, _):
    return f"{value:g} s" if value >= 1 else f"{value * 1e3:g} ms"


def draw_scatter(axes, cases, colours):
    every = [value for case in cases for value in (case["measured"], case["predicted"])]
    low, high = min(every) / 1.4, max(every) * 1.4
    axes.fill_between([low, high], [0.9 * low, 0.9 * high], [1.1 * low, 1.1 * high], color="#EFEFEF", zorder=0)
    axes.plot([low, high], [low, high], color=style.GREY, linewidth=1, zorder=1)
    for case in cases:
        if case["low"] is not None and case["high"] is not None:
            axes.plot([case["measured"]] * 2, [case["low"], case["high"]], linewidth=1.2, zorder=2, solid_capstyle="butt",
                      color=look_of(case, colours)["color"], alpha=0.7)
        axes.plot([case["measured"]], [case["predicted"]], markersize=5, linestyle="none", alpha=0.85, zorder=3,
                  markeredgewidth=1, **look_of(case, colours))
    axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high), aspect="equal",
             xlabel="measured iteration time", ylabel="predicted iteration time",
             title="Predicted against measured")
    axes.xaxis.set_major_formatter(FuncFormatter(time_text))
    axes.yaxis.set_major_formatter(FuncFormatter(time_text))


def spread(index):
    """A place within a group's strip that keeps points apart, the same on every run."""
    return ((index * 0.618034) % 1 - 0.5) * 0.55


def draw_strip(axes, cases, groups, colours):
    rows = {(group["group"], group["split"]): place for place, group in enumerate(groups)}
    axes.axvspan(-10, 10, color="#EFEFEF", zorder=0)
    axes.axvline(0, color=style.GREY, linewidth=1, zorder=1)
    for index, case in enumerate(cases):
        place = rows.get((case["group"], case["split"]))
        if place is None:
            continue
        error = max(-CLIPPED_AT, min(CLIPPED_AT, case["error_percent"]))
        is_clipped = error != case["error_percent"]
        y = place + spread(index)
        axes.plot([error], [y], markersize=4.5, linestyle="none", alpha=0.8, zorder=3, markeredgewidth=1,
                  clip_on=False, **look_of(case, colours))
        if is_clipped:
            axes.annotate(f"{case['error_percent']:+.0f} %", (error, y), xytext=(6 if error < 0 else -6, 0),
                          textcoords="offset points", ha="left" if error < 0 else "right", va="center", fontsize=8)
    axes.set_yticks(range(len(groups)), [group["group"] for group in groups])
    for label, group in zip(axes.get_yticklabels(), groups):
        label.set_color(colours[group["group"]])
    for place, group in enumerate(groups):
        axes.annotate(f"{group['mape_percent']:.1f} %", (1.02, place), xycoords=("axes fraction", "data"), va="center",
                      fontweight="bold", color=colours[group["group"]])
        axes.annotate(f"of {group['n']}", (1.16, place), xycoords=("axes fraction", "data"), va="center", fontsize=9.5,
                      color=style.GREY)
    axes.annotate("mean\nabs. error", (1.02, 1.0), xycoords="axes fraction", xytext=(0, 8), textcoords="offset points",
                  fontsize=9.5, color=style.INK)
    reach = max([12.0] + [min(abs(case["error_percent"]) * 1.08, CLIPPED_AT) for case in cases])
    axes.set(xlim=(-reach, reach), ylim=(len(groups) - 0.4, -0.6), xlabel="signed error (%): left of 0 is predicted too fast",
             title="Error of every case")
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    for place in range(1, len(groups)):
        axes.axhline(place - 0.5, color="#E4E4E4", linewidth=0.7, zorder=0)


def draw_legend(figure, cases, by_family):
    entries = [Line2D([], [], marker="o", linestyle="none", color=colour, label=family) for family, colour in by_family.items()]
    if any(case["split"] == "fit" for case in cases):
        entries.append(Line2D([], [], marker="o", linestyle="none", color=style.INK, markerfacecolor="white", label="fitted on (hollow)"))
    if any("caution" in case for case in cases):
        entries.append(Line2D([], [], marker="x", linestyle="none", color=style.GREY, label="outside the means, by its source's caution"))
    entries.append(plt.Rectangle((0, 0), 1, 1, color="#E4E4E4", label="within 10 %"))
    figure.legend(handles=entries, loc="lower center", bbox_to_anchor=(0.5, 0.0), ncols=min(len(entries), 5))


def draw(validation):
    cases, groups = validation["cases"], validation["groups"]
    colours, by_family = colours_of(groups)
    height = max(5.6, 1.8 + 0.34 * len(groups))
    figure, (scatter, strip) = plt.subplots(1, 2, figsize=(14.5, height), width_ratios=[1, 1])
    draw_scatter(scatter, cases, colours)
    scatter.set_anchor("N")
    draw_strip(strip, cases, groups, colours)
    figure.subplots_adjust(wspace=0.75, bottom=0.95 / height + 0.06, top=1 - 0.6 / height)
    draw_legend(figure, cases, by_family)
    return figure


def main():
    given = style.arguments(__doc__)
    validation = json.loads(style.read_text(given.input))
    if not validation["cases"]:
        raise SystemExit(f"validate.py: {given.input} has no cases")
    style.save(draw(validation), given.output)


if __name__ == "__main__":
    main()
