"""The plot of a comparison, an SVG: time over size, both logarithmic, a panel per operation and number of ranks."""
import html
import math

COLOURS = {"talaria": "#0b6e4f", "open_mpi": "#c8553d", "gloo": "#3d5a98"}
NAMES = {"talaria": "Talaria", "open_mpi": "Open MPI", "gloo": "Gloo"}
WIDTH, HEIGHT, LEFT, TOP, GAP = 300, 220, 56, 60, 56


def series_of(rows, library):
    """[(bytes, usec)] of the library's fastest algorithm at each size."""
    points = []
    for row in rows:
        times = [usec for name, usec in row["usec"].items() if name.partition("/")[0] == library]
        if times:
            points.append((row["bytes"], min(times)))
    return sorted(points)


class Panel:
    """One pair of axes at (x, y)."""

    def __init__(self, x, y, rows):
        self.x, self.y, self.rows = x, y, rows
        sizes = [row["bytes"] for row in rows]
        times = [usec for row in rows for usec in row["usec"].values()]
        self.sizes = (math.log2(min(sizes)), max(math.log2(max(sizes)), math.log2(min(sizes)) + 1))
        lowest = math.floor(math.log10(min(times)))
        self.times = (lowest, max(math.ceil(math.log10(max(times))), lowest + 1))

    def place(self, size, usec):
        across = (math.log2(size) - self.sizes[0]) / (self.sizes[1] - self.sizes[0])
        up = (math.log10(usec) - self.times[0]) / (self.times[1] - self.times[0])
        return self.x + across * WIDTH, self.y + (1 - up) * HEIGHT

    def grid(self):
        parts = []
        for decade in range(self.times[0], self.times[1] + 1):
            _, y = self.place(2 ** self.sizes[0], 10 ** decade)
            parts.append(f'<path d="M{self.x} {y:.1f}h{WIDTH}" class="grid"/>'
                         f'<text x="{self.x - 6}" y="{y + 4:.1f}" text-anchor="end">{10.0 ** decade:g}</text>')
        for exponent, name in ((3, "8"), (10, "1K"), (15, "32K"), (20, "1M"), (26, "64M")):
            if not self.sizes[0] <= exponent <= self.sizes[1]:
                continue
            x, _ = self.place(2 ** exponent, 10 ** self.times[0])
            parts.append(f'<path d="M{x:.1f} {self.y}v{HEIGHT}" class="grid"/>'
                         f'<text x="{x:.1f}" y="{self.y + HEIGHT + 15}" text-anchor="middle">{name}</text>')
        return parts

    def lines(self):
        parts = []
        for library, colour in COLOURS.items():
            points = " ".join("{:.1f},{:.1f}".format(*self.place(*point)) for point in series_of(self.rows, library))
            if points:
                parts.append(f'<polyline points="{points}" stroke="{colour}" class="line"/>')
        return parts

    def draw(self, title):
        return [f'<text x="{self.x}" y="{self.y - 8}" class="title">{html.escape(title)}</text>',
                *self.grid(), *self.lines()]


def legend():
    parts = []
    for place, (library, colour) in enumerate(COLOURS.items()):
        x = LEFT + 110 * place
        parts.append(f'<path d="M{x} 22h24" stroke="{colour}" class="line"/>'
                     f'<text x="{x + 30}" y="26">{NAMES[library]}</text>')
    return parts + [f'<text x="{LEFT + 340}" y="26">µs per call over bytes, less is better</text>']


def plot_text(comparison):
    operations = list(dict.fromkeys(row["operation"] for row in comparison["rows"]))
    ranks = sorted({row["ranks"] for row in comparison["rows"]})
    parts = legend()
    for line, operation in enumerate(operations):
        for column, count in enumerate(ranks):
            rows = [row for row in comparison["rows"] if row["operation"] == operation and row["ranks"] == count]
            if rows:
                panel = Panel(LEFT + column * (WIDTH + GAP), TOP + line * (HEIGHT + GAP), rows)
                parts += panel.draw(f"{operation}, {count} processes")
    width = LEFT + max(len(ranks), 2) * (WIDTH + GAP)
    height = TOP + len(operations) * (HEIGHT + GAP)
    style = ("text{font:11px sans-serif;fill:#333}.title{font-weight:bold}.grid{stroke:#ddd;fill:none}"
             ".line{fill:none;stroke-width:1.8}")
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">',
                      f"<style>{style}</style>", '<rect width="100%" height="100%" fill="#fff"/>', *parts,
                      "</svg>", ""])


def write_plot(comparison, path):
    with open(path, "w", encoding="utf-8") as file:
        file.write(plot_text(comparison))
