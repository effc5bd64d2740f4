"""What every figure shares: fonts, colours that colour-blind readers can tell apart, and how files appear.

Scripts read one result (a file, or - for standard input), draw it and write FILE.svg or FILE.png. They compute
nothing: units are chosen and numbers are placed, no more.
"""

import argparse
import json
import os
import re
import sys

try:
    import matplotlib
except ImportError:
    sys.exit(69)  # EX_UNAVAILABLE: the caller tries another interpreter, then says what is missing

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend comes first)

# Okabe and Ito, "Color Universal Design", 2008; its yellow is too light for lines on white and left out.
CANNOT_WRITE = 74  # EX_IOERR
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000"]
MARKERS = ["o", "s", "^", "D", "v", "P", "X"]
GREY = "#8A8A8A"
INK = "#222222"

# What neither shows nor may stand in SVG: controls, what turns text around, and no characters at all.
CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")

plt.rcParams.update({
    "font.family": "sans-serif",
    "font.size": 11,
    "axes.titlesize": 13,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 12,
    "axes.labelsize": 11.5,
    "axes.labelpad": 8,
    "axes.edgecolor": "#666666",
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.8,
    "xtick.color": "#444444",
    "ytick.color": "#444444",
    "legend.frameon": False,
    "legend.fontsize": 10.5,
    "lines.linewidth": 2,
    "lines.markersize": 6,
    "svg.hashsalt": "lockstep",
    "figure.dpi": 100,
    "savefig.dpi": 160,
    "savefig.facecolor": "white",
})

if "text.parse_math" in plt.rcParams:  # matplotlib 3.6; before that a dollar in a name may begin a formula
    plt.rcParams["text.parse_math"] = False


def arguments(description, *more):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("input", help="the result; - for standard input")
    parser.add_argument("output", help="FILE.svg or FILE.png")
    for name, options in more:
        parser.add_argument(name, **options)
    return parser.parse_args()


def read_text(path):
    if path == "-":
        return sys.stdin.read()
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()


def printable(value):
    """Names as the program prints them: what SVG may not hold, and what turns text around, is written out."""
    if isinstance(value, dict):
        return {printable(key): printable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [printable(item) for item in value]
    if isinstance(value, str):
        return CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", value)
    return value


def read_json(path):
    return printable(json.loads(read_text(path)))


def save(figure, path):
    """The picture appears whole or not at all."""
    kind = "png" if path.endswith(".png") else "svg"
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{os.getpid()}.tmp")
    metadata = {"Date": None} if kind == "svg" else None
    try:
        figure.savefig(temporary, format=kind, bbox_inches="tight", pad_inches=0.2, metadata=metadata)
        os.replace(temporary, path)
    except OSError as problem:
        if sys.argv[1:2] != ["-"]:  # who pipes a document in tells it
            print(f"{path}: writing failed: {problem.strerror}", file=sys.stderr)
        sys.exit(CANNOT_WRITE)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)
