# SPDX-License-Identifier: Apache-2.0
"""Classifier: what finetune() learnt, beside the softmax in NumPy and the command."""
import os
import subprocess

import numpy as np
import pytest

import cleave
from test_encoder import WIDTH, folder, make_model  # noqa: F401: a small random model
from test_finetune import FRUIT, LABELS, ROCKS, RULES, TEXTS


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
        with pytest.raises(cleave.ArgumentTypeError, match="a list of texts expected"):
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


def test_a_model_that_learnt_no_classes(folder, reference):  # noqa: F811
    with pytest.raises(cleave.FormatError, match='no tensor "classifier.weight"'):
        cleave.Classifier(folder, context=reference)
