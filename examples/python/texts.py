# SPDX-License-Identifier: Apache-2.0
"""Finds the most similar of some texts, and fine-tunes a model to sort texts into classes.

usage: texts.py MODEL_DIR    such as all-MiniLM-L6-v2; or $CLEAVE_MINILM_DIR names it
"""
import os
import sys
import tempfile

import numpy as np

import cleave

model = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("CLEAVE_MINILM_DIR")
if not model:
    print("SKIPPED: no model folder given, and CLEAVE_MINILM_DIR is not set")
    sys.exit(77)

texts = ["a planet around a young star", "dust in a distant galaxy", "light of faint suns",
         "cells under the microscope", "a protein that glows", "bacteria on a plate"]
labels = ["sky", "sky", "sky", "life", "life", "life"]

vectors = cleave.embed(model, texts)  # float32 [6, width], of length 1
alike = vectors @ vectors.T - 2 * np.eye(len(texts))
for i, text in enumerate(texts):
    print(f"{text:32} is most like: {texts[alike[i].argmax()]}")

with tempfile.TemporaryDirectory() as folder:
    tuned = os.path.join(folder, "tuned")
    result = cleave.finetune(model, texts, labels, tuned, epochs=4, batch_size=3, rate=2e-4, seed=1,
                             validation=(texts, labels), progress=True)
    print(f"\nloss {result.losses[0]:.3f} to {result.losses[-1]:.3f}, {result.validation[-1].right} of "
          f"{len(texts)} right, on {result.device}; {', '.join(result.classes)}")
    assert result.validation[-1].right == len(texts)
    assert cleave.embed(tuned, texts).shape == vectors.shape
    for text, found in zip(texts, cleave.classify(tuned, texts)):
        print(f"{text:32} {found.name}, {100 * found.probability:.1f} %")
