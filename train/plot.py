"""Draws a run's curves as SVG.

    python train/plot.py RUN_DIR/curves.csv OUT.svg
"""
import csv
import math
import sys

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 300, 60, 150, 34, 40
COLORS = ["#1b6ca8", "#d1495b", "#2e933c", "#8d5bb5", "#777777", "#e08e1d", "#b5651d", "#4a4a4a"]
PANELS = [
    ("loss a token (log scale)", ["arithmetic", "choice", "tools", "chat", "prompt"], True),
    ("loss of the drafts (log scale)", ["draft_1", "draft_2", "draft_3"], True),
    ("held-out dialogs reproduced exactly", ["exact_arithmetic", "exact_choice", "exact_tools",
                                            "exact_chat"], False),
    ("tokens per step, three drafts", ["tokens_per_step_arithmetic", "tokens_per_step_choice",
                                       "tokens_per_step_tools", "tokens_per_step_chat"], False),
]


def series(rows, name):
    """[(million tokens, value)]"""
    return [(int(row["tokens"]) / 1e6, float(row[name])) for row in rows if row.get(name)]


def ticks(low, high, logarithmic):
    if logarithmic:
        values = [m * 10.0 ** e for e in range(-4, 2) for m in (1, 2, 5)]
    else:
        step = 10.0 ** math.floor(math.log10(high - low))
        step *= 0.5 if (high - low) / step < 4 else 1
        values = [i * step for i in range(int(low / step), int(high / step) + 1)]
    return [v for v in values if low <= v <= high]


def panel(title, curves, logarithmic, top, tokens_max):
    """SVG elements of one panel whose upper edge is at `top`."""
    values = [v for points in curves.values() for _, v in points]
    low, high = (min(values), max(values)) if logarithmic else (0.0, max(max(values), 1.0))
    low = max(low, 1e-4) if logarithmic else low
    scale = math.log if logarithmic else float
    plot_width, plot_height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def x(tokens):
        return LEFT + plot_width * tokens / tokens_max

    def y(value):
        share = (scale(max(value, low)) - scale(low)) / ((scale(high) - scale(low)) or 1)
        return top + TOP + plot_height * (1 - share)

    out = [f'<text x="{LEFT}" y="{top + 20}" font-weight="bold">{title}</text>']
    for value in ticks(low, high, logarithmic):
        at = y(value)
        out.append(f'<path d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>'
                   f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{value:g}</text>')
    for value in ticks(0, tokens_max, False):
        out.append(f'<text x="{x(value):.1f}" y="{top + HEIGHT - BOTTOM + 18}" '
                   f'text-anchor="middle">{value:g} M tokens</text>')
    for i, (name, points) in enumerate(curves.items()):
        path = "L".join(f"{x(t):.1f} {y(v):.1f}" for t, v in points)
        label_y = top + TOP + 16 * i + 8
        out.append(f'<path d="M{path}" fill="none" stroke="{COLORS[i]}" stroke-width="1.6"/>'
                   f'<text x="{WIDTH - RIGHT + 10}" y="{label_y}" fill="{COLORS[i]}">'
                   f'{name.rsplit("_per_step_")[-1].removeprefix("exact_")}</text>')
    return out


def main(source, destination):
    with open(source, newline="") as file:
        rows = list(csv.DictReader(file))
    tokens_max = int(rows[-1]["tokens"]) / 1e6
    body, top = [], 0
    for title, names, logarithmic in PANELS:
        curves = {name: points for name in names if (points := series(rows, name))}
        if curves:
            body += panel(title, curves, logarithmic, top, tokens_max)
            top += HEIGHT
    with open(destination, "w") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" '
                   'font-family="sans-serif" font-size="12">\n'
                   f'<rect width="{WIDTH}" height="{top}" fill="white"/>\n'
                   + "\n".join(body) + "\n</svg>\n")


if __name__ == "__main__":
    main(*sys.argv[1:3])
