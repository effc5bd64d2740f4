"""A comparison of strategies: the loss each reaches against simulated seconds, and what its workers did."""

import style
from style import plt
from matplotlib.ticker import FuncFormatter

PARTS = (("computing_fraction", "computing"), ("communicating_fraction", "communicating"),
         ("waiting_fraction", "waiting"))
PART_COLOURS = ("#3b6fb6", "#E69F00", "#d1495b")
MOST_STRATEGIES = len(style.COLOURS)


def draw_loss(axes, strategies, wanted):
    for index, strategy in enumerate(strategies):
        seconds, losses = zip(*strategy["loss"])
        axes.plot(seconds, losses, label=strategy["strategy"], color=style.COLOURS[index % MOST_STRATEGIES])
    if wanted is not None:
        axes.axhline(wanted, color=style.GREY, linewidth=1, linestyle="--", zorder=1)
        for index, strategy in enumerate(strategies):
            if strategy["seconds_to_loss"] is not None:
                axes.plot([strategy["seconds_to_loss"]], [wanted], marker="o", markersize=8, zorder=4,
                          color=style.COLOURS[index % MOST_STRATEGIES], markeredgecolor="white")
    axes.set(xlabel="simulated time (s)", ylabel="loss of the model that is trained", yscale="log")
    for which in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
        which(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_title("Loss against simulated time")
    axes.set_xlim(left=0)
    axes.legend()


def draw_parts(axes, strategies):
    names = [strategy["strategy"] for strategy in strategies]
    left = [0.0] * len(names)
    for (key, label), colour in zip(PARTS, PART_COLOURS):
        shares = [100 * strategy[key] for strategy in strategies]
        axes.barh(names, shares, left=left, label=label, color=colour, height=0.55)
        left = [before + share for before, share in zip(left, shares)]
    for row, strategy in enumerate(strategies):
        axes.annotate(f"{strategy['samples_per_s']:,.0f} samples/s", (101, row), va="center", fontsize=10,
                      annotation_clip=False)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set(xlim=(0, 100), xlabel="part of the workers' time (%)")
    axes.set_title("What the workers did")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=3)


def draw(document):
    strategies = document["comparison"]
    wanted = document["scenario"]["compare"]["learning"].get("wanted_loss")
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 4.8), width_ratios=(1.3, 1), layout="constrained")
    draw_loss(left, strategies, wanted)
    draw_parts(right, strategies)
    figure.suptitle(document["name"], fontweight="bold", x=0.01, ha="left")
    return figure


def main():
    given = style.arguments(__doc__)
    document = style.read_json(given.input)
    if not document.get("comparison"):
        raise SystemExit(f"loss.py: {given.input} compares no strategies")
    style.save(draw(document), given.output)


if __name__ == "__main__":
    main()
