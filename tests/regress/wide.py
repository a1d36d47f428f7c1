# SPDX-License-Identifier: Apache-2.0
"""Command lines with options that the other tests of this folder leave out, for long sweeps: every kind of output, and
ways of computing that have code of their own."""
import glob
import os
import random
import shutil

import kit

TRAINING = {"classes": "the cats run\ta\n12 and 12\tb\nrunning cats\ta\nthe 12\tb\n",
            "pairs": "the cats run\tthe cats\n12 and 12\t12\nrunning cats\tcats\nthe 12\tand 12\n"}


def spectral_cube():
    """Writes [channels, frames, height, width] of noise and a star's halo, for ASDI."""
    chance = random.Random(3)
    kit.write_npy("channels.npy", (3, 6, 21, 21), [
        100 * 2.0 ** (-((y - 10) ** 2 + (x - 10) ** 2) / 30) + chance.gauss(0, 1)
        for _ in range(18) for y in range(21) for x in range(21)])
    kit.write_npy("turns.npy", (6,), [9.0 * i for i in range(6)])
    kit.write_npy("image.npy", (7, 7), [2.0 ** (-((i // 7 - 3) ** 2 + (i % 7 - 3) ** 2) / 2) for i in range(49)])
    return ["channels.npy", "turns.npy", "image.npy", "-q", "--radius", "2", "-o", "out"]


def stack():
    """Writes two stacks [time, z, y, x] with a spot in each."""
    values = [int(20 + (z * 5 + y * 7 + x * 3) % 3 + 300 * 2.0 ** (
        -((z - 5) ** 2 + (y - 8 - t) ** 2 + (x - 9) ** 2) / 4)) for t in range(2) for z in range(10) for y in range(18)
              for x in range(18)]
    return kit.write_npy("stacks.npy", (2, 10, 18, 18), b"".join(v.to_bytes(2, "little") for v in values), "<u2")


def of_paco():
    made = ["made/paco-%s.npy" % name for name in ("cube", "angles", "psf")]
    cube = spectral_cube()
    small = ["channels.npy", "turns.npy", "image.npy", "-q", "--radius", "2", "-o", "out", "--channel", "1"]
    lists = ["--wavelengths", "1.0,1.1,1.2", "--spectrum", "flat", "--spectrum", "1500K"]
    return {"paco asdi": ["paco", *cube, *lists, "--star-temperature", "6000"],
            "paco channels": ["paco", *cube, "--channel", "all", "--format", "npy", "--nan", "mask"],
            "paco contrast": ["paco", *small, "--contrast", "--contrast-radii", "6", "--contrast-injections", "6",
                              "--star-flux", "1e5", "--pixel-scale", "12"],
            "paco found": ["paco", *made, "-q", "-o", "out", "--threshold", "4", "--at", "12,14", "--psf-mode", "fixed",
                           "--report", "out/run-report.json", "--trace", "out/trace-report.json", "--true-north", "3"],
            "paco vip": ["paco", *small, "--conv", "vip", "--fwhm", "3", "--rounding", "trunc", "--psf-norm", "peak",
                         "--frame-weights", "variance", "--reject-frames", "2", "--center", "10,10", "--snr", "raw",
                         "-v"]}


def of_movies(data):
    movie = ["blobs", "movie.npy", "-q", "-o"]
    shape = "8,48,48,u16,128"
    formats = sorted(glob.glob(os.path.join(data, "blobs/formats/fmt_u16_*.tif")))
    spots = kit.write("spots.csv", "frame,y,x\n" + "".join(
        "%d,%.1f,%.1f\n" % (t, 5 + 8 * i + t % 2, 5 + t) for t in range(8) for i in range(4) if (t + i) % 5))
    return {"blobs linked": movie + ["out/s.xml", "--link", "4", "--memory", "2", "--fill-gaps", "--predict", "drift",
                                     "-T", "out/t.parquet", "--overlay", "out/o.png", "--pixel-size", "0.1um",
                                     "--interval", "0.5", "--subpixel", "fit"],
            "blobs drift": movie + ["out/s.json", "--stage-drift", "out/d.csv", "--registered", "out/r.npy",
                                    "--subtract-drift", "--report", "out/run-report.json"],
            "blobs preview": ["blobs", "movie.npy", "--preview", "1", "--histogram", "out/h.png"],
            "blobs dog": movie + ["out/s.csv", "--dog", "--threshold-rel", "0.2", "--threshold-scope", "movie",
                                  "--invert", "--kernel", "scipy", "--exclude-border", "2", "--format", "napari"],
            "blobs raw": ["blobs", "movie.npy", "--raw", shape, "-q", "-o", "out/s.tsv", "--threshold", "5",
                          "--format", "trackmate", "--log-scale", "--frames", "1:5"],
            "blobs stacks": ["blobs", stack(), "--axes", "TZYX", "--voxel-size", "0.3,0.1,0.1um", "-q", "-o",
                             "out/s.csv", "--overlay", "out/o.png", "--link", "4", "-T", "out/t.xml"],
            "blobs tiff": ["blobs", shutil.copy(formats[0], "a.tif"), shutil.copy(formats[-1], "b.tif"), "-q", "-o",
                           "out/s.csv", "--partial"],
            "link branches": ["link", spots, "-q", "--search", "5", "--branches", "6", "--memory", "1", "-o",
                              "out/t.xml", "--pixel-size", "0.1um", "--interval", "1"],
            "link gaps": ["link", spots, "-q", "--search", "5", "--adaptive-stop", "1", "--adaptive-group", "2",
                          "--memory", "2", "--fill-gaps", "--predict", "velocity", "-o", "out/t.json"],
            "link channel": ["link", spots, "-q", "--search", "5", "--predict", "channel", "--channel-bin", "6", "-o",
                             "out/t.parquet", "--min-length", "2"],
            "tracks all": ["tracks", "tracks.csv", "-q", "-o", "out/d.json", "--summary", "out/s.csv", "--track-msd",
                           "out/t.tsv", "--drift", "out/drift.csv", "--positions", "out/p.csv", "--subtract-drift",
                           "--smooth", "3", "--pixel-size", "0.1um", "--interval", "0.1", "--min-length", "3"]}


def of_stars():
    star = kit.write("near.txt", "".join(
        "%.1f %.3f 0.01\n" % (4500 + 0.5 * i, 1 + 0.1 * (i % 7)) for i in range(400)))
    arms = ["--library", "made/specfit-library", "-q"]
    coadd = ["specfit", "made/specfit-coadd.fits", *arms]
    priors = kit.write("priors.csv", "TARGETID,TEFF,TEFF_SIGMA\n39600000000000,5500,200\n39600000000002,5600,300\n")
    settings = kit.write("settings.yaml", "min_vel: -500\nmax_vel: 500\n")
    return {"specfit models": coadd + ["-o", "out/stars.fits", "--models", "out/models.fits", "--plot", "out/plots",
                                       "--report", "out/run-report.json", "--npoly", "4"],
            "specfit priors": coadd + ["-o", "out/stars.csv", "--prior", "teff=5500:300", "--fix", "vsini=0",
                                       "--priors", priors, "--config", settings, "--minsn", "1"],
            "specfit resumed": coadd + ["-o", "out/stars.fits", "--resume", "--save-every", "1", "--combine", "target",
                                        "--resolution", "on"],
            "specfit text": ["specfit", star, *arms, "-o", "out/stars.csv", "--barycentric", "12", "--wavelengths",
                             "air", "--reject", "5", "--resolving-power", "3000", "--starts", "2"],
            "templates chosen": ["templates", "models.csv", "--arm", "a=5000:5080:0.4", "--arm", "b=5090:5180:0.4:1",
                                 "-q", "-o", "out/library", "--select", "teff=5000:6000", "--keep-slope",
                                 "--starts", "4", "--model-power", "20000"]}


def of_texts():
    table = kit.write("table.csv", "id,text\n1,the cats\n2,\"12, and\"\n3,run\n")
    lines = kit.write("lines.jsonl", '{"id": 1, "text": "the cats"}\n{"text": "12 and"}\n')
    files = {name: kit.write("train-%s.tsv" % name, text) for name, text in TRAINING.items()}
    train = ["finetune", "model", "--epochs", "1", "-q", "-o", "out"]
    wide = ["--precision", "fp16", "--batch-tokens", "8", "--threads", "1"]
    found = ["search", "vectors.npy", "--queries", "vectors.npy", "-q", "--top", "1"]
    tiny = ["generate", "tiny.gguf", "-q", "--seed", "1"]
    return {"embed table": ["embed", "model", "-i", table, "--column", "text", "-q", "-o", "out/v.parquet", *wide],
            "embed lines": ["embed", "model", "-i", lines, "--field", "text", "-q", "-o", "out/v.safetensors",
                            "--tokens-out", "out/ids.json", "--normalize", "--prompt", "the"],
            "embed csv": ["embed", "model", "-i", "texts.txt", "-q", "-o", "out/v.csv", "--max-length", "4"],
            "search int8": found + ["--first-pass", "int8", "--codes", "out/codes.npy", "-o", "out/found.json"],
            "search binary": found + ["--first-pass", "binary", "--rescore", "2", "--format", "csv"],
            "rank softmax": ["rank", "classes", "--pairs", "-i", "pairs.tsv", "--activation", "softmax", "-q",
                             "--format", "json"],
            "classify table": ["classify", "classes", "-i", lines, "-q", "-o", "out/c.tsv"],
            "finetune watched": train + ["--data", files["classes"], "--val", files["classes"],
                                         "--test", files["classes"], "--checkpoint", "1", "--freeze", "1",
                                         "--lr", "1e-3", "--report", "out/run-report.json"],
            "finetune pairs": train + ["--data", files["pairs"], "--task", "pairs", "--optimizer", "sgd"],
            "tokenize tokens": ["tokenize", "tiny.gguf", "-i", "texts.txt", "--format", "tokens", "--no-bos", "-q"],
            "generate drawn": tiny + ["--prompt", "the", "-n", "4", "--top-k", "5", "--repeat-penalty", "1.2",
                                      "--json", "--logits-top", "3", "--lookup", "3"],
            "generate several": tiny + ["-i", "texts.txt", "-n", "3", "--temperature", "0", "--cache-type", "fp16"],
            "generate chat": tiny + ["--chat", "--template", "chatml", "--system", "the", "--prompt", "12", "-n", "3"],
            "generate info": ["generate", "tiny.gguf", "--info"]}


def commands(data):
    """Returns {name: arguments}, of which the first word of a name is the command. kit.small_commands and
    kit.more_commands must have made their inputs before."""
    return {**of_paco(), **of_movies(data), **of_stars(), **of_texts()}
