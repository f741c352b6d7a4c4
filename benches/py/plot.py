"""Draw the pictures of `docs/about/measured.md`."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter

from copying import NUMPY, OURS, TORCH

# Line, marker and shade: the curves differ without colour.
STYLES = {
    OURS[0]: ("-", "o", "black"),
    OURS[1]: ("--", "s", "black"),
    NUMPY: (":", "^", "black"),
    TORCH[0]: ("-", "x", "0.5"),
    TORCH[1]: ("--", "+", "0.5"),
}
UNITS = {1: "B", 10**3: "KB", 10**6: "MB", 10**9: "GB"}
RATIOS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)


def copies(path: Path, ratios: Mapping[int, Mapping[str, float]]) -> None:
    """Draw the time of each library over memcpy's against the number of bytes, both on logarithmic scales."""
    # Text stays text, and equal numbers give equal files.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "dlfield"}):
        figure = Figure(figsize=(8, 5), layout="constrained")
        axes = figure.add_subplot()
        axes.axhline(1, color="black", linewidth=0.8)
        for name, (line, marker, shade) in STYLES.items():
            values = [found[name] for found in ratios.values()]
            axes.plot(list(ratios), values, line, marker=marker, color=shade, label=name)
        axes.set(xscale="log", yscale="log", xlabel="size of the field", ylabel="time over memcpy's")
        axes.set_title("C order to F order, cubes of float64")
        axes.xaxis.set_major_locator(FixedLocator([10**power for power in range(2, 10)]))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: _size(size)))
        axes.yaxis.set_major_locator(FixedLocator(RATIOS))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda ratio, _: f"{ratio:g}"))
        axes.minorticks_off()
        axes.grid(visible=True, color="0.85", linewidth=0.6)
        axes.legend()
        figure.savefig(path, metadata={"Date": None})


def ratios(path: Path, rows: Sequence[Mapping[str, str]]) -> None:
    """Draw the ratio of each comparison, with the spread of its rounds, on a logarithmic scale."""
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "dlfield"}):
        figure = Figure(figsize=(9, 0.3 * len(rows) + 1), layout="constrained")
        axes = figure.add_subplot()
        axes.axvline(1, color="black", linewidth=0.8)
        for place, row in enumerate(reversed(rows)):
            ratio = float(row["ratio"])
            axes.plot([1, ratio], [place, place], color="0.7", linewidth=5, solid_capstyle="butt")
            axes.plot(ratio, place, "o", color="black")
            if row["spread"]:
                axes.plot([float(end) for end in row["spread"].split(" to ")], [place, place], color="black")
        labels = [f"{row['operation']}, {row['compared with']}".replace("`", "") for row in reversed(rows)]
        axes.set_yticks(range(len(rows)), labels, fontsize=8)
        axes.set(xscale="log", xlabel="time of dlfield over that of the other, below 1 dlfield is faster")
        axes.xaxis.set_major_locator(FixedLocator(RATIOS))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda ratio, _: f"{ratio:g}"))
        axes.minorticks_off()
        axes.grid(visible=True, axis="x", color="0.85", linewidth=0.6)
        figure.savefig(path, metadata={"Date": None})


def _size(size: float) -> str:
    unit = max(unit for unit in UNITS if unit <= max(size, 1))
    return f"{size / unit:g} {UNITS[unit]}"
