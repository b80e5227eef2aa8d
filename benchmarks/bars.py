"""SVG bars of measurements, side by side."""

from html import escape

WIDTH, BAR, LABEL, GAP, MARGIN = 430, 17, 150, 22, 10
STYLE = (
    "text{font:12px sans-serif;fill:#333}.heading{font-weight:bold;font-size:14px}.title{font-weight:bold}"
    "rect{fill:#9aa4ae}.own{fill:#08488e}.paper{fill:#fff}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}rect{fill:#6b747d}.own{fill:#6cb4f5}.paper{fill:#16181c}}"
)


def bars(columns: dict[str, dict[str, dict[str, float]]], own: str = "glassformer") -> str:
    """A picture of panels in columns. In each panel, the longest bar is its largest value.

    Args:
        columns: heading of a column -> title of a panel -> label of a bar -> value.
        own: label of the bars in the color of the house.
    """
    parts, height = [], 0
    for i, (heading, panels) in enumerate(columns.items()):
        left, top = i * WIDTH + MARGIN, 24
        parts.append(f'<text x="{left}" y="{top}" class="heading">{escape(heading)}</text>')
        for title, values in panels.items():
            top += GAP + 6
            parts.append(f'<text x="{left}" y="{top}" class="title">{escape(title)}</text>')
            for label, value in values.items():
                top += BAR
                width = value / max(values.values()) * (WIDTH - LABEL - 80)
                name = ' class="own"' if label == own else ""
                parts += [
                    f'<text x="{left}" y="{top}">{escape(label)}</text>',
                    f'<rect x="{left + LABEL}" y="{top - 11}" width="{width:.1f}" height="{BAR - 4}"{name}/>',
                    f'<text x="{left + LABEL + width + 5:.1f}" y="{top}">{value:,.0f}</text>',
                ]
        height = max(height, top + MARGIN)
    size = f'width="{len(columns) * WIDTH}" height="{height}"'
    body = "\n".join(['<rect width="100%" height="100%" class="paper"/>', *parts])
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{STYLE}</style>\n{body}\n</svg>\n'
