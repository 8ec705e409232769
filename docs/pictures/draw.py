"""Draws the pictures of the documentation: draw.py OUT. Reads the CSV files of measure.sh and status-page.png in its folder."""

import random
import sys
from html import escape
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter
from PIL import Image, ImageDraw, ImageFont

HERE = Path(__file__).parent
INK, GREY, LIGHT, LINE = "#222222", "#5f6368", "#f4f4f2", "#c9c9c4"
BLUE, ORANGE, GREEN, RED, PURPLE, SKY = "#0072b2", "#e69f00", "#00795a", "#c84e00", "#a8558a", "#56b4e9"
NO_BREAK = "\u00a0"
# Role or outcome: fill and edge. Every colour also has a word beside it.
TINTS = {
    "subject": ("#f3dcea", PURPLE), "identifier": ("#fbe0d1", RED), "quasi": ("#fdeecb", "#b87f00"), "time": ("#d9edf9", "#2f7fb5"),
    "released": ("#d5efe6", GREEN), "grey": ("#ececea", "#9a9a96"), "white": ("#ffffff", LINE),
}


class Svg:
    """A drawing of plain SVG text on a light background."""

    def __init__(self, width, height):
        self.size = (width, height)
        self.parts = []

    def rect(self, x, y, w, h, tint="white", radius=6, width=1.2, dash=None, fill=None, edge=None):
        fill, edge = fill or TINTS[tint][0], edge or TINTS[tint][1]
        dash = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="{radius}" fill="{fill}" stroke="{edge}" stroke-width="{width}"{dash}/>')

    def text(self, x, y, text, size=13, anchor="start", bold=False, colour=INK, mono=False, strike=False, italic=False):
        style = (' font-weight="bold"' if bold else "") + (' text-decoration="line-through"' if strike else "")
        style += ' font-style="italic"' if italic else ""
        text = text.replace("  ", 2 * NO_BREAK)
        style += ' font-family="DejaVu Sans Mono, Menlo, Consolas, monospace"' if mono else ""
        self.parts.append(f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" fill="{colour}"{style}>{escape(text)}</text>')

    def lines(self, x, y, texts, step=17, **style):
        for number, text in enumerate(texts):
            self.text(x, y + number * step, text, **style)

    def line(self, x1, y1, x2, y2, colour=GREY, width=1.4, arrow=False, both=False, dash=None):
        more = f' marker-end="url(#a{colour[1:]})"' if arrow or both else ""
        more += f' marker-start="url(#a{colour[1:]})"' if both else ""
        more += f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{colour}" stroke-width="{width}"{more}/>')

    def dot(self, x, y, r, fill, edge=None):
        self.parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="{r}" fill="{fill}" stroke="{edge or fill}" stroke-width="1.4"/>')

    def person(self, x, y, fill, edge=None):
        """A head and shoulders, 16 by 20, with its centre at x and its top at y."""
        edge = edge or fill
        self.parts.append(f'<circle cx="{x:g}" cy="{y + 5:g}" r="4.4" fill="{fill}" stroke="{edge}" stroke-width="1.3"/>'
                          f'<path d="M {x - 7:g} {y + 20:g} a 7 9 0 0 1 14 0 z" fill="{fill}" stroke="{edge}" stroke-width="1.3"/>')

    def save(self, path):
        width, height = self.size
        markers = "".join(
            f'<marker id="a{colour[1:]}" viewBox="0 0 10 10" refX="8.5" refY="5" markerWidth="7" markerHeight="7" orient="auto-start-reverse">'
            f'<path d="M0 0 L10 5 L0 10 z" fill="{colour}"/></marker>' for colour in (GREY, BLUE, GREEN, RED, PURPLE))
        path.write_text(
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
            f'font-family="DejaVu Sans, Verdana, Arial, sans-serif">\n<defs>{markers}</defs>\n'
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n' + "\n".join(self.parts) + "\n</svg>\n", encoding="utf-8")


def record_way(out):
    svg = Svg(800, 660)
    svg.text(20, 26, "1  A record arrives", size=15, bold=True)
    cells = [("user_id", "u-714", "subject", 62), ("e-mail", "anna@example.org", "identifier", 136), ("age", "44", "quasi", 48),
             ("postcode", "10117", "quasi", 76), ("time", "14:05", "time", 60), ("heart rate", "83", "quasi", 84),
             ("device", "Pulse 3", "quasi", 74), ("firmware", "4.2.9-beta", "quasi", 94)]
    x, places = 20, {}
    for name, value, role, width in cells:
        svg.rect(x, 38, width, 50, role)
        svg.text(x + width / 2, 57, name, size=12, anchor="middle", colour=GREY)
        svg.text(x + width / 2, 77, value, size=13, anchor="middle")
        places[name] = x + width / 2
        x += width + 16
    x = 20
    for role, words, width in (("subject", "counts people: removed", 178), ("identifier", "names a person: removed", 188),
                               ("quasi", "could identify: made coarser", 214), ("time", "time: made coarser", 100)):
        svg.rect(x, 100, 13, 13, role, radius=2)
        svg.text(x + 19, 111, words, size=12, colour=GREY)
        x += width
    svg.text(20, 160, "2  Its values are divided into attribute groups", size=15, bold=True)
    svg.text(20, 180, "Each group becomes a fragment. No key connects the fragments of one record.", size=12.5, colour=GREY)
    svg.text(20, 278, "3  Fragments of 5 people of the batch are made alike", size=15, bold=True)
    svg.text(20, 298, "A class: at least k = 5 different people show the same values.", size=12.5, colour=GREY)
    svg.text(20, 474, "4  Released lines", size=15, bold=True)
    columns = [
        (20, "group “person”", ["age", "postcode"], ["44   10117", "41   10119", "43   10115", "40   10178", "42   10179"], "40-44   101**", [],
         "same level for all five"),
        (280, "group “pulse”", ["time", "heart rate"], ["14:05   83", "14:11   81", "14:20   84", "14:42   80", "14:57   82"], "14 h   80-84", ["14:35   86"],
         "grey: a second record of u-714"),
        (540, "group “device”", ["device", "firmware"], ["Pulse 3   4.2.9-beta", "Pulse 3   4.2.1", "Pulse 3   4.0.7", "Pulse 3   3.8.2", "Pulse 3   4.1.3"], "Pulse 3   *", [],
         "too few share a firmware: *"),
    ]
    for x, title, names, raw, shared, thinned, note in columns:
        svg.rect(x, 192, 240, 52, "white", fill=LIGHT)
        svg.text(x + 12, 211, title, size=13, bold=True)
        svg.text(x + 12, 233, ", ".join(names), size=13)
        svg.line(x + 120, 246, x + 120, 260, arrow=True)
        svg.rect(x, 308, 240, 134, "quasi", fill="#fffaf0")
        for number, text in enumerate(raw):
            svg.person(x + 22, 315 + number * 22 - 1, PURPLE if number == 0 else "#d9b3cc", PURPLE)
            svg.text(x + 42, 331 + number * 22, text, size=12.5, mono=True, bold=number == 0)
        if thinned:
            svg.person(x + 148, 314, "#dddddd", "#9a9a96")
            svg.text(x + 162, 331, thinned[0], size=12, mono=True, colour="#77777a")
        svg.text(x + 12, 436, note, size=12, colour=GREY)
        svg.line(x + 120, 444, x + 120, 458, arrow=True)
        for number in range(5):
            svg.rect(x, 484 + number * 24, 240, 21, "released", radius=3)
            svg.text(x + 12, 499 + number * 24, shared, size=12.5, mono=True)
        if thinned:
            svg.rect(x, 604, 240, 21, "grey", radius=3, dash="4 3")
            svg.text(x + 12, 619, "thinned: one line per person", size=12, colour="#66666a")
        else:
            svg.text(x + 120, 619, "5 equal lines, sorted, no key", size=12, anchor="middle", colour=GREY)
    svg.text(20, 650, "u-714 (dark) is one of five in each group. A line says that it belongs to one of five people, not to which.", size=12.5, colour=GREY)
    svg.save(out / "record-way.svg")


def before_after(out):
    table = pd.read_csv(HERE / "demo.csv", dtype=str, keep_default_na=False)
    shown = [("", ["user_id", "email"]), ("body", ["age", "sex", "height_cm", "weight_kg"]), ("home", ["zip"]), ("place", ["position"]),
             ("device", ["device_model", "firmware"]), ("clock", ["timestamp"]), ("motion", ["activity", "heart_rate", "steps", "calories"]),
             ("recovery", ["hrv_ms", "stress"])]
    records = list(dict.fromkeys(table["record"]))[:3]
    value = {(row.record, row.attribute): (row.before, row.after) for row in table.itertuples()}
    pieces = lambda text, sign: [text] if len(text) <= 14 or sign not in text else [text.split(sign)[0] + (sign if sign == "," else ""), ("" if sign == "," else sign) + sign.join(text.split(sign)[1:])]
    svg = Svg(800, 100)
    svg.text(20, 26, "Three records before and after (from the output of throng demo --show, invented people, k = 5)", size=13.5, bold=True)
    for number, record in enumerate(records):
        x = 122 + number * 226
        svg.text(x, 54, "before", size=12.5, colour=GREY)
        svg.text(x + 117, 54, "after", size=12.5, colour=GREY)
    y = 62
    for group, names in shown:
        top = y
        for name in names:
            parts = {}
            for record in records:
                before, after = value[record, name]
                if name == "timestamp":
                    before, after = before.replace("T", " ").rstrip("Z"), after.replace("T", " ").rstrip("Z")
                sign = {"email": "@", "position": ",", "timestamp": " "}.get(name, "\0")
                parts[record] = (pieces(before, sign), ["removed"] if after.startswith("(never") else pieces(after, sign), before, after)
            height = 8 + 16 * max(len(part) for one in parts.values() for part in one[:2])
            svg.text(20, y + 15, name, size=12.5)
            for number, record in enumerate(records):
                x = 118 + number * 226
                before, after, plain, coarse = parts[record]
                tint = "identifier" if after == ["removed"] else "released" if plain == coarse else "quasi"
                svg.rect(x, y, 116, height - 3, "white", radius=3)
                svg.rect(x + 116, y, 106, height - 3, tint, radius=3)
                svg.lines(x + 4, y + 15, before, step=15, size=12)
                svg.lines(x + 121, y + 15, after, step=15, size=12, colour=RED if tint == "identifier" else INK, italic=tint == "identifier")
            y += height
        y += 7
        svg.line(20, y - 5, 796, y - 5, colour=LINE, width=0.8)
    x = 20
    for tint, words, width in (("identifier", "removed", 100), ("quasi", "made coarser", 138), ("released", "released as it is", 0)):
        svg.rect(x, y + 8, 13, 13, tint, radius=2)
        svg.text(x + 20, y + 19, words, size=12.5, colour=GREY)
        x += width
    svg.text(20, y + 42, "Between two thin lines: one fragment. At least 5 people of its batch show the same values. Some columns are left out.", size=12.5, colour=GREY)
    svg.text(20, y + 60, "Only the keeper of the raw data can lay the fragments of a record side by side, as here.", size=12.5, colour=GREY)
    svg.size = (800, y + 74)
    svg.save(out / "before-after.svg")


def batch_crowd(out):
    svg = Svg(800, 470)
    svg.text(20, 26, "k = 5: a class is released if it has at least 5 different people in its own batch", size=15, bold=True)
    batches = [
        (20, "Batch 1", [("40-49, 101**", 6, [1] * 6), ("50-59, 104**", 5, [1, 1, 1, 2, 1]), ("60-69, 107**", 3, [1, 1, 1]), ("20-29, 106**", 2, [4, 3])]),
        (410, "Batch 2", [("40-49, 101**", 5, [1] * 5), ("50-59, 104**", 7, [1] * 7), ("60-69, 107**", 2, [1, 1])]),
    ]
    words = {6: "6 people: 6 lines released", 5: "5 people: 5 lines released", 7: "7 people: 7 lines released", 3: "3 people: not released", 2: "2 people: not released"}
    for x, title, classes in batches:
        svg.rect(x, 44, 370, 362, "white", fill=LIGHT)
        svg.text(x + 14, 67, title, size=14, bold=True)
        for number, (label, people, records) in enumerate(classes):
            y = 78 + number * 80
            good = people >= 5
            svg.rect(x + 12, y, 346, 70, "released" if good else "grey", dash=None if good else "5 4")
            svg.text(x + 24, y + 22, label, size=13, mono=True, bold=True)
            px = x + 151
            for count in records:
                px += 25
                svg.person(px, y + 7, GREEN if good else "#ffffff", GREEN if good else "#777777")
                if count > 1:
                    svg.text(px + 10, y + 22, f"×{count}", size=12, colour=GREY)
                    px += 22
            more = {("20-29, 106**"): "7 records, but 2 people: not released", ("50-59, 104**"): None}.get(label)
            text = more or words[people]
            svg.text(x + 24, y + 46, ("✓ " if good else "✗ ") + text, size=13, colour=GREEN if good else "#555555", bold=good)
            if label == "50-59, 104**" and people == 5:
                svg.text(x + 24, y + 63, "the second record of one person (×2) is thinned", size=12, colour=GREY)
    # The two small classes.
    svg.line(378, 273, 422, 273, colour=RED, width=2, dash="4 3")
    svg.rect(386, 259, 28, 28, "white", radius=14, edge=RED, width=2)
    svg.text(400, 278, "≠", size=16, anchor="middle", colour=RED, bold=True)
    svg.lines(434, 336, ["3 people in batch 1 and 2 in batch 2 are not 5:", "batches do not help each other. Whoever sees a", "batch arrive sees at least 5 people in each class."], size=13, colour=RED, step=18)
    svg.text(20, 430, "What is not released like this is made coarser until 5 people share it, waits for a later batch, or is left out.", size=13)
    svg.text(20, 452, "One symbol: one person. ×4: four records of this person. People are counted, not records.", size=12.5, colour=GREY)
    svg.save(out / "batch-crowd.svg")


def release_log(out):
    draw = random.Random(7)
    svg = Svg(800, 410)
    svg.text(20, 26, "One person, 24 hours: 240 records, few lines (an example)", size=15, bold=True)
    left, width = 138, 500
    at = lambda hour: left + width * hour / 24
    for hour in range(24):
        if hour % 2 == 0:
            svg.rect(at(hour), 62, width / 24, 240, fill="#f1f1ee", edge="#f1f1ee", radius=0)
    svg.text(20, 54, "24 batches", size=12.5, colour=GREY)
    for hour in (0, 6, 12, 18, 24):
        svg.text(at(hour), 54, f"{hour:02}:00", size=12, anchor="middle", colour=GREY)
    rows = {"records": 88, "motion": 152, "recovery": 206, "body": 264}
    svg.lines(20, 84, ["240 records", "arrive"], size=13, bold=True)
    times = sorted(draw.uniform(0.02, 23.98) for _ in range(240))
    chosen = {}
    missing = {"motion": {3}, "recovery": {4, 15}}
    for group in ("motion", "recovery"):
        for hour in range(24):
            inside = [moment for moment in times if int(moment) == hour]
            if inside and hour not in missing[group]:
                chosen[group, hour] = draw.choice(inside)
    kept = set(chosen.values())
    for moment in times:
        colour = INK if moment in kept else "#a5a5a1"
        svg.line(at(moment), 70, at(moment), 104, colour=colour, width=1.1 if moment in kept else 0.8)
    for (group, hour), moment in chosen.items():
        y, colour = rows[group], {"motion": BLUE, "recovery": RED}[group]
        if hour in (8, 20) or group == "motion":
            svg.line(at(moment), 105, at(hour + 0.85), rows["motion"] - 6 if group == "motion" else y - 6, colour="#b9c9d4" if group == "motion" else "#e3b79f", width=0.8)
    for group, colour in (("motion", BLUE), ("recovery", RED)):
        svg.line(at(0), rows[group], at(24), rows[group], colour=LINE, width=1)
        for hour in range(24):
            released = (group, hour) in chosen
            svg.dot(at(hour + 0.85), rows[group], 5, colour if released else "#ffffff", colour if released else "#8a8a86")
    svg.lines(20, 149, ["group “motion”", "heart rate, steps"], size=12.5)
    svg.lines(20, 203, ["group “recovery”", "stress"], size=12.5)
    svg.lines(20, 261, ["group “body”", "age, sex", "(never changes)"], size=12.5)
    for group, text in (("motion", "lines in 24 h"), ("recovery", "lines in 24 h")):
        count = sum(1 for key in chosen if key[0] == group)
        svg.text(664, rows[group] - 2, f"{count} {text}", size=13, bold=True)
        svg.text(664, rows[group] + 15, "1 per batch", size=12.5, colour=GREY)
    # The constant: claimed once, released after a random delay.
    y = rows["body"]
    svg.dot(at(1.85), y, 5, "#ffffff", PURPLE)
    svg.line(at(2.2), y, at(24) + 4, y, colour=PURPLE, width=1.6, dash="6 4")
    svg.text(at(3), y - 9, "waits: random delay, up to 30 days", size=12.5, colour=PURPLE)
    for shift in (0, 7):
        svg.line(at(24) + 6 + shift, y + 9, at(24) + 12 + shift, y - 9, colour=PURPLE, width=1.6)
    svg.line(at(24) + 22, y, at(24) + 40, y, colour=PURPLE, width=1.6, dash="6 4")
    svg.dot(at(24) + 48, y, 5.5, PURPLE)
    svg.text(at(24) + 60, y + 4, "day 12", size=12.5, colour=PURPLE, bold=True)
    svg.text(664, y + 26, "1 line in 30 days", size=13, bold=True)
    svg.line(20, 316, 780, 316, colour=LINE, width=1)
    svg.line(24, 328, 24, 346, colour=INK, width=1.4)
    svg.text(36, 342, "chosen for a line", size=12.5, colour=GREY)
    svg.line(168, 328, 168, 346, colour="#a5a5a1", width=1)
    svg.text(180, 342, "thinned: counted, not released", size=12.5, colour=GREY)
    svg.dot(416, 338, 5, BLUE)
    svg.text(428, 342, "line released", size=12.5, colour=GREY)
    svg.dot(540, 338, 5, "#ffffff", "#8a8a86")
    svg.text(552, 342, "no line: fewer than 5 people shared it", size=12.5, colour=GREY)
    svg.lines(20, 372, ["A person with one record per batch has as many lines. Which record is chosen does not depend on its values.",
                        "Keys: privacy.max_lines_per_subject = 1, privacy.static_window = \"30d\", privacy.max_delay (30 days by default)."], size=12.5, step=20)
    svg.save(out / "release-log.svg")


PERCENT = FuncFormatter(lambda value, _: f"{value:.0%}".replace("%", " %"))


def plots():
    plt.rcParams.update({
        "font.family": "DejaVu Sans", "font.size": 12.5, "axes.titlesize": 13.5, "axes.labelsize": 13, "legend.fontsize": 12.5,
        "xtick.labelsize": 12, "ytick.labelsize": 12, "svg.hashsalt": "throng", "svg.fonttype": "none", "axes.spines.top": False,
        "axes.spines.right": False, "axes.edgecolor": GREY, "axes.grid": True, "grid.color": "#e6e6e2", "axes.axisbelow": True,
        "text.color": INK, "axes.labelcolor": INK, "figure.facecolor": "white",
    })


def save(figure, path):
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    plt.close(figure)


def privacy_utility(out):
    table = pd.read_csv(HERE / "privacy-utility.csv")
    panels = [("wearable", "Generated wearables: 1,000 people", "20,000 records, batches of 1,000"), ("fitbit", "Fitbit: 33 people", "22,099 hours, by time, batches of 300"),
              ("lifesnaps", "LifeSnaps: 71 people", "7,410 days, by date, batches of 300"),
              ("lifesnaps-by-person", "LifeSnaps, one person after the other", "batches of 1,000: about ten people each")]
    colours, marks = {5: RED, 10: BLUE, 20: GREEN}, {1: "o", 5: "s", 0: "^"}
    figure, axes = plt.subplots(2, 2, figsize=(800 / 72, 720 / 72), sharex=True, sharey=True)
    for axis, (name, title, below) in zip(axes.flat, panels):
        for k, colour in colours.items():
            rows = table[(table["data"] == name) & (table["k"] == k)]
            axis.axhline(1 / k, color=colour, linestyle=(0, (5, 4)), linewidth=1)
            axis.plot(rows["represented"], rows["right"], color=colour, linewidth=1.6)
            for row in rows.itertuples():
                axis.errorbar(row.represented, row.right, [[row.right - row.low], [row.high - row.right]], color=colour, linewidth=0.8,
                              marker=marks[row.max_lines_per_subject], markersize=8, markeredgecolor="white")
        axis.set_title(f"{title}", loc="left", fontweight="bold", pad=22)
        axis.text(0, 1.025, below, transform=axis.transAxes, fontsize=12, color=GREY)
        axis.xaxis.set_major_formatter(PERCENT)
        axis.yaxis.set_major_formatter(PERCENT)
        axis.set_xlim(-0.03, 1.05)
        axis.set_ylim(0, 0.235)
        axis.tick_params(labelbottom=True)
    for k, colour in colours.items():
        axes[0, 0].text(0.01, 1 / k + 0.003, f"promise for k = {k}: 1/{k}", color=colour, fontsize=12)
    figure.supxlabel("records with something released (right: more useful)", y=0.115, fontsize=13)
    figure.supylabel("lines that an attacker assigns to the right person (down: safer)", x=0.012, fontsize=13)
    handles = [Line2D([], [], color=colour, linewidth=2.5, label=f"k = {k}") for k, colour in colours.items()]
    handles += [Line2D([], [], color=GREY, linestyle="", marker=mark, markersize=8, label=label) for mark, label in
                (("o", "1 line per person and batch"), ("s", "5 lines"), ("^", "no limit"))]
    figure.legend(handles=handles, loc="lower center", ncol=6, frameon=False, bbox_to_anchor=(0.5, 0.062), columnspacing=1.2, handletextpad=0.5)
    figure.text(0.02, 0.02, "Linkage attack: the attacker knows every attribute of a person and the batch. Bars: 95 % interval. The promise of\n"
                "1/k holds for one line per person and batch (circles). With more lines nothing is promised, and a yield can be above 1/k.", fontsize=12, color=GREY)
    figure.subplots_adjust(left=0.09, right=0.985, top=0.93, bottom=0.18, hspace=0.36, wspace=0.1)
    save(figure, out / "privacy-utility.svg")


def attacks(out):
    table = pd.read_csv(HERE / "attacks.csv")
    linkage = table[table["attack"] == "linkage"]
    presence = table[table["attack"] == "presence"]
    worst = presence.loc[(presence["low"] - presence["chance"]).idxmax()]
    highest = presence.loc[presence["right"].idxmax()]
    one = lambda name, word="": table[(table["attack"] == name) & table["given"].str.contains(word, regex=False)].iloc[0]
    group = lambda row: row["given"].split()[-1]
    rows = [
        (f"Linkage, attacker knows 4 values", linkage[linkage["given"].str.startswith("4 ")].iloc[0]),
        (f"Linkage, all {linkage.iloc[-1]['given'].split()[0]} values", linkage.iloc[-1]),
        ("Arrival: class and batch known", one("arrival")),
        ("Exclusion: who would be finer", one("exclusion")),
        ("Joining fragments by order", one("joining by order")),
        ("Joining fragments by time", one("joining by time")),
        ("Joining fragments by values", one("joining by values")),
        ("Joining by counts over batches", one("joining by covariance")),
        ("All lines of one person (4 moments)", one("sequences", "all their lines")),
        (f"Presence: group “{group(worst)}”", worst),
        (f"Presence: group “{group(highest)}”", highest),
        ("Attendance: who sent when", one("attendance")),
        ("Downcoding: finer than printed", one("downcoding")),
        ("Constants from several releases", one("composition", "2 to 8")),
        ("If lines of a person were linked", one("sequences", "if lines were linked")),
    ]
    promised = [row for row in rows if row[1]["judged"] != "open"]
    figure, axis = plt.subplots(figsize=(800 / 72, 580 / 72))
    y, ticks = 0, []
    for number, (label, row) in enumerate(rows):
        if number == len(promised):
            y += 1.1
            axis.text(0.0, y - 0.35, "measured, nothing promised", color=RED, fontsize=12.5, fontweight="bold", va="bottom")
        open_ = row["judged"] == "open"
        colour = RED if open_ else BLUE
        axis.barh(y, row["right"], color=colour, alpha=0.35 if open_ else 0.55, height=0.62)
        axis.plot([row["low"], row["high"]], [y, y], color=colour, linewidth=2)
        axis.plot([row["chance"]] * 2, [y - 0.4, y + 0.4], color=INK, linewidth=2.4)
        if not open_:
            limit = row["promised"]
            if row["judged"] == "mean_or_chance":  # 1.5 × chance, at most half of the way from chance to 1
                limit = max(limit, min(1.5 * row["chance"], (1 + row["chance"]) / 2))
            axis.plot([limit] * 2, [y - 0.46, y + 0.46], color=GREEN, linewidth=2.2, linestyle=(0, (2, 1)))
        value = "< 0.1 %" if row["right"] < 0.001 else f"{100 * row['right']:.1f} %"
        axis.text(1.015, y, value, va="center", ha="left", fontsize=12.5, color=colour, transform=axis.get_yaxis_transform())
        ticks.append((y, label))
        y += 1
    axis.text(0.0, -0.75, "promised", color=BLUE, fontsize=12.5, fontweight="bold", va="bottom")
    axis.text(1.015, -0.75, "right", fontsize=12.5, color=GREY, transform=axis.get_yaxis_transform())
    axis.set_yticks([tick for tick, _ in ticks], [label for _, label in ticks])
    axis.set_ylim(y - 0.4, -1.5)
    axis.set_xlim(0, 1)
    axis.xaxis.set_major_formatter(PERCENT)
    axis.grid(axis="y", visible=False)
    axis.set_xlabel("how often the attacker is right")
    handles = [Line2D([], [], color=BLUE, alpha=0.6, linewidth=9, label="attack (line: 95 % interval)"), Line2D([], [], color=INK, linewidth=2.4, label="by chance"),
               Line2D([], [], color=GREEN, linewidth=2.2, linestyle=(0, (2, 1)), label="promised limit (1/k or 1.5 × chance)")]
    figure.legend(handles=handles, loc="lower center", ncol=3, frameon=False, bbox_to_anchor=(0.5, 0.045))
    figure.text(0.02, 0.018, "20,000 generated records of 1,000 people, 11 groups, k = 5, one line per person and batch. Up to the black mark: guessing.", fontsize=12, color=GREY)
    figure.subplots_adjust(left=0.335, right=0.91, top=0.985, bottom=0.175)
    save(figure, out / "attacks.svg")


def batch_size(out):
    table = pd.read_csv(HERE / "batch-size.csv")
    sets = [("wearable-10000", "generated, 10,000 people", 10000, BLUE, "o"), ("wearable", "generated, 1,000 people", 1000, SKY, "s"),
            ("lifesnaps", "LifeSnaps, 71 people", 71, RED, "^"), ("fitbit", "Fitbit, 33 people", 33, PURPLE, "D")]
    figure, axes = plt.subplots(2, 1, figsize=(800 / 72, 620 / 72), sharex=True)
    for axis, column in zip(axes, ("loss", "represented")):
        for name, label, people, colour, mark in sets:
            rows = table[table["data"] == name]
            axis.plot(rows["max_records"], rows[column], color=colour, marker=mark, markersize=7, linewidth=1.8, label=label)
            axis.axvline(people, color=colour, linewidth=1.2, linestyle=(0, (2, 3)))
        axis.set_xscale("log")
        axis.set_xlim(30, 12500)
        axis.yaxis.set_major_formatter(PERCENT)
        axis.set_ylim(0, 0.33 if column == "loss" else 1.04)
        axis.tick_params(labelbottom=True)
    axes[0].set_title("Detail lost in the released lines (down: better)", loc="left", fontweight="bold")
    axes[1].set_title("Records with something released (up: better)", loc="left", fontweight="bold")
    axes[1].set_xticks([50, 100, 250, 500, 1000, 2500, 5000, 10000], ["50", "100", "250", "500", "1,000", "2,500", "5,000", "10,000"])
    axes[1].minorticks_off()
    axes[1].set_xlabel("records of a batch (batch.max_records)")
    handles, labels = axes[0].get_legend_handles_labels()
    handles.append(Line2D([], [], color=GREY, linewidth=1, linestyle=(0, (2, 3))))
    figure.legend(handles, labels + ["as many records as people"], loc="lower center", ncol=3, frameon=False, bbox_to_anchor=(0.5, 0.075), columnspacing=1.5)
    figure.text(0.02, 0.022, "k = 5, one line per person, batch and group. Larger batches lose less detail while they bring more people. Beyond that, little\n"
                "is gained: more records are thinned, and the loss can rise, since the few lines of a batch cover a longer time.", fontsize=12, color=GREY)
    figure.subplots_adjust(left=0.075, right=0.985, top=0.955, bottom=0.235, hspace=0.3)
    save(figure, out / "batch-size.svg")


def threat_map(out):
    columns = [("Singling out", "find one person's record"), ("Linkability", "tell that two lines are of one person"), ("Inference", "learn a value of a person")]
    rows = [
        ("always", GREEN, "#eaf6f1", [
            ["many records of one person (1)", "patterns of missing values (4)", "keys, headers, partitions (5)", "logs, errors, dead letters (6)", "labels of metrics (7)",
             "striking people out (11)", "small batches, shutdown (14)", "tombstones, late events (16)", "digits, units, dates (19)", "unknown attributes (21)",
             "seeing a batch arrive (24)", "spellings of one name (29)", "audit records and files (31, 34)", "tables of several files (40)",
             "one sender who floods (41)"],
            ["joining by order, time, key, counts (2)", "tokens of a person (3)", "reversing hashes (13)", "replay, uncommitted data (15)", "several instances (17)", "sequences of records (20)",
             "late broker requests (30)"],
            ["choice of class by the value, without a model (10)", "inferences on the operator's pages (22)", "rare sensitive cells in one batch (26)", "figures of pages: rounded (28)"]]),
        ("by default", BLUE, "#e8f2f9", [
            [],
            ["constant values: once in 30 days (25)", "one line per batch and group (25)"],
            ["solving for a constant over many batches (25)"]]),
        ("when configured", "#8a6100", "#fdf5e0", [
            ["state on disk: a secret file (8)", "counterfeit lines (18)", "invented people: colluders (27)", "erasing a person (32, 33, 37)", "endless values: memory limit (36)"],
            ["constants apart from changing values: own groups (25)"],
            ["same value in a whole class: a model (9)", "differences of statistics: series (42)"]]),
        ("not covered", RED, "#fcece3", [
            ["lines below their printed cells: downcoding (11)", "more invented people than configured (27, 41)"],
            ["several releases, other data sets (12)", "unions of values no hierarchy names (2)", "groups that mix constant and changing values (25)"],
            ["same value in a class, no model (9)", "choice of class, with a model (10)", "who sends when and hides, over many batches (26)", "presence, by who may send for another (28)",
             "values that change in a series (42)"]]),
    ]
    seen = {int(number) for _, _, _, cells in rows for cell in cells for leak in cell for number in leak[leak.rindex("(") + 1:-1].split(",")}
    assert seen == set(range(1, 43)) - {23, 35, 38, 39}, sorted(seen)
    font = ImageFont.truetype(str(Path(matplotlib.get_data_path()) / "fonts/ttf/DejaVuSans.ttf"), 12)

    def wrap(text, width):
        lines, at = [""], text.rindex("(")
        for word in (text[:at - 1] + NO_BREAK + text[at:].replace(" ", NO_BREAK)).split(" "):
            longer = f"{lines[-1]} {word}".strip()
            if font.getlength(longer) > width and lines[-1]:
                lines.append(word)
            else:
                lines[-1] = longer
        return lines

    svg = Svg(800, 100)
    svg.text(20, 26, "Which leaks are covered? By the three criteria of regulators (WP216)", size=15, bold=True)
    left, width = 108, 226
    for number, (title, below) in enumerate(columns):
        x = left + number * (width + 4)
        svg.text(x + 8, 54, title, size=14, bold=True)
        svg.lines(x + 8, 71, [below], size=12, colour=GREY)
    y = 82
    for name, colour, fill, cells in rows:
        texts = [[line for leak in cell for line in [(text, index == 0) for index, text in enumerate(wrap(leak, width - 26))]] for cell in cells]
        height = max(len(cell) for cell in texts) * 16.5 + 14
        svg.rect(16, y, 88, height, fill=fill, edge=colour)
        svg.lines(60, y + height / 2 + (5 if " " not in name else -3), name.split(" "), size=13, anchor="middle", bold=True, colour=colour)
        for number, cell in enumerate(texts):
            x = left + number * (width + 4)
            svg.rect(x, y, width, height, fill=fill, edge=colour, width=0.8)
            for line, (text, first) in enumerate(cell):
                if first:
                    svg.dot(x + 10, y + 16 + line * 16.5, 2, colour)
                svg.text(x + 18, y + 20 + line * 16.5, text, size=12)
            if not cell:
                svg.text(x + 18, y + 20, "–", size=12, colour=GREY)
        y += height + 5
    svg.text(16, y + 16, "Numbers: rows of threats.md, which name the tests. A row that is covered in part is in several cells.", size=12, colour=GREY)
    svg.size = (800, int(y + 28))
    svg.save(out / "threat-map.svg")


def trust_boundary(out):
    svg = Svg(800, 700)
    svg.text(20, 26, "Who can see what", size=15, bold=True)
    x = 20
    kinds = [("identifier", "raw personal data", 152), ("subject", "secret", 80), ("time", "sealed with the secret", 178),
             ("released", "released: at least k people share it", 266), ("grey", "figures", 70)]
    for tint, words, width in kinds:
        svg.rect(x, 38, 14, 14, tint, radius=2)
        svg.text(x + 20, 50, words, size=12.5, colour=GREY)
        x += width
    # brokers
    svg.rect(20, 70, 300, 494, "white", fill=LIGHT)
    svg.text(34, 92, "Kafka brokers (TLS, login)", size=14, bold=True)
    topics = [("source topic", "Read", "identifier", "raw records"), ("erasure topic", "Read", "identifier", "nobody else may read"),
              ("output topics", "Write", "released", "lines and series"), ("dead letters", "Write", "grey", "place and reason, no values"),
              ("changelog", "Read, Write", "time", "nobody else may read"), ("contributions", "Read, Write", "time", "nobody else may write"),
              ("audit topic", "Write", "grey", "counts for auditors")]
    places = {}
    for number, (name, right, tint, words) in enumerate(topics):
        y = 104 + number * 64
        svg.rect(32, y, 276, 54, tint)
        svg.text(44, y + 22, name, size=13, bold=True)
        svg.text(44, y + 42, words, size=12, colour=GREY)
        svg.text(298, y + 22, right, size=12, anchor="end", colour=INK)
        places[name] = y + 27
    # throng
    svg.rect(404, 70, 180, 494, "white", fill="#fffdf8", edge=INK, width=2, dash="7 4")
    svg.text(416, 92, "trust boundary", size=12.5, colour=GREY)
    svg.rect(416, 104, 156, 118, "identifier")
    svg.text(494, 130, "throng", size=16, bold=True, anchor="middle")
    svg.lines(494, 152, ["raw values in memory,", "on disk only sealed;", "recounts each batch", "before it is released"], size=12, anchor="middle", step=17)
    boxes = [(236, "secret file", ["for the owner only;", "key of all digests"], "subject", None), (312, "state volume", ["sealed with the secret"], "time", None),
             (370, "lineage file", ["joins fragments again;", "only if asked for, and", "only beside output files"], "identifier", RED), (480, "status, metrics", ["no values; rounded;", "a token if set"], "grey", None)]
    for y, name, words, tint, edge in boxes:
        height = 28 + 16 * len(words)
        svg.rect(416, y, 156, height, tint, width=3 if edge else 1.2, edge=edge, fill="#f7c3a6" if edge else None)
        svg.text(426, y + 19, name, size=13, bold=True, colour="#8f3200" if edge else INK)
        svg.lines(426, y + 36, words, size=12, step=16)
    for name, colour, way in (("source topic", RED, "in"), ("erasure topic", RED, "in"), ("output topics", GREEN, "out"), ("dead letters", GREY, "out"),
                              ("changelog", BLUE, "both"), ("contributions", BLUE, "both"), ("audit topic", GREY, "out")):
        y = places[name]
        if way == "in":
            svg.line(310, y, 402, y, colour=colour, width=2, arrow=True)
        elif way == "out":
            svg.line(402, y, 310, y, colour=colour, width=2, arrow=True)
        else:
            svg.line(310, y, 402, y, colour=colour, width=2, both=True)
    # who is outside
    outside = [(104, "Producers", ["send raw records"], "identifier"), (236, "Consumers", ["read only the output;", "isolation.level =", "read_committed"], "released"),
               (370, "Custodian", ["has the secret and", "the raw data; may use", "the lineage file"], "identifier"), (480, "Prometheus", ["reads figures", "with a token"], "grey")]
    for y, name, words, tint in outside:
        height = 28 + 16 * len(words)
        svg.rect(634, y, 150, height, tint)
        svg.text(644, y + 19, name, size=13, bold=True)
        svg.lines(644, y + 36, words, size=12, step=16)
    svg.line(632, 515, 574, 515, colour=GREY, width=2, arrow=True)
    svg.line(632, 408, 574, 408, colour=RED, width=2, arrow=True)
    svg.text(604, 508, "asks", size=12, anchor="middle", colour=GREY)
    svg.lines(634, 168, ["to the source topic only", "(Write)"], size=12, colour=GREY, step=16)
    svg.lines(634, 332, ["on the output topics only", "(Read)"], size=12, colour=GREY, step=16)
    svg.line(20, 580, 784, 580, colour=LINE, width=1)
    svg.lines(20, 602, ["Rights on the left are those of throng. It needs no others: none on the cluster, none to create topics. Besides these it reads its",
                        "consumer group and the topics of [[join]], and writes transactions with ids that begin with the name of the group.",
                        "A consumer that also reads uncommitted data sees lines of batches that were aborted: use read_committed.",
                        "Whoever has the source topic or the lineage file can undo the release.",
                        "Whoever has the secret and the state volume can read what waits there."], size=12, step=20, colour=INK)
    svg.save(out / "trust-boundary.svg")


def dashboard(out):
    source = HERE / "status-page.png"
    if not source.exists():
        return print("no status-page.png: dashboard.png is left out", file=sys.stderr)
    page = Image.open(source).convert("RGB")
    parts = [(0, 1290), (2290, 4180)]  # header and the first series; risk, account and flow
    gap, scale = 40, page.width / 800
    notes = [
        ((1090, 78), "ready: batches are committed. Else the page says why not."),
        ((1215, 203), "Warning: fewer records are represented than release.min_represented asks for."),
        ((1120, 370), "People who are part of published series. Grows after the warm-up."),
        ((1120, 515), "Rows withheld since too few people were present: normal."),
        ((560, 1030), "Published means. Thick: all cohorts. Thin: single cohorts. Band: spread between people."),
        ((430, 2448), "Highest risk before → after. After must not exceed 1/k (20 % for k = 5)."),
        ((330, 2928), "Records in a class below k after the release. Must be 0 %."),
        ((1190, 3437), "Every record has one outcome. Grey (suppressed) is mostly thinned: other lines"
                       "\nof the same people stand for these records. This is normal."),
        ((1190, 3480), "Dead-lettered: could not be read. Should be 0, else look at the reasons."),
        ((470, 3800), "Records per second in and out. Out is lower: records are thinned."),
    ]
    size = round(12.5 * scale)
    fonts = Path(matplotlib.get_data_path()) / "fonts/ttf"
    plain, bold = ImageFont.truetype(str(fonts / "DejaVuSans.ttf"), size), ImageFont.truetype(str(fonts / "DejaVuSans-Bold.ttf"), size)
    legend = sum(44 if "\n" not in text else 72 for _, text in notes) + 50
    height = sum(end - start for start, end in parts) + gap
    picture = Image.new("RGB", (page.width, height + legend), "#ffffff")
    tops, y = [], 0
    for start, end in parts:
        picture.paste(page.crop((0, start, page.width, end)), (0, y))
        tops.append((start, end, y))
        y += end - start + gap
    pen = ImageDraw.Draw(picture)
    first = parts[0][1]
    pen.rectangle((0, first, page.width, first + gap), fill="#ffffff")
    pen.text((page.width / 2, first + gap / 2), "…  (six more charts)  …", font=plain, fill="#5f6368", anchor="mm")

    def badge(x, y, number):
        pen.ellipse((x - 21, y - 21, x + 21, y + 21), fill="#0072b2", outline="#ffffff", width=3)
        pen.text((x, y), str(number), font=bold, fill="#ffffff", anchor="mm")

    y = height + 40
    for number, ((x, at), text) in enumerate(notes, 1):
        start, _, top = next(part for part in tops if part[0] <= at < part[1])
        badge(x, at - start + top, number)
        badge(50, y + 4, number)
        pen.multiline_text((90, y - 10), text, font=plain, fill="#222222", spacing=8)
        y += 72 if "\n" in text else 44
    picture.quantize(128, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(out / "dashboard.png", optimize=True)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: draw.py OUT")
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    plots()
    for draw in (record_way, before_after, batch_crowd, release_log, privacy_utility, attacks, batch_size, threat_map, trust_boundary, dashboard):
        draw(out)


main()
