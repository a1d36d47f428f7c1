#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests a small `cleave bench`: it gives figures for every party, and the same figures in JSON, HTML and Markdown.

usage: bench_report.py CLEAVE
"""
import json
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree
from html.parser import HTMLParser

import testdata

VOID = {"meta", "br", "hr", "img", "link"}


class Balance(HTMLParser):
    """Checks that every element that is opened is closed, in the right order."""

    def __init__(self):
        super().__init__()
        self.open, self.drawings = [], 0

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        self.drawings += tag == "svg"

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            raise ValueError("</%s> closes something else" % tag)


def check(condition, why):
    if not condition:
        sys.exit("bench: " + why)


PEER = '''
import json, sys
with open(sys.argv[1]) as file:
    cases = json.load(file)["cases"]
with open(__file__ + ".turns", "a") as file:
    file.write("x")
for case in cases:
    print(json.dumps({"party": "a rival", "case": case["case"], "metric": "compute",
                      "seconds": [case["effort"] * 1e-9] * int(sys.argv[5])}))
'''


MODEL_OF_PEER = '''
with open(cases[0]["folder"] + "/model.json") as file, open(__file__ + ".model", "w") as out:
    out.write(json.load(file)["model"])
'''


def arrays(cleave):
    """Benchmarks operations on arrays in two turns, with another program between them."""
    with tempfile.TemporaryDirectory() as folder:
        report, script = os.path.join(folder, "b.json"), os.path.join(folder, "run.py")
        os.makedirs(os.path.join(folder, "env", "bin"))
        os.symlink(sys.executable, os.path.join(folder, "env", "bin", "python"))
        with open(script, "w", encoding="utf-8") as file:
            file.write(PEER)
        result = subprocess.run(
            [cleave, "bench", "arrays", "--device", "0", "--repeats", "4", "--patience", "0.3", "-q",
             "--peers=" + folder, "--peers-env", os.path.join(folder, "env"), "--json", report],
            capture_output=True, text=True, check=False)
        check(result.returncode == 0, result.stderr)
        with open(report, encoding="utf-8") as file:
            figures = json.load(file)
        with open(script + ".turns", encoding="utf-8") as file:
            check(file.read() == "xx", "the outside program did not have two turns")
    check(figures["turns"] == 2, "turns are %r" % figures["turns"])
    check(len(figures["cases"]) >= 14, "%d operations on arrays" % len(figures["cases"]))
    for case in figures["cases"]:
        by = {r["party"]: r for r in case["results"]}
        ours = [r for name, r in by.items() if name not in ("a rival", "plain C")]
        if len(ours) == 1 and ours[0].get("note", "").startswith("left out"):
            continue  # for slow machines
        check(len(ours) == 1 and ours[0]["compute"]["count"] >= 2,
              "%s: the device was measured in one turn" % case["name"])
        check(by["a rival"]["compute"]["count"] == 4, "%s: turns are not added" % case["name"])
        check(case["flops"] is None or ours[0]["gflops"] > 0, "%s: no rate" % case["name"])
    print("bench: %d operations on arrays, in turns" % len(figures["cases"]))


def generate(cleave):
    """Benchmarks a language model, with another program that gets the path of the model, and without one."""
    model = testdata.path_of("generate/tiny/tiny-qwen2.gguf")
    with tempfile.TemporaryDirectory() as folder:
        report, script = os.path.join(folder, "b.json"), os.path.join(folder, "run.py")
        os.makedirs(os.path.join(folder, "env", "bin"))
        os.symlink(sys.executable, os.path.join(folder, "env", "bin", "python"))
        with open(script, "w", encoding="utf-8") as file:
            file.write(PEER + MODEL_OF_PEER)
        result = subprocess.run(
            [cleave, "bench", "generate", "--model", model, "--device", "0", "--repeats", "2",
             "--patience", "5", "--no-cold", "-q", "--peers=" + folder, "--peers-env",
             os.path.join(folder, "env"), "--json", report],
            capture_output=True, text=True, check=False)
        check(result.returncode == 0, result.stderr)
        with open(report, encoding="utf-8") as file:
            figures = json.load(file)
        with open(script + ".model", encoding="utf-8") as file:
            check(file.read() == model, "the outside program is told of another model")
    check("tokens/s" in result.stdout, "no rate of tokens")
    names = [case["name"] for case in figures["cases"]]
    check(names == ["prompt of 32 tokens", "prompt of 128 tokens", "prompt of 512 tokens",
                    "64 tokens one by one"], "cases are %s" % names)
    for case in figures["cases"]:
        ours = [r for r in case["results"] if r["party"] not in ("a rival", "plain C")][0]
        if case["name"] in names[1:3]:
            check("context is 128 tokens" in ours["note"], "a prompt without room: %s" % ours)
            continue
        tokens = 64 if "one by one" in case["name"] else 32
        check(abs(ours["rate"] * ours["compute"]["median"] / tokens - 1) < 1e-6, "rate of %s" % ours)
        check("processor time" in ours["note"] and ours["files"]["count"], "no whole command: %s" % ours)
    environment = {k: v for k, v in os.environ.items() if k != "CLEAVE_MODEL"}
    result = subprocess.run([cleave, "bench", "generate"], capture_output=True, text=True,
                            env=environment, check=False)
    check(result.returncode == 2 and "--model" in result.stderr, "no model: " + result.stderr)
    print("bench: a language model")


def check_modes(path):
    """Benchmarks the requested cases on CPU, GPU and hybrid side by side."""
    result = subprocess.run(
        [sys.argv[1], "bench", "transformer", "--modes", "cpu", "--only", "feed forward 256",
         "--repeats", "1", "--no-files", "-q", "--html", path + ".html", "--markdown",
         path + ".md"], capture_output=True, text=True, check=False)
    check(result.returncode == 0, result.stderr)
    with open(path + ".md", encoding="utf-8") as file:
        tables = file.read()
    check("| from memory to memory | CPU | GPU | hybrid |" in tables, "no table of modes")
    check("| feed forward 256, 128 tokens | " in tables, "no line of the case that was wanted")
    check("attention, 8 heads" not in tables and "matmul" not in tables,
          "--only lets others through")
    with open(path + ".html", encoding="utf-8") as file:
        parser = Balance()
        parser.feed(file.read())
    check(not parser.open, "HTML elements stay open: %s" % parser.open)
    result = subprocess.run(
        [sys.argv[1], "bench", "arrays", "--modes", "cpu", "--only", "sum of|no such|matmul 512",
         "--repeats", "1", "--no-files", "-q"], stdout=subprocess.PIPE, text=True, check=False)
    check(result.returncode == 0 and "matmul 512x512" in result.stdout and "sum of 1" in result.stdout
          and "matmul 1024" not in result.stdout, "--only takes two texts: " + result.stdout)
    result = subprocess.run([sys.argv[1], "bench", "transformer", "--only", "no such case"],
                            capture_output=True, text=True, check=False)
    check(result.returncode == 2 and "no such case" in result.stderr,
          "--only takes what is not there")


def compare(cleave):
    """Compares a result with itself after a change of times: what became slower, and what is within the noise."""
    with tempfile.TemporaryDirectory() as folder:
        first, other = os.path.join(folder, "first.json"), os.path.join(folder, "other.json")

        def bench(*arguments):
            return subprocess.run([cleave, "bench", "paco", "--device", "0", "--sizes", "24x24x12", "--only", "fixed",
                                   "--repeats", "3", "--no-files", "--no-cold", "-q", *arguments],
                                  capture_output=True, text=True, check=False)

        check(bench("--json", first).returncode == 0, "no first result")
        for factor, code, words in ((0.01, 1, "slower  paco 24x24, T=12"), (100, 0, "faster  paco 24x24, T=12"),
                                    (None, 0, " 0 slower, 0 faster")):
            with open(first, encoding="utf-8") as file:
                figures = json.load(file)
            for result in [r for case in figures["cases"] for r in case["results"]]:
                for metric in ("kernel", "compute"):
                    for name in ("minimum", "median", "maximum") if result[metric] else ():
                        # without a factor: the median is half as long, but all times are within the range
                        result[metric][name] *= factor or {"minimum": 0.01, "median": 0.5, "maximum": 100}[name]
            with open(other, "w", encoding="utf-8") as file:
                json.dump(figures, file)
            done = bench("--compare", other)
            check(done.returncode == code and words in done.stdout,
                  "times by %s: exit code %d\n%s%s" % (factor, done.returncode, done.stdout, done.stderr))
        with open(other, "w", encoding="utf-8") as file:
            file.write('{"schema": "cleave.report/1"}')
        done = bench("--compare", other)
        check(done.returncode == 2 and "cleave.bench/1" in done.stderr, "another document: " + done.stderr)
    print("bench: compared with an earlier result")


def budget(cleave):
    """Gives a benchmark no time, completes its result, and interrupts another: no figure is lost or measured twice."""
    with tempfile.TemporaryDirectory() as folder:
        report, tables = os.path.join(folder, "b.json"), os.path.join(folder, "b.md")
        command = [cleave, "bench", "paco", "--device", "0", "--only", "fixed", "--no-files", "-q", "--json", report,
                   "--markdown", tables]
        small, large = ["--sizes", "24x24x12,28x28x12", "--repeats", "2"], ["--sizes", "24x24x12,400x400x200"]

        def bench(*arguments):
            done = subprocess.run(command + list(arguments), capture_output=True, text=True, check=False)
            check(done.returncode == 0, " ".join(arguments) + ": " + done.stderr)
            return read()

        def read():
            with open(report, encoding="utf-8") as file:
                return json.load(file)

        def results(figures):
            return [r for case in figures["cases"] for r in case["results"]]

        late = bench(*small, "--budget", "0.01")
        check(not late["complete"] and [r["late"] for r in results(late)] == [True] * 4, "no time: %s" % results(late))
        with open(tables, encoding="utf-8") as file:
            check("Incomplete: 4 entries" in file.read(), "the table does not say that it is incomplete")
        whole = bench(*small, "--budget", "300", "--resume")
        check(whole["complete"] and all(r["compute"] and "late" not in r for r in results(whole)),
              "completed: %s" % results(whole))
        old, missing = results(whole)[0]["compute"], results(whole)[-1]
        old["median"], missing["compute"] = 1234.5, None
        with open(report, "w", encoding="utf-8") as file:
            json.dump(whole, file)
        again = results(bench(*small, "--resume"))
        check(again[0]["compute"]["median"] == 1234.5, "a figure was measured again")
        check(again[-1]["compute"] and again[-1]["compute"]["median"] < 1234, "a missing figure was not measured")
        os.remove(report)
        with subprocess.Popen(command + large, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
            while running.poll() is None and not (os.path.exists(report) and any(
                    r["compute"] for r in results(read()))):
                time.sleep(0.05)
            running.terminate()
        check(running.returncode == 130, "interrupted: exit code %d" % running.returncode)
        left = read()
        check(not left["complete"] and results(left)[0]["compute"], "interrupted: %s" % results(left))
    print("bench: what has no time is left out, and completed later")


def main():
    budget(sys.argv[1])
    arrays(sys.argv[1])
    compare(sys.argv[1])
    generate(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        files = {kind: os.path.join(folder, "bench." + kind) for kind in ("json", "html", "md")}
        result = subprocess.run(
            [sys.argv[1], "bench", "paco", "--device", "0", "--sizes", "24x24x12,28x28x12,28x28x16",
             "--repeats", "2", "--no-cold", "-q", "--json", files["json"], "--html", files["html"],
             "--markdown", files["md"]], capture_output=True, text=True, check=False)
        check(result.returncode == 0, result.stderr)
        with open(files["json"], encoding="utf-8") as file:
            figures = json.load(file)
        with open(files["html"], encoding="utf-8") as file:
            page = file.read()
        with open(files["md"], encoding="utf-8") as file:
            tables = file.read()
    check(figures["schema"] == "cleave.bench/1", "schema is %r" % figures["schema"])
    text = json.dumps(figures)
    for name in ("24x24, T=12, fixed", "28x28, T=16, shift"):
        for where, what in (("JSON", text), ("HTML", page), ("Markdown", tables),
                            ("terminal", result.stdout)):
            check(name in what, "%s has no case %r" % (where, name))
    check("plain C" in result.stdout, "the reference is missing")
    parser = Balance()
    parser.feed(page)
    check(not parser.open, "HTML elements stay open: %s" % parser.open)
    check(parser.drawings >= 2, "%d plots" % parser.drawings)
    at = 0
    while (at := page.find("<svg", at)) >= 0:
        end = page.index("</svg>", at) + len("</svg>")
        drawing = page[at:end]
        xml.etree.ElementTree.fromstring(drawing)
        check("nan" not in drawing and "inf" not in drawing, "a plot holds nan or inf")
        at = end
    with tempfile.TemporaryDirectory() as folder:
        check_modes(os.path.join(folder, "modes"))
    print("bench: three cases, the same in JSON, HTML, Markdown and on the terminal")


if __name__ == "__main__":
    main()
