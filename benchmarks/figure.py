"""SVG figures of measurements: panels with logarithmic axes."""

import math

COLORS = ("#08488e", "#b35806")
WIDTH, HEIGHT, MARGIN = 380, 230, 56
MIN_VALUE = 1e-12
"""Smaller values are drawn at this value."""


def figure(panels):
    """Plot panels in two columns.

    Args:
        panels: title of each panel -> name of each series -> x -> y.
    """
    parts = []
    for i, (title, series) in enumerate(panels.items()):
        left, top = (i % 2) * (WIDTH + 120), (i // 2) * (HEIGHT + 70) + 40
        values = {name: {float(x): max(y, MIN_VALUE) for x, y in points.items()} for name, points in series.items()}
        ys = [y for points in values.values() for y in points.values()]
        xs = sorted({x for points in values.values() for x in points})
        low, high = math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys)) + 1e-9)
        span = math.log2(xs[-1]) - math.log2(xs[0])
        x_of = lambda x: left + MARGIN + (math.log2(x) - math.log2(xs[0])) / span * (WIDTH - MARGIN)
        y_of = lambda y: top + HEIGHT - (math.log10(y) - low) / max(1, high - low) * HEIGHT
        parts.append(f'<text x="{left + MARGIN}" y="{top - 14}" class="title">{title}</text>')
        for power in range(low, high + 1, max(1, (high - low) // 5)):
            parts.append(f'<path d="M{left + MARGIN} {y_of(10.0**power):.1f}h{WIDTH - MARGIN}" class="grid"/>')
            label = f"{10.0**power:,g}" if -4 < power < 6 else f"1e{power}"
            parts.append(
                f'<text x="{left + MARGIN - 8}" y="{y_of(10.0**power) + 4:.1f}" text-anchor="end">{label}</text>'
            )
        for x in xs:
            label = f"{x:,g}" if x < 1e5 else f"{x / 1e3:,g}k"
            parts.append(f'<text x="{x_of(x):.1f}" y="{top + HEIGHT + 18}" text-anchor="middle">{label}</text>')
        for (name, points), color in zip(values.items(), COLORS, strict=False):
            line = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in points.items())
            parts.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2.5"/>')
            x, y = list(points.items())[-1]
            parts.append(f'<text x="{x_of(x) + 6:.1f}" y="{y_of(y) + 4:.1f}" fill="{color}">{name}</text>')
    style = "text{font:13px sans-serif;fill:#333}.title{font-weight:bold}.grid{stroke:#ddd}"
    n_rows = -(-len(panels) // 2)
    size = f'width="{2 * WIDTH + 220}" height="{n_rows * (HEIGHT + 70) + 20}"'
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{style}</style>\n'
        f'<rect width="100%" height="100%" fill="#fff"/>\n{body}\n</svg>\n'
    )
