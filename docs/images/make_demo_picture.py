#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the picture of README.md from the PNG files that `cleave demo` and four commands write.

usage: make_demo_picture.py FOLDER [PICTURE.png]

FOLDER is what `cleave demo -o FOLDER` filled. These commands, run in it, add the files of the second row:

    cleave paco paco-cube.npy paco-angles.npy paco-psf.npy -o planets --contrast
    cleave specfit specfit-coadd.fits --library specfit-library -o stars.csv --plot plots
    cleave blobs blobs-movie.npy --threshold-sigma 6 --link 4 -o spots.csv -T tracks.csv
    cleave tracks tracks.csv --pixel-size 0.1um --interval 0.05 -o motion.csv --plot msd.png

The picture goes to demo.png beside this script unless another name is given. Needs Pillow and, for the captions, the
font DejaVu Sans (Debian: python3-pil, fonts-dejavu-core). Look at the picture at a width of 800 pixels before you
commit it.
"""
import glob
import os
import sys

from PIL import Image, ImageDraw, ImageFont

# The picture has twice the size at which README shows it (800 pixels wide), so that it stays sharp on
# screens with small pixels.
PANEL, GAP, CAPTION, TEXT = 512, 32, 96, 31
PLOT = 328  # height of a panel of the second row
STAR = 3  # the star whose fit is shown
COLOURS = 256  # of the palette: the noise in the panels would not compress otherwise
WHITE = (255, 255, 255)
MARGIN = 8  # white pixels beside a map, at least


def plot_area(picture):
    """The map of one of PACO's pictures, without its title and its colour bar.

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
    """A square part of a picture; the numbers are shares of its width."""
    width = picture.size[0]
    box = (left * width, top * width, (left + side) * width, (top + side) * width)
    return picture.crop(tuple(round(edge) for edge in box))


def corner(picture):
    """The upper left part of a plot of a star, in the shape of the other plots."""
    top, height = picture.size[1] // 26, picture.size[1] * 9 // 20
    return picture.crop((0, top, height * PANEL // PLOT, top + height))


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
    font = ImageFont.truetype("DejaVuSans.ttf", TEXT)
    width = len(panels) * PANEL + (len(panels) - 1) * GAP
    picture = Image.new("RGB", (width, PANEL + 2 * CAPTION + GAP + PLOT), WHITE)
    draw = ImageDraw.Draw(picture)
    for row, top, height in ((panels, 0, PANEL), (plots, PANEL + CAPTION + GAP, PLOT)):
        for i, (panel, caption) in enumerate(row):
            left = i * (PANEL + GAP)
            picture.paste(panel.resize((PANEL, height), Image.LANCZOS), (left, top))
            draw.multiline_text((left, top + height + 12), caption, fill=(0, 0, 0), font=font, spacing=8)
    picture.quantize(COLOURS, method=Image.MAXCOVERAGE, dither=Image.NONE).save(out, optimize=True)
    print("%s: %d x %d, %.0f kB" % (out, *picture.size, os.path.getsize(out) / 1000))


if __name__ == "__main__":
    main()
