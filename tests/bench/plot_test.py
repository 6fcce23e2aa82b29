#!/usr/bin/env python3
"""The plot of a comparison is well-formed SVG with one panel per operation and ranks, every line inside its panel.

    plot_test.py FOLDER_OF_PLOT_PY COMPARISON.json
"""
import json
import sys
import xml.etree.ElementTree as ElementTree

SVG = "{http://www.w3.org/2000/svg}"


def main():
    sys.path.insert(0, sys.argv[1])
    from plot import plot_text
    with open(sys.argv[2], encoding="utf-8") as file:
        root = ElementTree.fromstring(plot_text(json.load(file)))
    titles = [text.text for text in root.iter(SVG + "text") if text.get("class") == "title"]
    assert titles == ["all_reduce, 2 processes", "alltoall, 8 processes"], titles
    lines = [line.get("points").split() for line in root.iter(SVG + "polyline")]
    assert [len(points) for points in lines] == [3, 3, 3, 1, 1, 1], lines
    _, _, width, height = map(float, root.get("viewBox").split())
    for points in lines:
        places = [tuple(map(float, point.split(","))) for point in points]
        assert places == sorted(places), "sizes go to the right"
        assert all(0 < x < width and 0 < y < height for x, y in places), places
    # SVG counts downwards: at 8 bytes ours, the fastest, lies below the others.
    first = [float(points[0].split(",")[1]) for points in lines[:3]]
    assert first[0] > first[1] > first[2], first


if __name__ == "__main__":
    main()
