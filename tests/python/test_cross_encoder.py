# SPDX-License-Identifier: Apache-2.0
"""Compares the scores and ranks of CrossEncoder with those of sentence-transformers' CrossEncoder."""
import json
import os
import shutil

import numpy as np
import pytest

import cleave

DATA = os.path.join(os.environ["CLEAVE_TEST_SOURCE"], "tests", "data")
with open(os.path.join(DATA, "cross_encoder", "scores.json"), encoding="utf-8") as golden:
    GOLDEN = json.load(golden)


@pytest.fixture(scope="module", params=["one", "three"])
def model(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cross") / request.param
    shutil.copytree(os.path.join(DATA, "cross_encoder", request.param), folder)
    shutil.copy(os.path.join(DATA, "model", "tiny", "tokenizer.json"), folder)
    return folder


def test_scores(model, reference, context):
    want = GOLDEN[model.name]
    for where in reference, context:
        with cleave.CrossEncoder(model, context=where) as encoder:
            assert encoder.max_length == 16 and len(encoder.classes) == np.asarray(want["scores"])[0].size
            with pytest.warns(UserWarning, match="6 of 16 pairs were cut at 16 tokens"):
                found = encoder.predict(GOLDEN["pairs"])
            assert found.dtype == np.float32 and found.shape == np.shape(want["scores"])
            np.testing.assert_allclose(found, want["scores"], atol=5e-6)
            np.testing.assert_allclose(encoder.predict(GOLDEN["pairs"][0]), want["scores"][0], atol=5e-6)
            assert encoder.predict([]).shape[0] == 0
    with cleave.CrossEncoder(model, activation="none", context=reference) as encoder, \
            pytest.warns(UserWarning, match="cut"):
        np.testing.assert_allclose(encoder.predict(GOLDEN["pairs"]), want["raw"], atol=5e-6)
        if model.name == "three":
            sums = encoder.predict(GOLDEN["pairs"], apply_softmax=True).sum(1)
            np.testing.assert_allclose(sums, 1, atol=1e-6)


def test_ranks(model, reference):
    texts = [second for _, second in GOLDEN["pairs"]]
    with cleave.CrossEncoder(model, context=reference) as encoder:
        if model.name == "three":
            with pytest.raises(cleave.ArgumentError, match="3 scores per pair"):
                encoder.rank("the cats", texts)
            return
        with pytest.warns(UserWarning, match="cut"):
            found = encoder.rank("the cats", texts, return_documents=True)
        want = GOLDEN["one"]["ranks"]
        assert [one["text"] for one in found] == [texts[number] for number, _ in want]
        np.testing.assert_allclose([one["score"] for one in found], [score for _, score in want], atol=5e-6)
        assert [texts[one["corpus_id"]] for one in found] == [one["text"] for one in found]
        with pytest.warns(UserWarning, match="cut"):
            assert [set(one) for one in encoder.rank("the cats", texts, top_k=2)] == [{"corpus_id", "score"}] * 2


def test_what_is_refused(model, reference):
    with cleave.CrossEncoder(model, context=reference) as encoder:
        for named in {"convert_to_tensor": True}, {"activation_fn": abs}, {"convert_to_numpy": False}:
            with pytest.raises(cleave.ArgumentError, match="is supported"):
                encoder.predict([("a", "b")], **named)
        with pytest.raises(cleave.ArgumentTypeError, match="two texts are expected"):
            encoder.predict([("a", "b", "c")])
    with pytest.raises(cleave.ArgumentError, match="closed"):
        encoder.predict([("a", "b")])
    if model.name == "one":
        with pytest.raises(cleave.FormatError, match="a single score, not classes"):
            cleave.Classifier(model, context=reference)
