# SPDX-License-Identifier: Apache-2.0
"""Tests Classifier: it predicts what finetune() learnt, with the probabilities of a softmax in NumPy and of the
command."""
import json
import os
import shutil
import subprocess

import numpy as np
import pytest

import cleave
from test_encoder import WIDTH, folder, make_model  # noqa: F401: a small random model
from test_finetune import FRUIT, LABELS, ROCKS, TEXTS

RULES = {"epochs": 20, "batch_size": 5, "rate": 0.02, "seed": 5}


@pytest.fixture(scope="module")
def learnt(folder, tmp_path_factory, reference):  # noqa: F811
    output = tmp_path_factory.mktemp("learnt") / "out"
    cleave.finetune(folder, TEXTS, LABELS, output, context=reference, **RULES)
    return output


def test_it_tells_what_was_learnt(learnt, reference, context):
    with cleave.Classifier(learnt, context=reference) as classifier:
        assert classifier.classes == ["fruit", "rock"] and classifier.width == WIDTH
        found = classifier.classify(TEXTS)
        table = classifier.probabilities(TEXTS)
        assert classifier.classify([]) == [] and classifier.probabilities([]).shape == (0, 2)
        assert np.array_equal(classifier.probabilities(TEXTS[0]), table[0])
        with pytest.raises(cleave.ArgumentTypeError, match="a list of texts is expected"):
            classifier.classify("one text")
    assert [one.name for one in found[:len(FRUIT)]] == ["fruit"] * len(FRUIT)
    assert [one.name for one in found[len(FRUIT):]] == ["rock"] * len(ROCKS)
    assert table.dtype == np.float32 and table.shape == (10, 2)
    np.testing.assert_allclose(table.sum(1), 1, rtol=1e-6)
    assert [one.probability for one in found] == [float(x) for x in table.max(1)]
    with pytest.raises(cleave.ArgumentError, match="Classifier: it is closed"):
        classifier.probabilities(TEXTS)
    device = cleave.Classifier(learnt, context=context)
    np.testing.assert_allclose(device.probabilities(TEXTS), table, atol=1e-5)
    device.close()
    assert cleave.classify(learnt, TEXTS, context=reference) == found


def test_the_command_says_the_same(learnt, reference):
    done = subprocess.run([os.environ["CLEAVE_COMMAND"], "classify", learnt, "--mode=reference", "-q"],
                          input="\n".join(TEXTS), capture_output=True, text=True, check=True, timeout=300)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    found = cleave.classify(learnt, TEXTS, context=reference)
    assert [(one.name, np.float32(one.probability)) for one in found] == \
        [(name, np.float32(text)) for name, text in rows]


def test_weights_that_are_not_finite(learnt, reference, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(learnt, broken)
    with open(broken / "model.safetensors", "r+b") as file:
        head = file.read(int.from_bytes(file.read(8), "little"))
        begin, end = json.loads(head)["classifier.bias"]["data_offsets"]
        file.seek(8 + len(head) + begin)
        file.write(np.full((end - begin) // 4, np.nan, np.float32).tobytes())
    with cleave.Classifier(broken, context=reference) as classifier:
        assert np.isnan(classifier.probabilities(TEXTS)).all()
        with pytest.raises(cleave.FormatError, match="text 0: its probabilities are not finite"):
            classifier.classify(TEXTS)


def test_labels_of_any_kind(folder, reference, tmp_path):  # noqa: F811
    labels = ["a\tb" if label == "fruit" else "c\nd" for label in LABELS]
    cleave.finetune(folder, TEXTS, labels, tmp_path / "out", context=reference, **RULES)
    found = cleave.classify(tmp_path / "out", TEXTS, context=reference)
    assert [one.name for one in found] == labels


def test_a_model_that_learnt_no_classes(folder, reference):  # noqa: F811
    with pytest.raises(cleave.FormatError, match='no tensor "classifier.weight"'):
        cleave.Classifier(folder, context=reference)
