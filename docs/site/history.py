# SPDX-License-Identifier: Apache-2.0
"""The history of measurements: what bench/results has, newest first, with a plot for each run of `cleave bench`."""
import glob
import json
import os

BAR, ROW, NAMES, WIDTH = 14, 18, 250, 720
COLOURS = ["#2a6fb0", "#9aa5b1", "#d9822b", "#5c9e5c", "#8a63ad", "#b0504a"]


def pages(root):
    """Lists the written results, each of which has its own page."""
    return sorted(os.path.relpath(path, root) for path in glob.glob(os.path.join(root, "bench", "results", "*.md")))


def time_of(seconds):
    for unit, factor in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1 or unit == "us":
            return "%.3g %s" % (seconds * factor, unit)
    raise AssertionError


def runs(root):
    """Yields (date and name, document) of each run of `cleave bench`, newest first."""
    found = []
    for path in glob.glob(os.path.join(root, "bench", "results", "*.json")):
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        if document.get("schema") == "cleave.bench/1":
            found.append((os.path.basename(path)[:-5], document))
    return sorted(found, key=lambda run: (run[1]["started_utc"], run[0]), reverse=True)


def times(case):
    """Returns {party: (median, spread)} of the times from memory to memory."""
    return {one["party"]: (one["compute"]["median"], one["compute"]["spread"])
            for one in case["results"] if one.get("compute")}


def plot(cases, parties):
    """Draws bars: the time of each other party divided by the time of the first one, on a logarithmic axis."""
    import math
    rows = [(case["name"], party, times(case)[party][0] / times(case)[parties[0]][0])
            for case in cases for party in parties[1:] if parties[0] in times(case) and party in times(case)]
    if not rows:
        return ""
    most = max(10.0, *(ratio for _, _, ratio in rows))
    least = min(1.0, *(ratio for _, _, ratio in rows))
    low, high = math.floor(math.log10(least)), math.ceil(math.log10(most))

    def place(ratio):
        return NAMES + (math.log10(ratio) - low) / (high - low) * (WIDTH - NAMES - 60)

    height = ROW * len(rows) + 34
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" font-family="sans-serif" '
           'font-size="11" style="max-width:%dpx;background:#fff">' % (WIDTH, height, WIDTH)]
    for power in range(low, high + 1):
        x = place(10.0 ** power)
        out.append('<line x1="%.1f" y1="4" x2="%.1f" y2="%d" stroke="#ddd"/><text x="%.1f" y="%d" '
                   'text-anchor="middle">x%g</text>' % (x, x, height - 28, x, height - 14, 10.0 ** power))
    last = None
    for i, (name, party, ratio) in enumerate(rows):
        y, ends = 6 + i * ROW, sorted((place(1.0), place(ratio)))
        if name != last:
            out.append('<text x="%d" y="%d" text-anchor="end">%s</text>' %
                       (NAMES - 6, y + 11, name.replace("&", "&amp;").replace("<", "&lt;")))
        last = name
        out.append('<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/><text x="%.1f" y="%d">%.3g</text>' %
                   (ends[0], y, max(1.0, ends[1] - ends[0]), BAR, COLOURS[parties.index(party) % len(COLOURS)],
                    ends[1] + 4, y + 11, ratio))
    out.append("</svg>")
    return "".join(out)


def run_text(root, name, document):
    machine, cases = document["machine"], document["cases"]
    parties = [party["name"] for party in document["parties"]
               if any(party["name"] in times(case) for case in cases)]
    if not parties:
        return ""
    lines = ["## %s: %s" % (document["started_utc"][:10], ", ".join(dict.fromkeys(c["workload"] for c in cases))), "",
             "Cleave %s on %s, %d cores, %s %s. The load was %.1f before and %.1f after the run.%s" % (
                 document["version"], machine["cpu"], machine["cores"], machine["os"], machine["os_version"],
                 machine["load_before"], machine["load_after"],
                 " [All figures](../../bench/results/%s.md)" % name
                 if os.path.exists(os.path.join(root, "bench", "results", name + ".md")) else ""), ""]
    drawn = plot(cases, parties)
    if drawn:
        legend = ", ".join('<span style="color:%s">&#9632;</span> %s' %
                           (COLOURS[i % len(COLOURS)], party) for i, party in enumerate(parties) if i)
        lines += ["Time as a multiple of %s's, logarithmic: %s" % (parties[0], legend), "", drawn, ""]
    lines += ["| from memory to memory: median (spread) | %s |" % " | ".join(parties),
              "| --- |%s" % (" --: |" * len(parties))]
    for case in cases:
        took = times(case)
        lines.append("| %s | %s |" % (case["name"], " | ".join(
            "%s (%.0f %%)" % (time_of(took[party][0]), 100 * took[party][1]) if party in took else ""
            for party in parties)))
    return "\n".join([*lines, ""])


def page(root):
    text = "# Measurements, newest first\n\nThis page is made from the files of `cleave bench` in `bench/results`; " \
        "each run names its machine. Times of different machines cannot be compared. `cleave bench --json FILE` " \
        "makes such a file. [Performance](../performance.md) says what follows from the figures.\n\n"
    text += "\n".join(run_text(root, *run) for run in runs(root))
    text += "\n## Written results\n\nThese files hold method and figures in full.\n\n```{toctree}\n:maxdepth: 1\n\n"
    text += "".join("/%s\n" % path[:-3] for path in reversed(pages(root))) + "```\n"
    return {"history.md": text}
