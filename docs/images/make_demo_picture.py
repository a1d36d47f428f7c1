#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the picture of README.md from files that `cleave demo`, seven commands and a test program write.

usage: make_demo_picture.py FOLDER [PICTURE.png]

FOLDER is what `cleave demo -o FOLDER` filled. These commands, run in it, add the files of the second row:

    cleave paco paco-cube.npy paco-angles.npy paco-psf.npy -o planets --contrast
    cleave specfit specfit-coadd.fits --library specfit-library -o stars.csv --plot plots
    cleave blobs blobs-movie.npy --threshold-sigma 6 --link 4 -o spots.csv -T tracks.csv
    cleave tracks tracks.csv --pixel-size 0.1um --interval 0.05 -o motion.csv --plot msd.png

The third row needs a question in question.txt, some sentences in passages.txt, and the output of these commands:

    cleave embed all-MiniLM-L6-v2 -i passages.txt -o passages.npy
    cleave search passages.npy --model all-MiniLM-L6-v2 -i question.txt --passages passages.txt --top 5 -o search.tsv
    cleave generate SmolLM2-135M-Instruct.gguf --chat --prompt "Why is the sky blue?" --max-tokens 60 > answer.txt
    build/bin/test_many_ranks table > ranks.txt

The picture goes to demo.png beside this script unless another name is given. Needs Pillow and, for the captions, the
font DejaVu Sans (Debian: python3-pil, fonts-dejavu-core). Look at the picture at a width of 800 pixels before you
commit it.
"""
import csv
import glob
import math
import os
import sys
import textwrap

from PIL import Image, ImageDraw, ImageFont

# The picture has twice the size at which README shows it (800 pixels wide), so that it stays sharp on
# screens with small pixels.
PANEL, GAP, CAPTION, TEXT = 512, 32, 96, 31
PLOT = 328  # height of a panel of the second row
STAR = 3  # the star whose fit is shown
COLOURS = 256  # number of colours: with more, the noise in the panels would not compress
WHITE = (255, 255, 255)
MARGIN = 8  # least number of white pixels beside a map
BLACK, GREY, BLUE = (0, 0, 0), (110, 110, 110), (31, 100, 180)


def plot_area(picture):
    """Returns the map in one of PACO's pictures, without title and colour bar. On the way through the middle of the
    picture, from left to right and from top to bottom, the map is the first thing that is not white, and a broad white
    margin ends it. So it is found wherever the margins are. Circles and numbers in the map are white, too, but thin.

    The map is the first thing that is not white on the way through the middle of the picture, from
    left to right and from top to bottom, and a broad white margin ends it; so it is found wherever
    the margins are. Circles and numbers in the map are white too, but thin.
    """
    def extent(length, pixel):
        white = [pixel(i) == WHITE for i in range(length)] + [True] * MARGIN
        first = white.index(False)
        last = next(i for i in range(first, length + 1) if all(white[i:i + MARGIN]))
        return first, last

    width, height = picture.size
    left, right = extent(width, lambda x: picture.getpixel((x, height // 2)))
    middle = (left + right) // 2
    top, bottom = extent(height, lambda y: picture.getpixel((middle, y)))
    if right - left < width // 2 or bottom - top < height // 2:
        sys.exit("no map was found in the picture: did its layout change?")
    return picture.crop((left, top, right, bottom))


def open_rgb(folder, name):
    return Image.open(os.path.join(folder, name)).convert("RGB")


def detail(picture, left, top, side):
    """Returns a square part of a picture; the numbers are fractions of its width."""
    width = picture.size[0]
    box = (left * width, top * width, (left + side) * width, (top + side) * width)
    return picture.crop(tuple(round(edge) for edge in box))


def corner(picture):
    """Returns the upper left part of a plot of a star, in the shape of the other plots."""
    top, height = picture.size[1] // 26, picture.size[1] * 9 // 20
    return picture.crop((0, top, height * PANEL // PLOT, top + height))


def font(size, name="DejaVuSans"):
    return ImageFont.truetype(name + ".ttf", size)


def blank(colour=WHITE):
    picture = Image.new("RGB", (PANEL, PLOT), colour)
    return picture, ImageDraw.Draw(picture)


def search_panel(folder):
    """Draws the question, and the sentences that were found, each on a bar whose length is its similarity."""
    with open(os.path.join(folder, "question.txt"), encoding="utf-8") as file:
        question = file.readline().strip()
    with open(os.path.join(folder, "search.tsv"), encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    picture, draw = blank()
    draw.text((0, 8), question, fill=BLACK, font=font(25, "DejaVuSans-Bold"))
    step = (PLOT - 56) // len(rows)
    for i, row in enumerate(rows):
        top, score = 60 + i * step, float(row["score"])
        draw.rectangle((0, top, max(0.0, score) * PANEL, top + step - 14), fill=(185, 212, 242))
        draw.text((8, top + 6), row["text"], fill=BLACK, font=font(20))
        draw.text((PANEL - 6, top + 6), "%.2f" % score, fill=GREY, font=font(20), anchor="ra")
    return picture


def generate_panel(folder):
    """Draws the question and the beginning of the answer, as on a terminal."""
    with open(os.path.join(folder, "answer.txt"), encoding="utf-8") as file:
        answer = " ".join(file.read().split())
    picture, draw = blank((24, 26, 32))
    draw.text((16, 16), "> Why is the sky blue?", fill=(120, 200, 255), font=font(21, "DejaVuSansMono"))
    lines = textwrap.wrap(answer, 37)[:9]
    draw.multiline_text((16, 54), "\n".join(lines), fill=(225, 225, 225), font=font(21, "DejaVuSansMono"), spacing=6)
    return picture


def ranks_panel(folder):
    """Draws the efficiency of 1,000 ranks over the number of units that each of them gets, for several lengths of
    units."""
    curves = {}
    with open(os.path.join(folder, "ranks.txt"), encoding="utf-8") as file:
        for words in map(str.split, file):
            if words and words[0] == "1000":
                curves.setdefault(float(words[2]), []).append((int(words[1]), float(words[3])))
    picture, draw = blank()
    left, right, top, bottom = 56, PANEL - 92, 34, PLOT - 56
    units = sorted({number for curve in curves.values() for number, _ in curve})

    def place(number, efficiency):
        share = math.log(number / units[0]) / math.log(units[-1] / units[0])
        return left + share * (right - left), bottom - efficiency * (bottom - top)

    draw.text((0, 0), "efficiency of 1,000 ranks", fill=BLACK, font=font(18))
    for efficiency in (0, 0.5, 1):
        y = place(units[0], efficiency)[1]
        draw.line((left, y, right, y), fill=(215, 215, 215), width=2)
        draw.text((left - 8, y), "%g %%" % (100 * efficiency), fill=GREY, font=font(16), anchor="rm")
    for number in units:
        draw.text((place(number, 0)[0], bottom + 8), str(number), fill=GREY, font=font(16), anchor="ma")
    draw.text(((left + right) / 2, PLOT - 26), "units for each rank", fill=GREY, font=font(18), anchor="ma")
    previous = 0
    for i, (length, curve) in enumerate(sorted(curves.items(), reverse=True)):
        points = [place(*point) for point in sorted(curve)]
        colour = tuple(round(a + (b - a) * i / len(curves)) for a, b in zip(BLUE, (200, 60, 30)))
        draw.line(points, fill=colour, width=4, joint="curve")
        for x, y in points:
            draw.ellipse((x - 5, y - 5, x + 5, y + 5), fill=colour)
        label = max(points[-1][1], previous + 22)  # curves may end close to each other
        draw.text((right + 12, label), "%g ms" % length, fill=colour, font=font(18), anchor="lm")
        previous = label
    return picture


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__.strip())
    folder = sys.argv[1]
    out = sys.argv[2] if len(sys.argv) == 3 else os.path.join(os.path.dirname(__file__), "demo.png")
    panels = [
        (plot_area(open_rgb(folder, "paco-frame.png")),
         "A frame of a telescope movie:\nthree planets in the starlight"),
        (detail(plot_area(open_rgb(folder, "paco-snr.png")), 0.05, 0.05, 0.9),
         "cleave paco on all 40 frames:\nthe planets, at S/N 6 to 9"),
        (detail(open_rgb(folder, "blobs-tracks.png"), 0.58, 0.32, 0.42),
         "cleave blobs: the spots in a\nmicroscope movie, and tracks"),
    ]
    plots = [
        (open_rgb(folder, "planets/contrast.png"), "--contrast: the flux at which\nhalf of the planets are found"),
        (corner(open_rgb(folder, sorted(glob.glob(os.path.join(folder, "plots", "*row*.png")))[STAR])),
         "cleave specfit: the spectrum of\na star, and its best fit"),
        (open_rgb(folder, "msd.png"), "cleave tracks: how particles\ndiffuse (mean squared distance)"),
    ]
    texts = [
        (search_panel(folder), "cleave search: sentences that\nanswer a question best"),
        (generate_panel(folder), "cleave generate: a small model\nanswers (135 million weights)"),
        (ranks_panel(folder), "Clusters: simulated ranks share\nunits of 0.5 to 200 ms"),
    ]
    width = len(panels) * PANEL + (len(panels) - 1) * GAP
    second = PANEL + CAPTION + GAP
    third = second + PLOT + CAPTION + GAP
    picture = Image.new("RGB", (width, third + PLOT + CAPTION), WHITE)
    draw = ImageDraw.Draw(picture)
    for row, top, height in ((panels, 0, PANEL), (plots, second, PLOT), (texts, third, PLOT)):
        for i, (panel, caption) in enumerate(row):
            left = i * (PANEL + GAP)
            picture.paste(panel.resize((PANEL, height), Image.LANCZOS), (left, top))
            draw.multiline_text((left, top + height + 12), caption, fill=BLACK, font=font(TEXT), spacing=8)
    picture.quantize(COLOURS, method=Image.MAXCOVERAGE, kmeans=3, dither=Image.NONE).save(out, optimize=True)
    print("%s: %d x %d, %.0f kB" % (out, *picture.size, os.path.getsize(out) / 1000))


if __name__ == "__main__":
    main()
