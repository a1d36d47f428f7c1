# SPDX-License-Identifier: Apache-2.0
"""Predicts the classes of texts with a fine-tuned encoder."""
from __future__ import annotations

import ctypes
import os
from typing import Any, NamedTuple, Sequence

import numpy as np
from numpy.typing import NDArray

from ._arrays import address
from ._context import Context
from ._encoder import Encoding, texts_of
from ._library import check, lib, take_word
from ._report import Report
from ._watch import Progress
from .errors import FormatError


class Class(NamedTuple):
    """The most probable class of a text."""
    name: str
    probability: float


class Classifier(Encoding):
    """An encoder with a layer that predicts classes, from a folder that finetune() or `cleave finetune` wrote, or a
    BertForSequenceClassification of transformers. The parameters are those of Encoder.

    Raises FileError, FormatError (there is no such layer, or a text may have several classes), MemoryError.
    """

    def __init__(self, folder: str | os.PathLike[str], *, max_length: int = 0, batch_tokens: int = 0,
                 half: bool = False, threads: int = 0, context: Context | None = None):
        self._layer = 0
        super().__init__(folder, max_length, batch_tokens, half, threads, context)
        if lib.clv_classes_count(self._layer) < 2:
            self.close()
            raise FormatError(f"{self.folder} gives a single score, not classes; expected a model of two "
                              "classes or more (CrossEncoder scores pairs of texts with such a model)")
        self.classes: list[str] = [take_word(lib.clv_classes_name(self._layer, i))
                                   for i in range(lib.clv_classes_count(self._layer))]
        """The names, by number."""

    def _config(self) -> Any:
        made = ctypes.c_void_p()
        check(lib.clv_classes_open(self._weights(), os.fsencode(self.folder), ctypes.byref(made)))
        self._layer = made.value or 0
        return lib.clv_classes_get_config(self._layer)

    def probabilities(self, texts: Sequence[str] | str, *, report: Report | None = None,
                      progress: Progress = None) -> NDArray[np.float32]:
        """Returns float32 [texts, classes], whose rows sum to 1, or [classes] for one str. Raises DeviceError,
        CancelledError. Ctrl-C ends the call."""
        one = isinstance(texts, str)
        texts = texts_of("texts", [texts] if one else texts)
        with self._call():
            vectors = self._vectors("classify", texts, report, progress)
            out = np.empty((len(vectors), len(self.classes)), np.float32)
            check(lib.clv_classes_probabilities(self._layer, address(vectors), len(vectors),
                                                address(out)))
        return out[0] if one else out

    def classify(self, texts: Sequence[str], *, report: Report | None = None,
                 progress: Progress = None) -> list[Class]:
        """Returns the most probable class of each text, and its probability."""
        found = self.probabilities(texts_of("texts", texts), report=report, progress=progress)
        wrong = ~np.isfinite(found).all(1)
        if wrong.any():
            raise FormatError(f"classify: text {wrong.argmax()}: its probabilities are not finite, "
                              "because some weights of the model are not finite")
        return [Class(self.classes[best], float(row[best]))
                for row, best in zip(found, found.argmax(1))]

    def _end(self) -> None:
        if self._layer:
            lib.clv_classes_close(self._layer)
            self._layer = 0
        super()._end()


def classify(folder: str | os.PathLike[str], texts: Sequence[str], *, report: Report | None = None,
             progress: Progress = None, **named: Any) -> list[Class]:
    """Does the same as Classifier(folder, ...).classify(texts), for a single call."""
    classifier = Classifier(folder, **named)
    try:
        return classifier.classify(texts, report=report, progress=progress)
    finally:
        classifier.close()
