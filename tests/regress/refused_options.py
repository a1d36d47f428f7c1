#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that every command refuses wrong values of its options and options that contradict each other: exit code 2, one
line that names the option, its value and what is accepted, and no new file.

Every option that `--help` lists has a kind here, which gives the values that are refused; an option without a kind
fails the test. ROWS has the values that one command refuses. Formerly `--pixel-size 1,2` was taken for a size in the
unit ",2", `paco --threshold 0` worked until it had subtracted every peak of the noise, `--gpu_devices nan` and `link
--channel-bin -1` were ignored, and some messages named fields of the library instead of options.

usage: refused_options.py CLEAVE CLI_TESTS DATA    CLI_TESTS: tests/cli, DATA: tests/data"""
import itertools
import os
import re
import subprocess
import sys

import kit

sys.path.insert(0, sys.argv[2])
import text_embed  # noqa: E402

WHOLE = "", "-1", "nan", "1.5", "1e3", "99999999999999999999", "0x10", " 1"
SIGNED = "", "nan", "1.5", "99999999999999999999"
NUMBER = "", "nan", "inf", "-inf", "1e999", "1,5", "one", "1 2"
TEXT = "",
PARTS = {WHOLE: "but it must be a whole number, 0 or more", SIGNED: "but it must be a whole number",
         NUMBER: "but it must be a number", TEXT: "but it must be a text that is not empty"}
KINDS = {
    WHOLE: "adaptive-group batch-size batch-tokens block-tokens check checkpoint contrast-injections "
           "context devices-per-rank epochs exclude-border freeze gpu_batch_size lags logits-top lookup max-length "
           "max-tokens memory min-length npoly num-sigma patch-area preview radius repeat-last repeats "
           "rescore save-every seed smooth starts sub-devices threads top top-k turns",
    SIGNED: "minexpid maxexpid",
    NUMBER: "adaptive-step adaptive-stop branches budget channel-bin clip exposure fwhm interval link lr margin "
            "max-displacement max-extent max-sigma max-vel max-vsini min-displacement min-extent min-p min-sigma "
            "min-vel minsn model-power momentum overlap patience pixel-scale position-error reject repeat-penalty "
            "resolving-power scale search sigma sigma-ratio star-flux star-ratio star-temperature temperature "
            "threshold threshold-rel threshold-sigma top-p true-north vel-step warmup weight-decay",
    TEXT: "angle-column arm axes barycentric batch center coadd codes columns compare config contrast-radii data "
          "device drift fix frames gpu_devices html histogram ids ignore input json library markdown mem-limit "
          "mode model models modes msd only output overlay particle passages peers-env pixel-size plot positions "
          "prior priors prompt-file queries raw record redshifts registered reject-frames report sched select "
          "shard simulate sizes scenario save stage-drift summary system targets targets-file template test "
          "tokens-out trace track-msd tracks val voxel-size wave wavelengths",
}
# values that are texts of any kind, or that ROWS has
OTHERS = "at bench icd channel column field peers prompt query spectrum stop timeout z".split()
TWO = {("templates", "arm"): "but it must be NAME=FROM:TO:STEP", ("blobs", "axes"): "but it must be auto, TYX, ZYX or"}


def kind_of(option):
    for kind, names in KINDS.items():
        if option in names.split():
            return kind
    return None


def options_of(name):
    """Returns (option, value) of the options of a command that take a value, as its help shows them."""
    text = kit.run(name, "--help").stdout.decode().split("\nOptions:\n")[1]
    return re.findall(r"^  (?:-\w, )?--([\w-]+)=(\S+)", text, re.M)


def names():
    return sorted(os.path.join(place, name) for place, folders, files in os.walk(".") if "kept" not in place
                  for name in folders + files if name != "kept")


def expect(part, *arguments):
    before = names()
    try:
        kit.expect(2, part, *arguments, timeout=20)
    except subprocess.TimeoutExpired:
        kit.wrong("%s: not refused within 20 s" % " ".join(arguments))
    if names() != before:
        kit.wrong("%s: files stayed: %s" % (" ".join(arguments), set(names()) - set(before)))


def words_of(value):
    words = value.split(",")
    return "%s or %s" % (", ".join(words[:-1]), words[-1])


def every_option(lines):
    """Gives each option one wrong value of its kind, each time the next one; an option that several commands describe
    alike is tried with one of them."""
    tried = set()
    turns = {kind: itertools.cycle(kind) for kind in KINDS}
    wrong_words = itertools.cycle(("no-such-word", "", "1", "%s"))
    for name in kit.commands():
        for option, value in options_of(name):
            kind = kind_of(option)
            if (option, value) in tried:
                continue
            tried.add((option, value))
            if re.fullmatch(r"[a-z0-9+-]+(,[a-z0-9+-]+)+", value) and option != "modes":
                given, part = next(wrong_words), "but it must be " + words_of(value)
            elif kind:
                given, part = next(turns[kind]), PARTS[kind]
            elif option in OTHERS:
                continue
            else:
                kit.wrong("%s: --%s has no kind in this test" % (name, option))
                continue
            if (name, option) in TWO:
                part = TWO[name, option]
            expect('--%s is "%s", %s' % (option, given, part), *lines.get(name, [name]), "--%s=%s" % (option, given))


ROWS = {
    "paco": [
        ("--radius is 1, but it must be 2 to 6", "--radius=1"),
        ("--radius is 7, but it must be 2 to 6", "--radius=7"),
        ("--patch-area is 14, but it must be 13, 29, 49, 81 or 113", "--patch-area=14"),
        ("--radius 3 and --patch-area 13 disagree: 13 pixels are a disc of radius 2", "--radius=3", "--patch-area=13"),
        ("--fwhm is 0, but it must be a positive number", "--fwhm=0"),
        ("--fwhm is -1, but it must be a positive number", "--fwhm=-1"),
        ('--center is "3", but it must be two numbers X,Y, auto or middle', "--center=3"),
        ('--center is "3,", but it must be', "--center=3,"),
        ("--center: (99, 3) is outside frames of ", "--center=99,3"),
        ("--center: (3, -1) is outside frames of ", "--center=3,-1"),
        ('--channel is "1", but made/paco-cube.npy has the channels 0 to 0', "--channel=1"),
        ('--channel is "x", but', "--channel=x"),
        ("--threshold is 0, but it must be more than 0 (usual: 5)", "--threshold=0"),
        ("--threshold is -3, but", "--threshold=-3"),
        ('--at is "4", but it must be two numbers X,Y', "--at=4"),
        ('--at is "nan,4", but', "--at=1,2", "--at=nan,4"),
        ('--at is "500,4", which is outside the frames', "--at=500,4"),
        ('--reject-frames is "a", but it must be auto, none, or frames from 0 to 15', "--reject-frames=a"),
        ('--reject-frames is "3-", but', "--reject-frames=3-"),
        ('--reject-frames is "5-3", but', "--reject-frames=5-3"),
        ('--reject-frames is "16", but', "--reject-frames=16"),
        ("only 1 of 16 frames can be used", "--reject-frames=0-14"),
        ("--pixel-scale is 0, but it must be a positive number", "--pixel-scale=0"),
        ("--star-flux is -1, but it must be a positive number", "--star-flux=-1"),
        ("--star-ratio is 0, but it must be a positive number", "--star-ratio=0"),
        ("both give the brightness of the star", "--star-ratio=1", "--star-flux=1"),
        ("--spectrum needs --wavelengths", "--spectrum=flat"),
        ("--star-temperature needs --wavelengths", "--star-temperature=5000"),
        ("--star-temperature is 0, but it must be a positive number of kelvin", "--star-temperature=0",
         "--wavelengths=1,2"),
        ("leave out --channel 0", "--wavelengths=1,2", "--channel=0"),
        ("leave out --no-subtract", "--wavelengths=1,2", "--no-subtract"),
        ("wavelength 0 is -1; expected micrometres", "--wavelengths=-1"),
        ("--wavelengths has 2 values, but the cube has 1 channel", "--wavelengths=1,2"),
        ("nowhere: cannot open", "--wavelengths=nowhere"),
        ("an array has no column 2; give a table", "--angle-column=2"),
        ("--contrast-radii needs --contrast", "--contrast-radii=3"),
        ("--contrast-injections needs --contrast", "--contrast-injections=30"),
        ('--contrast-radii is "3,-1", but it must be up to', "--contrast", "--contrast-radii=3,-1"),
        ('--contrast-radii is "3,x", but', "--contrast", "--contrast-radii=3,x"),
        ("--contrast-injections is 100001, but it must be at most 100000", "--contrast",
         "--contrast-injections=100001"),
        ("leave out --psf-mode fixed", "--contrast", "--psf-mode=fixed"),
        ("leave out --conv vip", "--contrast", "--conv=vip"),
        ('"more" is an unexpected argument', "more"),
    ],
    "blobs": [
        ("--min-sigma is 0 and --max-sigma 3, but they must satisfy 0 < min <= max", "--min-sigma=0"),
        ("--min-sigma is 4 and --max-sigma 3", "--min-sigma=4"),
        ("--max-sigma is 257, but it must be at most 256", "--max-sigma=257"),
        ("--num-sigma is 0, but it must be 1 to 64", "--num-sigma=0"),
        ("--num-sigma is 65, but it must be 1 to 64", "--num-sigma=65"),
        ("--sigma-ratio is only possible with --dog", "--sigma-ratio=2"),
        ("is 1, but it must be", "--dog", "--sigma-ratio=1"),
        ("the threshold is -1, but it must be 0 or more", "--threshold=-1"),
        ("the relative threshold is 2, but it must be 0 to 1", "--threshold-rel=2"),
        ("the threshold is 0 standard deviations of the noise, but it must be more than 0", "--threshold-sigma=0"),
        ("threshold", "--threshold=1", "--threshold-sigma=5"),
        ("--threshold-scope movie and --threshold-sigma cannot be used together", "--threshold-scope=movie",
         "--threshold-sigma=5"),
        ("since a shard does not know the whole movie", "--threshold-scope=movie", "--threshold-rel=0.1",
         "--shard=1/2", "--record=part"),
        ("--overlap is 1.5, but it must be 0 to 1", "--overlap=1.5"),
        ("--overlap is -0.1, but it must be 0 to 1", "--overlap=-0.1"),
        ("--exclude-border is 40, which leaves nothing of 32x32 pixels; it can be at most 15", "--exclude-border=40"),
        ('--frames is "1", but it must be A:B', "--frames=1"),
        ('--frames is "a:2", but', "--frames=a:2"),
        ('--frames is "3:1", but', "--frames=3:1"),
        ("--frames is 9:, but the movie has the frames 0 to 3", "--frames=9:"),
        ('--axes is "TXY", but it must be auto, TYX, ZYX or TZYX', "--axes=TXY"),
        ("--voxel-size is for stacks of planes, but movie.npy has none", "--voxel-size=1,1,1um"),
        ('--voxel-size is "1,1", but it must be the sides along z, y and x', "--axes=ZYX", "--voxel-size=1,1"),
        ('--voxel-size is "1,0,1", but', "--axes=ZYX", "--voxel-size=1,0,1"),
        ('--voxel-size is "1,1,1,1", but', "--axes=ZYX", "--voxel-size=1,1,1,1"),
        ("--voxel-size and --pixel-size both give the size of a pixel", "--axes=ZYX", "--voxel-size=1,1,1um",
         "--pixel-size=1um"),
        ("--z reads one plane of each stack, but --voxel-size is for whole stacks", "--z=0", "--voxel-size=1,1,1um"),
        ("--z reads one plane of each stack, but --axes ZYX reads all of them", "--z=0", "--axes=ZYX"),
        ("--preview is possible for frames only", "--axes=ZYX", "--preview=0"),
        ("--stage-drift is possible for frames only", "--axes=ZYX", "--stage-drift=out/d.csv"),
        ("--frames is 1:, but the file has the stacks 0 to 0", "--axes=ZYX", "--frames=1:"),
        ('--raw is "1,2,u8", but it must be T,H,W,TYPE[,OFFSET]', "--raw=1,2,u8"),
        ('--raw is "4,32,32,u99", but', "--raw=4,32,32,u99"),
        ("movie.npy", "--raw=4000,32,32,u16"),
        ("--link is 0, but it must be more than 0", "--link=0"),
        ("-T needs --link R", "--tracks=out/t.csv"),
        ("--fill-gaps needs --link R", "--fill-gaps"),
        ("--memory is for tracks; add --link R", "--memory=1"),
        ("--predict is for tracks; add --link R", "--predict=drift"),
        ("--min-length is for tracks; add --link R", "--min-length=2"),
        ("--histogram needs --preview N", "--histogram=out/h.png"),
        ("--stage-drift needs the whole movie, but --preview shows one frame", "--preview=0",
         "--stage-drift=out/d.csv"),
        ("--subtract-drift needs the whole movie", "--preview=0", "--subtract-drift"),
        ("--registered needs the whole movie", "--preview=0", "--registered=out/r.npy"),
        ("--preview is frame 4, but the movie has 4 frames, counted from 0", "--preview=4"),
        ('--pixel-size is "1,2", but it must be a size such as 0.1um', "--pixel-size=1,2"),
        ('--pixel-size is "1:2", but', "--pixel-size=1:2"),
        ('--pixel-size is "0um", but', "--pixel-size=0um"),
        ('--pixel-size is "um", but', "--pixel-size=um"),
        ("--pixel-size 2 has no unit, but the names of columns contain it; add one, such as 2um", "--pixel-size=2"),
        ("--interval is 0, but it must be more than 0", "--interval=0"),
        ("--pixel-size cannot be used with --format xy", "--format=xy", "--pixel-size=1um"),
        ("--interval cannot be used with --format xy", "--format=xy", "--interval=1"),
        ("channel", "--channel=3"),
        ("--channel", "--channel=-1"),
        ("--z", "--z=x"),
    ],
    "link": [
        ("--search is 0, but it must be more than 0", "--search=0"),
        ("the search range is 1e+300, but it must be more than 0 (1e-150 to 1e+150)", "--search=1e300"),
        ("--adaptive-stop is -1, but it must be more than 0 and at most --search, which is 4", "--adaptive-stop=-1"),
        ("--adaptive-stop is 5, but", "--adaptive-stop=5"),
        ("--adaptive-step needs --adaptive-stop R", "--adaptive-step=0.5"),
        ("--adaptive-group needs --adaptive-stop R", "--adaptive-group=5"),
        ("--adaptive-step is 1, but it must be more than 0 and less than 1", "--adaptive-stop=1", "--adaptive-step=1"),
        ("--adaptive-group is 0, but it must be 1 or more", "--adaptive-stop=1", "--adaptive-group=0"),
        ("--channel-bin needs --predict channel", "--channel-bin=3"),
        ("--channel-axis needs --predict channel", "--channel-axis=y"),
        ("--predict channel needs --channel-bin B", "--predict=channel"),
        ("--predict channel needs --channel-bin B", "--predict=channel", "--channel-bin=-1"),
        ("--branches is 0, but it must be more than 0", "--branches=0"),
        ("the range is 1e+300, but it must be more than 0 (1e-150 to 1e+150)", "--branches=1e300"),
        ("--pixel-size and --interval are for TrackMate's XML, but -o is out/tracks.csv", "--pixel-size=1um"),
        ("--pixel-size and --interval are for TrackMate's XML, but -o is out/tracks.csv", "--interval=1"),
        ('--pixel-size is "0", but it must be a size such as 0.1um', "-o", "out/t.xml", "--pixel-size=0"),
        ("--interval is 0, but it must be more than 0", "-o", "out/t.xml", "--interval=0"),
        ('--columns is "y", but it must name columns for some of frame, y, x and z', "--columns=y"),
        ('--columns is "y=a,y=b", but', "--columns=y=a,y=b"),
        ('--columns is "q=a", but', "--columns=q=a"),
        ("nothere", "--columns=y=nothere"),
        ("names a column that positions are read from; give another name", "--particle=x"),
        ("nowhere", "--stage-drift=nowhere"),
    ],
    "tracks": [
        ("--lags is 0, but it must be 1 to 1000000", "--lags=0"),
        ("--lags is 1000001, but it must be 1 to 1000000", "--lags=1000001"),
        ("--smooth is 0, but it must be 1 or more frames", "--smooth=0"),
        ("--exposure is 2, but it must be 0 to 1", "--exposure=2"),
        ("--exposure is -1, but it must be 0 to 1", "--exposure=-1"),
        ("--min-extent is -1, but it must be 0 or more", "--min-extent=-1"),
        ("--max-extent is -1, but it must be 0 or more", "--max-extent=-1"),
        ("--min-displacement is -1, but it must be 0 or more", "--min-displacement=-1"),
        ("--max-displacement is -1, but it must be 0 or more", "--max-displacement=-1"),
        ("--position-error is -1, but it must be 0 or more", "--position-error=-1"),
        ("--interval is 0, but it must be more than 0", "--interval=0"),
        ('--pixel-size is "1,2", but it must be a size such as 0.1um', "--pixel-size=1,2"),
        ("--pixel-size 2 has no unit", "--pixel-size=2"),
        ("--voxel-size 1,1,2 has no unit", "--voxel-size=1,1,2"),
        ('--voxel-size is "1,2um", but it must be the sides along z, y and x', "--voxel-size=1,2um"),
        ('--voxel-size is "1,1,1:", but', "--voxel-size=1,1,1:"),
        ("--voxel-size and --pixel-size both give the size of a pixel", "--voxel-size=1,1,1um", "--pixel-size=1um"),
        ('--columns is "particle", but it must name columns for some of frame, y, x, z and particle',
         "--columns=particle"),
        ("--summary is \"out/s.png\", but", "--summary=out/s.png"),
        ("--plot is \"out/s.csv\", but", "--plot=out/s.csv"),
        ("is a file that --msd writes, too", "--msd=out/a.csv", "--drift=out/a.csv"),
        ("is a file that TRACKS.csv reads, and would be overwritten", "--msd=tracks.csv"),
    ],
    "specfit": [
        ("--starts is 0, but it must be 1 to 8", "--starts=0"),
        ("--starts is 9, but it must be 1 to 8", "--starts=9"),
        ("--npoly is 0, but it must be 1 to 15", "--npoly=0"),
        ("--npoly is 16, but it must be 1 to 15", "--npoly=16"),
        ("--reject is 2, but it must be 0 or at least 3", "--reject=2"),
        ("--save-every is 0, but it must be 1 to 512", "--save-every=0"),
        ("--save-every is 513, but it must be 1 to 512", "--save-every=513"),
        ("--resume and --shard cannot be used together", "--resume", "--shard=1/2", "--record=part"),
        ("--resume needs -o FILE", "--resume", "-o", "-"),
        ("--resolving-power is 9, but it is wavelength / FWHM and must be at least 10", "--resolving-power=9"),
        ("--resolving-power is for single spectra", "--resolving-power=1000"),
        ("velocities must be within 10000 km/s of 0", "--max-vel=10001"),
        ("velocities must be within 10000 km/s of 0", "--min-vel=-10001"),
        ("--max-vel is -5, but it must be above the smallest velocity, 5 km/s (the default is the negative",
         "--max-vel=-5"),
        ("--max-vel is 5, but it must be above the smallest velocity, 6 km/s", "--max-vel=5", "--min-vel=6"),
        ("--vel-step is 0, but it must be more than 0, and at most 10000", "--vel-step=0"),
        ("--vel-step is 20000, but it must be more than 0, and at most 10000", "--vel-step=20000"),
        ("--max-vsini is 0, but it must be more than 0, and at most 10000", "--max-vsini=0"),
        ("--max-vsini is 1e+300, but", "--max-vsini=1e300"),
        ('--gpu_devices is "0,x", but it must be the numbers of GPUs, such as 0,1', "--gpu_devices=0,x"),
        ('--gpu_devices is "0,", but', "--gpu_devices=0,"),
        ('--gpu_devices is "-1", but', "--gpu_devices=-1"),
        ('--gpu_devices is "0 1", but', "--gpu_devices=0 1"),
        ('--barycentric is "fast", but it must be a velocity of at most 1000 km/s, or "header"',
         "--barycentric=fast"),
        ('--barycentric is "1001", but', "--barycentric=1001"),
        ("--barycentric is for single spectra", "--barycentric=1"),
        ("--arm is for single spectra", "--arm=b"),
        ('--columns has "wave", but it must be ROLE=NAME,...', "--columns=wave"),
        ('--columns has "wave=", but', "--columns=wave="),
        ('--columns has "colour=a", but', "--columns=flux=f,colour=a"),
        ("--columns: wave is given twice", "--columns=wave=a,wave=b"),
        ('--columns: the column "a" is given for two roles', "--columns=wave=a,flux=a"),
        ('--columns has "%s' % ("flux=" + "x" * 60), "--columns=flux=" + "x" * 80),
        ('--prior is "teff", but it must be values with their standard deviations', "--prior=teff"),
        ('--prior is "teff=5000", but', "--prior=teff=5000"),
        ('--prior is "mass=1:1", but', "--prior=mass=1:1"),
        ("teff", "--prior=teff=5000:-1"),
        ("teff", "--prior=teff=5000:1,teff=5000:1"),
        ('--fix is "vsini", but it must be values such as vsini=0,alpha=0.2', "--fix=vsini"),
        ('--fix is "mass=1", but', "--fix=mass=1"),
        ("vsini", "--fix=vsini=x"),
        ('--ignore is "1", but it must be "none" or ranges', "--ignore=1"),
        ('--ignore is "5:4", but', "--ignore=5:4"),
        ("--ignore has more than", "--ignore=" + ",".join("%d:%d" % (i, i + 1) for i in range(1, 200, 2))),
        ('--targets: "4x" is not a TARGETID', "--targets=1,4x"),
        ('--targets: "99999999999999999999" is not a TARGETID', "--targets=99999999999999999999"),
        ("nowhere", "--targets-file=nowhere"),
        ("nowhere", "--priors=nowhere"),
        ("nowhere", "--config=nowhere"),
        ("nowhere", "--redshifts=nowhere"),
        ("not a library of templates", "--library=out"),
        ("is a file that SPECTRA reads, and would be overwritten", "-o", "made/specfit-coadd.fits"),
    ],
    "templates": [
        ("--sigma is 0, but it must be 0.0001 to 10000", "--sigma=0"),
        ("--resolving-power is 0.5, but it must be 1 to 1e+07", "--resolving-power=0.5"),
        ("--sigma and --resolving-power cannot be used together", "--sigma=1", "--resolving-power=1000"),
        ("--model-power is -1, but it must be 0 to 1e+09", "--model-power=-1"),
        ("--starts is 0, but it must be 1 to 10000", "--starts=0"),
        ("--starts is 10001, but it must be 1 to 10000", "--starts=10001"),
        ("--margin is 0.5, but it must be 1 to 50000", "--margin=0.5"),
        ("--margin is 50001, but it must be 1 to 50000", "--margin=50001"),
        ('--arm is "x", but it must be NAME=FROM:TO:STEP in Angstrom', "--arm=x"),
        ('--arm is "x=2:1:1", but', "--arm=x=2:1:1"),
        ('--arm is "x=1:2:0", but', "--arm=x=1:2:0"),
        ('--arm is "x=1:2", but', "--arm=x=1:2"),
        ('--arm is "x=5000:6000:1:Rx", but', "--arm=x=5000:6000:1:Rx"),
        ('--arm is "x=5000:6000:1:-1", but', "--arm=x=5000:6000:1:-1"),
        ("--arm: the arm green is given twice", kit.ARM),
        ('--select is "teff", but it must be ranges of teff, logg, feh and alpha', "--select=teff"),
        ('--select is "teff=6:5", but', "--select=teff=6:5"),
        ('--select is "mass=1:2", but', "--select=mass=1:2"),
        ("no models that --select selects", "--select=teff=1:2"),
        ("--wave is for a folder of PHOENIX models", "--wave=nowhere"),
    ],
    "embed": [
        ("--max-length is 0, but it must be 2 or more", "--max-length=0"),
        ("max_length is 100000, but it must be 2 to 16, the number of positions of the model", "--max-length=100000"),
        ("--threads is 65, but it must be at most 64", "--threads=65"),
        ("--batch-tokens is 99999999, but it must be at most", "--batch-tokens=99999999"),
        ("--column is 0, but it must be 1 to 100000 or a name", "--column=0"),
        ("--column is 100001, but it must be 1 to 100000 or a name", "--column=100001"),
        ("--column x: plain lines have no header", "--column=x"),
        ("--field is for JSON lines", "--field=x"),
        ("--column is for tables; for JSON lines, choose the texts with --field", "--input-format=jsonl",
         "--column=x"),
        ("texts.txt", "--column=7"),
        ("texts.txt", "--input-format=csv", "--column=x"),
        ("texts.txt", "--input-format=jsonl", "--field=x"),
        ("texts cannot be read from .npy files", "-i", "movie.npy"),
        ("texts.txt is a file that -i reads, and would be overwritten", "--tokens-out=texts.txt"),
    ],
    "search": [
        ("--top is 0, but it must be 1 to 16384", "--top=0"),
        ("--top is 16385, but it must be 1 to 16384", "--top=16385"),
        ("--codes c.npy needs --first-pass int8 or --first-pass binary", "--codes=c.npy"),
        ("--first-pass and --similarity dot cannot be used together", "--first-pass=int8", "--similarity=dot"),
        ("--rescore is 99999, but it must be at most", "--first-pass=int8", "--rescore=99999"),
        # formerly exit code 0 without a record
        ("--shard is not possible with --first-pass", "--first-pass=int8", "--shard=1/2", "--record=part"),
        ("-i texts.txt and --queries vectors.npy cannot be used together", "--queries=vectors.npy"),
        ("it is not clear which column holds the texts", "--passages=many.csv"),
        ("has 1 texts, but VECTORS has 2 rows", "--passages=one.txt"),
    ],
    "rank": [
        ("both --query and --pairs are given", "--query=x"),
        ("--pairs cannot be combined with --top", "--top=3"),
        ("--pairs cannot be combined with --column", "--column=2"),
        ("--pairs cannot be combined with --field", "--field=x"),
        ("--pairs cannot be combined with --input-format", "--input-format=csv"),
        ("--shard is not possible with rank", "--shard=1/2", "--record=part"),
        ("line 1 has no tab, expected two texts with a tab between them", "-i", "texts.txt"),
    ],
    "tokenize": [
        ("--no-limit and --max-length cannot be used together", "--no-limit", "--max-length=5"),
        ("--max-length is 0, but it must be 2 or more", "--max-length=0"),
        ("--threads is 65, but it must be at most 64", "--threads=65"),
    ],
    "finetune": [
        ("--epochs is 0, but it must be 1 to 1048576", "--epochs=0"),
        ("--batch-size is 0, but it must be 1 to 65536", "--batch-size=0"),
        ("--batch-size is 65537, but it must be 1 to 65536", "--batch-size=65537"),
        ("--lr is 0, but it must be a rate above 0, at most 1000", "--lr=0"),
        ("--lr is 1001, but it must be a rate above 0, at most 1000", "--lr=1001"),
        ("--warmup is 1, but it must be a part of the steps, from 0 to less than 1", "--warmup=1"),
        ("--warmup is -0.1, but", "--warmup=-0.1"),
        ("--momentum is 1, but it must be 0 to less than 1", "--momentum=1"),
        ("--weight-decay is -1, but it must be 0 to 1000", "--weight-decay=-1"),
        ("--clip is -1, but it must be a length above 0, or 0 for never", "--clip=-1"),
        ("--scale is 0, but it must be", "--scale=0"),
        ("--freeze", "--freeze=99"),
        ("--threads is 65, but it must be at most 64", "--threads=65"),
        ("--max-length is 0, but it must be 2 or more", "--max-length=0"),
        ("line 1 has no tab", "--data=texts.txt"),
        ("line 1 has no tab", "--val=texts.txt"),
        ("line 1 has no tab", "--test=texts.txt"),
        ("nowhere", "--val=nowhere"),
    ],
    "generate": [
        ("--temperature is -1, but it must be 0 or more", "--temperature=-1"),
        ("--top-p is 1.5, but it must be 0 to 1", "--top-p=1.5"),
        ("--min-p is -0.5, but it must be 0 to 1", "--min-p=-0.5"),
        ("--repeat-penalty is 0, but it must be 0.01 to 100", "--repeat-penalty=0"),
        ("--repeat-penalty is 1e+300, but it must be 0.01 to 100", "--repeat-penalty=1e300"),
        ("--logits-top is 1048577, but it must be at most 1048576", "--logits-top=1048577"),
        ("--lookup is 8, but it must be 0 to 7", "--lookup=8"),
        ("--prompt, --prompt-file, --input and --ids cannot be used together", "--ids=1,2"),
        ("--prompt, --prompt-file, --input and --ids cannot be used together", "--prompt-file=texts.txt"),
        ("--system needs --chat", "--system=be brief"),
        ("--template is the format of a conversation; it needs --chat", "--template=chatml"),
    ],
    "cache": [("more", "stat", "more"), ("empty", "empty")],
    "probe": [
        ("--timeout", "--timeout=-1"), ("--timeout", "--timeout=x"), ("--timeout", "--timeout=86401"),
        ("--bench", "--bench=slow"), ("--simulate", "--scenario=old"), ("nowhere", "--simulate=nowhere"),
        ("--json", "--json", "--list"),
    ],
    "selftest": [("--timeout", "--timeout=0"), ("--timeout", "--timeout=x")],
    "bench": [
        ("1x1", "--sizes=1x1", "paco"), ("nowhere", "paco", "--peers=nowhere"), ("paint", "paint"),
        ("--modes", "--modes=fast"), ("--patience is 0, but it must be more than 0", "--patience=0"),
        ("--budget is -1, but it must be more than 0", "--budget=-1"),
        ("--turns is 0, but it must be 1 or more", "--turns=0"),
        ("--repeats is 0, but it must be 1 to", "--repeats=0"),
        ("nowhere: cannot open the language model", "generate", "--model=nowhere"),
        ("nowhere.json: cannot open", "--compare=nowhere.json"),
        ("--json FILE is missing", "--resume"),
    ],
    "demo": [
        ('--only is "paint", but it must be different names of workloads', "--only=paint"),
        ('--only is "paco,paco", but it must be', "--only=paco,paco"),
        ('--only is "paco,", but it must be', "--only=paco,"),
        ("--only has generate, which needs a language model", "--only=generate"),
        ("-o: the folder's name is too long", "-o", "x" * 3001),
    ],
    "merge": [("RECORD", ), ("nowhere", "nowhere"), ("texts.txt", "texts.txt")],
}
# what every command refuses of the options that all commands share
SHARED = [
    ('cleave: --icd is "", but it must be the path of a driver', "--icd="),
    ('--mode is "fast", but it must be auto, cpu, gpu, hybrid or reference', "--mode=fast"),
    ('--mem-limit is "lots", but it must be a size such as 2G or a share such as 50%', "--mem-limit=lots"),
    ('--mem-limit is "0", but', "--mem-limit=0"),
    ('--mem-limit is "101%", but', "--mem-limit=101%"),
    ('--mem-limit is "-5%", but', "--mem-limit=-5%"),
    ('--mem-limit is "99999999999G", but', "--mem-limit=99999999999G"),
    ('--batch is "0", but it must be a whole number, 1 or more, or auto', "--batch=0"),
    ('--batch is "all", but', "--batch=all"),
    ('--sched is "best", but it must be adaptive, static, dynamic or hguided', "--sched=best"),
    ("--sub-devices is 65, but at most 64 are possible", "--sub-devices=65"),
    ('--report is "out/r.txt", but', "--report=out/r.txt"),
    ("are both standard output, but only one of them can be", "--report=-", "--trace=-"),
    ("--devices-per-rank and --sub-devices cannot be used together", "--devices-per-rank=1", "--sub-devices=2"),
    ("--record is missing", "--shard=1/2"),
    ("--shard is missing", "--record=part"),
    ('--shard is "0/2", but it must be I/N, such as 2/4', "--shard=0/2", "--record=part"),
    ('--shard is "3/2", but', "--shard=3/2", "--record=part"),
    ('--shard is "1/", but', "--shard=1/", "--record=part"),
    ('--shard is "1/999999999", but', "--shard=1/999999999", "--record=part"),
    ("there is no option --quite; did you mean --quiet?", "--quite"),
    ("there is no option --xyzzy;", "--xyzzy"),
    ("there is no option -Z;", "-Z"),
    ("--no is short for several options", "--no"),
    ("--quiet takes no value", "--quiet=yes"),
    ("--mode needs a value", "--mode"),
    ("looks like an option", "--mode", "--quiet"),
    ('but a one-letter option takes no "="; write -o x.csv', "-o=x.csv"),
    ("-o needs a value", "-o"),
]


def main():
    lines = kit.small_commands(text_embed.make_model, 4, 32)
    lines.update(kit.more_commands(sys.argv[3]))
    kit.write("one.txt", "the cats\n")
    os.mkdir("out")
    every_option(lines)
    for name, rows in ROWS.items():
        for part, *arguments in rows:
            expect(part, *lines.get(name, [name]), *arguments)
    for part, *arguments in SHARED:
        expect(part, *lines["blobs"], *arguments)
    # formerly such answers ended only with the context
    expect("--max-tokens is 0, but in a conversation it must be 1 or more", "generate", "tiny.gguf", "--chat",
           "--max-tokens=0")
    # formerly refused after all other workloads had run
    kit.expect(2, "nowhere: cannot open the language model: No such file", "demo",
               environment=dict(kit.PLAIN, CLEAVE_MODEL="nowhere"))
    kit.same("commands of ROWS", set(ROWS) - set(kit.commands()), set())
    kit.finish()


main()
