#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that every command that prints ends with exit code 1 if it cannot write to standard output.

Formerly `--help`, `--version`, `cache`, `blobs --preview` and `finetune` ended with 0 when the disk was full or
standard output was closed.

usage: lost_output.py CLEAVE CLI_TESTS    CLI_TESTS: the folder tests/cli, whose small model is used"""
import os
import shutil
import subprocess
import sys

import kit

sys.path.insert(0, sys.argv[2])
import text_embed  # noqa: E402


def lines():
    commands = kit.commands()
    kit.same("commands", len(commands) >= 15, True)
    yield from (["--help"], ["-V"], ["--version"], ["help"])
    for name in commands:
        yield [name, "--help"]
        yield ["help", name]
        yield [name, "--version"]
    yield ["cache"]
    yield ["cache", "path"]
    yield ["cache", "stat"]
    yield ["probe"]
    yield ["probe", "--json"]
    yield ["probe", "--print-mode"]
    yield ["blobs", kit.movie(), "--preview", "0"]
    yield ["link", kit.write("spots.csv", kit.SPOTS), "--search", "2", "-o", "-"]
    yield ["tracks", kit.track_table()]
    yield ["tracks", "tracks.csv", "-q", "-o", "-"]
    text_embed.make_model("model")
    kit.write("texts.txt", "the cats\nunaffable running\n")
    kit.write("data.txt", "the cats\tanimal\n12 and 12\tnumber\ncats run\tanimal\n1 2 3\tnumber\n")
    yield ["tokenize", "model", "-i", "texts.txt", "-o", "-"]
    yield ["embed", "model", "-i", "texts.txt", "-o", "-"]
    yield ["embed", "model", "-i", "texts.txt", "-o", "vectors.npy"]
    yield ["search", "vectors.npy", "--model", "model", "-i", "texts.txt", "-o", "-"]
    kit.run("search", "vectors.npy", "--queries", "vectors.npy", "-o", "-", "--shard", "1/1", "--record", "record")
    yield ["merge", "record"]
    yield ["finetune", "model", "--data", "data.txt", "-o", "classes", "--epochs", "1"]
    yield ["classify", "classes", "-i", "texts.txt", "-o", "-"]
    yield ["rank", "classes", "--pairs", "-i", kit.write("pairs.tsv", "the cats\t12 and\n"), "-o", "-"]
    shutil.copy(os.path.join(sys.argv[2], "../data/generate/tiny/tiny-legacy.gguf"), "tiny.gguf")
    yield ["detokenize", "tiny.gguf", "-i", kit.write("ids.json", "[[5, 6, 7], [8]]\n")]
    yield ["generate", "tiny.gguf", "--prompt", "the", "-n", "2", "-q"]
    yield ["demo", "-o", "made", "--mode", "reference"]


def shell(line, redirection):
    return subprocess.run(["sh", "-c", '"$@" ' + redirection, "sh", kit.CLEAVE, *line], env=kit.PLAIN,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          timeout=300)


run = set()
for each in lines():
    run.add(each[0])
    told, ways = " ".join(each), ["> /dev/full", ">&-"]
    if each[0] == "demo" and len(each) > 2:
        ways.pop()  # this command takes half a minute
    else:
        done = shell(each, "")
        if done.returncode or not done.stdout:
            kit.wrong("%s: exit code %d, %d bytes: %r" % (told, done.returncode, len(done.stdout), done.stderr))
    for where in ways:
        done = shell(each, where)
        if done.returncode != 1 or not done.stderr:
            kit.wrong("%s %s: exit code %d, %r" % (told, where, done.returncode, done.stderr))
kit.swept("lost output", run & set(kit.commands()))
kit.finish()
