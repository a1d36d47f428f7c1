# SPDX-License-Identifier: Apache-2.0
"""Tests LanguageModel with small random models: texts, conversations and scores."""
import json
import os

import numpy as np
import pytest

import cleave

DATA = os.path.join(os.environ["CLEAVE_TEST_SOURCE"], "tests", "data", "generate")
with open(os.path.join(DATA, "tiny.json"), encoding="utf-8") as file:
    GOLDEN = json.load(file)
NAME = "tiny-qwen2.gguf"


@pytest.fixture(name="model", scope="module")
def _model():
    with cleave.LanguageModel(os.path.join(DATA, "tiny", NAME)) as model:
        yield model


def test_scores_are_those_of_the_reference(model):
    for case in GOLDEN[NAME]:
        scores = model.logits(case["prompt_tokens"])
        assert scores.dtype == np.float32 and scores.shape == (model.vocabulary,)
        for token, score in case.get("top", []):
            assert abs(scores[token] - score) < 1e-3


def test_texts_are_the_same_in_pieces(model):
    case = GOLDEN[NAME][0]
    options = {"max_tokens": len(case["tokens"]), "temperature": 0.0, "ignore_end": True}
    assert model.tokenize(case["prompt"]) == case["prompt_tokens"]
    whole = model.generate(case["prompt"], **options)
    pieces = list(model.generate(case["prompt"], stream=True, **options))
    assert "".join(pieces) == whole and len(pieces) > 1
    stop = whole[len(whole) // 2]
    assert model.generate(case["prompt"], stop=[stop], **options) == whole[:whole.index(stop)]


def test_seeds_and_listeners_that_leave(model):
    one, two, other = (model.generate("the cat", max_tokens=12, temperature=2.0, seed=s,
                                      ignore_end=True) for s in (1, 1, 2))
    assert one == two != other
    pieces = model.generate("the cat", max_tokens=1000, ignore_end=True, stream=True)
    assert next(pieces)
    pieces.close()  # the text ends by itself; otherwise this would take long


def test_texts_together_are_those_alone(model):
    prompts = ["the cat", "a", "the sun and the moon", "b c", "one", "two", "three", "four", "five"]
    options = {"max_tokens": 9, "temperature": 1.5, "seed": 3, "ignore_end": True}
    alone = [model.generate(prompt, **options) for prompt in prompts]
    assert model.generate_many(prompts, **options) == alone
    assert len(set(alone)) > 1 and model.generate_many([]) == []
    with pytest.raises(cleave.ArgumentTypeError, match="sequence of texts"):
        model.generate_many("the cat")


def test_guesses_change_nothing(model):
    options = {"max_tokens": 40, "temperature": 0.0, "ignore_end": True}
    plain = model.generate("the cat the cat the cat", **options)
    for lookup in (1, 4, 7):
        assert model.generate("the cat the cat the cat", lookup=lookup, **options) == plain
    with pytest.raises(cleave.ArgumentError, match="lookup"):
        model.generate("a", lookup=8)


def test_conversations(model):
    answer = model.chat([{"role": "user", "content": "the sun"}], template="chatml", max_tokens=4)
    assert isinstance(answer, str)
    with pytest.raises(cleave.ArgumentTypeError, match="role and content"):
        model.chat([{"role": "user"}])
    with pytest.raises(cleave.ArgumentError, match="no family"):
        model.chat([{"role": "user", "content": "a"}], template="none of them")


def test_what_is_wrong_is_named(tmp_path):
    with pytest.raises(cleave.FileError, match="cannot open the model"):
        cleave.LanguageModel(tmp_path / "nothing.gguf")
    with pytest.raises(cleave.ArgumentError, match="asked for, but the model has"):
        cleave.LanguageModel(os.path.join(DATA, "tiny", NAME), tokens=1 << 20)
    model = cleave.LanguageModel(os.path.join(DATA, "tiny", NAME))
    with pytest.raises(cleave.ArgumentError, match="max_tokens"):
        model.generate("a", max_tokens=0)
    with pytest.raises(cleave.ArgumentError, match="temperature"):
        model.generate("a", temperature=-1)
    model.close()
    model.close()
    with pytest.raises(cleave.ArgumentError, match="closed"):
        model.logits([1])
