"""Harness runs: the loss that each reached against the seconds it had trained."""

import style
from style import plt

LINES = ("-", "--", ":")
MOST_RUNS = len(style.COLOURS) * len(LINES)


class Curve:
    """Of a run of the harness that was asked for losses."""

    def __init__(self, path):
        run = style.read_json(path, "lockstep.run/1")
        losses = run.get("losses")
        if not losses:
            raise style.WrongInput(f"{run['name']}: holds no losses; the harness writes them with --losses N")
        if len(losses["loss"]) != len(losses["end_s"]):
            raise style.WrongInput(f"{run['name']}: has {len(losses['loss'])} losses and {len(losses['end_s'])} times")
        # What is no number leaves a gap.
        self.loss = [float("nan") if loss is None else float(loss) for loss in losses["loss"]]
        self.seconds = [float(end) for end in losses["end_s"]]
        if not any(loss == loss for loss in self.loss):
            raise style.WrongInput(f"{run['name']}: none of its losses is a number")
        self.name = run["name"]
        self.about = (f"{run['model']['name']}, {run['model']['optimizer']}, "
                      f"{losses['samples_of_iteration']} samples an iteration, buckets of {losses['bucket_cap_mb']:g} MiB")
        self.machine = run["machine"].get("class") or run["harness"].get("device") or "a machine without a name"

    def numbers(self):
        return [loss for loss in self.loss if loss == loss]


def told_of(curves):
    about = list(dict.fromkeys(curve.about for curve in curves))
    machines = list(dict.fromkeys(curve.machine for curve in curves))
    return "; ".join([", ".join(machines), about[0] if len(about) == 1 else "settings that differ"])


def draw(given):
    curves = [Curve(path) for path in given.input]
    if len(curves) > MOST_RUNS:
        raise style.WrongInput(f"has {len(curves)} runs, expected {MOST_RUNS} at most")
    scale, unit = style.time_unit(max(curve.seconds[-1] for curve in curves) / 5)
    figure, axes = plt.subplots(figsize=(8.4, 4.6), layout="constrained")
    for index, curve in enumerate(curves):
        axes.plot([end / scale for end in curve.seconds], curve.loss, label=style.legend_name(style.shortened(curve.name)),
                  color=style.COLOURS[index % len(style.COLOURS)], linestyle=LINES[index // len(style.COLOURS)],
                  marker="." if len(curve.loss) <= 40 else None)
    axes.set(xlabel=f"time of training, measured ({unit})", ylabel="loss of the iteration's samples")  # no unit
    axes.set_xlim(left=0)
    style.begin_at_zero(axes, [loss for curve in curves for loss in curve.numbers()])
    if len(curves) > 1:
        axes.legend()
    style.head(figure, curves[0].name if len(curves) == 1 else "Loss of measured runs", told_of(curves))
    return figure


if __name__ == "__main__":
    style.run(draw, __doc__, has_many=True)
