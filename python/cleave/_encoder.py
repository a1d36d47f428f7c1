# SPDX-License-Identifier: Apache-2.0
"""Vectors of texts by BERT encoders from a folder of sentence-transformers, and their tokens; steps
of fine-tuning."""
from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from typing import Any, Iterator, Mapping, NamedTuple, Sequence

import numpy as np
from numpy.typing import NDArray

from . import _abi
from ._arrays import address
from ._context import Context, default_context
from ._library import check, lib, take_word
from ._probe import choice
from ._report import Report, report_handle
from ._watch import Progress, Watch
from .errors import ArgumentError

_NOBODY = _abi.Progress()


def _open_tokenizer(folder: Any, max_length: int) -> int:
    options = _abi.TokenizerOptions(size=ctypes.sizeof(_abi.TokenizerOptions),
                                    max_length=max_length)
    made = ctypes.c_void_p()
    check(lib.clv_tokenizer_open(os.fsencode(folder), ctypes.byref(options), ctypes.byref(made)))
    return made.value or 0


def _tokens(tokenizer: int, texts: Sequence[str],
            threads: int) -> tuple[NDArray[np.int32], NDArray[np.uintp]]:
    """(ids, offsets): text i has ids[offsets[i]:offsets[i + 1]]."""
    if isinstance(texts, str):
        raise ArgumentError("texts: a list expected, one str given")
    texts = list(texts)
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise ArgumentError(f"texts: text {i}: a str expected, {text!r:.40} given")
    raw = [text.encode() for text in texts]
    pointers = (ctypes.c_char_p * max(len(raw), 1))(*raw)
    lengths = (ctypes.c_size_t * max(len(raw), 1))(*(len(text) for text in raw))
    options = _abi.TokenizeOptions(size=ctypes.sizeof(_abi.TokenizeOptions), threads=threads)
    rows = _abi.TokenRows()
    try:
        check(lib.clv_tokenize(tokenizer, pointers, lengths, len(raw), ctypes.byref(options),
                               ctypes.byref(rows)))
        ids: NDArray[np.int32] = np.zeros(0, np.int32)
        offsets: NDArray[np.uintp] = np.zeros(1, np.uintp)
        if rows.tokens:
            ids = np.ctypeslib.as_array(rows.ids, (rows.tokens,)).astype(np.int32)
        if raw:
            offsets = np.ctypeslib.as_array(rows.offsets, (len(raw) + 1,)).astype(np.uintp)
    finally:
        lib.clv_token_rows_clear(ctypes.byref(rows))
    return ids, offsets


def _not_negative(what: str, **numbers: Any) -> None:
    for name, value in numbers.items():
        if isinstance(value, (int, np.integer)) and value < 0:
            raise ArgumentError(f"{what}: {name}={value!r} is negative")


def _whole(what: str, values: Any) -> np.ndarray:
    """As int32; what would become another number is refused."""
    given = np.asarray(values)
    with np.errstate(invalid="ignore"):
        made = np.ascontiguousarray(given, np.int32) if given.dtype.kind in "iufb" else None
    if made is None or (made != given).any():
        raise ArgumentError(f"trainer: {what}: whole numbers of 32 bits expected")
    return made


class _Folder:
    """A model folder: tokenizer, and weights once they are needed. Threads take turns: the library
    wants one call at a time for an encoder or a trainer."""

    def __init__(self, folder: Any, max_length: int, threads: int):
        self._tokenizer = self._model = 0
        _not_negative(type(self).__name__, max_length=max_length, threads=threads)
        self._turn, self._busy = threading.RLock(), False
        self.folder, self.threads = os.fspath(folder), threads or os.cpu_count() or 1
        self._tokenizer = _open_tokenizer(folder, max_length)

    @contextlib.contextmanager
    def _call(self) -> Iterator[None]:
        """A turn, once: a progress function that asks for another one would wait for its own call."""
        with self._turn:
            if self._busy:
                raise ArgumentError(f"{type(self).__name__}: called by the progress function of its own "
                                    "call, which has not ended")
            self._busy = True
            try:
                yield
            finally:
                self._busy = False

    def tokenize(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        """The token numbers of each text, [CLS] and [SEP] included: those of Hugging Face."""
        with self._turn:
            self._check_open()
            ids, offsets = _tokens(self._tokenizer, texts, self.threads)
        return np.split(ids, offsets[1:-1].astype(np.intp)) if len(offsets) > 1 else []

    def _check_open(self) -> None:
        if not self._tokenizer:
            raise ArgumentError(f"{type(self).__name__}: it is closed")

    def _weights(self) -> int:
        self._check_open()
        if not self._model:
            made = ctypes.c_void_p()
            check(lib.clv_model_open(os.fsencode(self.folder), ctypes.byref(made)))
            self._model = made.value or 0
        return self._model

    @property
    def width(self) -> int:
        """Numbers in a vector."""
        with self._turn:
            return int(lib.clv_model_get_config(self._weights()).contents.value)

    def close(self) -> None:
        """Waits for calls of other threads; a second time does nothing."""
        with self._call():
            self._end()

    def _end(self) -> None:
        if self._model:
            lib.clv_model_close(self._model)
        if self._tokenizer:
            lib.clv_tokenizer_close(self._tokenizer)
        self._model = self._tokenizer = 0

    def __del__(self) -> None:
        if hasattr(self, "_turn"):
            self.close()


def tokenize(folder: str | os.PathLike[str], texts: Sequence[str], *, max_length: int = 0,
             threads: int = 0) -> list[NDArray[np.int32]]:
    """Token numbers of texts by the tokenizer of a model folder; no device is needed.

    Raises FileError, FormatError, ArgumentError.
    """
    return _Folder(folder, max_length, threads).tokenize(texts)


class Encoder(_Folder):
    """A BERT encoder from a folder as sentence-transformers writes it (config.json,
    model.safetensors, tokenizer.json or vocab.txt).

    Parameters
    ----------
    folder        the folder
    max_length    most tokens of a text; 0: as the folder says
    batch_tokens  worked on together; 0: automatic
    half          devices keep matrices as fp16: cosine to fp32 0.9999
    threads       of the tokenizer; 0: all cores

    Raises FileError, FormatError (names what was found and what was expected), MemoryError.
    """

    def __init__(self, folder: str | os.PathLike[str], *, max_length: int = 0, batch_tokens: int = 0,
                 half: bool = False, threads: int = 0, context: Context | None = None):
        self._encoder = 0
        super().__init__(folder, max_length, threads)
        self.context = context or default_context()
        _not_negative("Encoder", batch_tokens=batch_tokens)
        model, made = self._weights(), ctypes.c_void_p()
        options = _abi.EncoderOptions(size=ctypes.sizeof(_abi.EncoderOptions),
                                      batch_tokens=batch_tokens, half=half)
        with self.context.held() as handle:
            check(lib.clv_encoder_open(handle, lib.clv_model_get_config(model),
                                       lib.clv_model_get_weights(model), ctypes.byref(options),
                                       ctypes.byref(made)))
            self.context.acquire()
        self._encoder = made.value or 0

    def embed(self, texts: Sequence[str], *, report: Report | None = None,
              progress: Progress = None) -> NDArray[np.float32]:
        """A vector a text: float32 [texts, width]. Texts are not padded; a text's vector does not
        depend on its neighbours. Raises DeviceError, CancelledError. Ctrl-C ends the call."""
        with self._call():
            if not self._encoder:
                raise ArgumentError("Encoder: it is closed")
            ids, offsets = _tokens(self._tokenizer, texts, self.threads)
            count = len(offsets) - 1
            out = np.empty((count, self.width), np.float32)
            if count:
                with Watch(progress, "embed") as watch:
                    lib.clv_encoder_watch(self._encoder, watch.function, None)
                    try:
                        status = lib.clv_encode(self._encoder, address(ids), address(offsets),
                                                count, address(out), report_handle(report))
                        watch.done(status)
                    finally:
                        lib.clv_encoder_watch(self._encoder, _NOBODY, None)
            return out

    def _end(self) -> None:
        if self._encoder:
            lib.clv_encoder_close(self._encoder)
            self._encoder = 0
            self.context.release()
        super()._end()


def embed(folder: str | os.PathLike[str], texts: Sequence[str], *, report: Report | None = None,
          progress: Progress = None, **named: Any) -> NDArray[np.float32]:
    """Encoder(folder, ...).embed(texts): for a single call."""
    encoder = Encoder(folder, **named)
    try:
        return encoder.embed(texts, report=report, progress=progress)
    finally:
        encoder.close()


class TrainResult(NamedTuple):
    """Mean loss, length of the gradient, texts (or pairs) that counted, and those that were right."""
    loss: float
    gradient_length: float
    counted: int
    right: int


class Trainer(_Folder):
    """Fine-tunes a model folder: task "classes" (a linear layer says the class) or "pairs" (texts 2i
    and 2i + 1 belong together). Options are those of clv_trainer_options in include/cleave/train.h:
    classes=3, decay=0.01, frozen_layers=4, optimizer=1 (SGD), seed=1, ..."""

    def __init__(self, folder: str | os.PathLike[str], task: str = "classes", *, max_length: int = 0,
                 threads: int = 0, context: Context | None = None, **options: Any):
        self._trainer = 0
        super().__init__(folder, max_length, threads)
        self.context = context or default_context()
        known = {name for name, _ in _abi.TrainerOptions._fields_} - {"size", "task"}
        if set(options) - known:
            raise ArgumentError(f"trainer: unknown option {sorted(set(options) - known)[0]!r}")
        _not_negative("trainer", **options)
        given = _abi.TrainerOptions(size=ctypes.sizeof(_abi.TrainerOptions),
                                    task=choice("task", task, {"classes": 0, "pairs": 1}),
                                    **options)
        made = ctypes.c_void_p()
        with self.context.held() as handle:
            check(lib.clv_trainer_open(handle, self._weights(), ctypes.byref(given),
                                       ctypes.byref(made)))
            self.context.acquire()
        self._trainer = made.value or 0

    @property
    def steps(self) -> int:
        """Steps taken so far, those before restore()'s state included."""
        with self._turn:
            return int(lib.clv_trainer_steps(self._open()))

    @property
    def device(self) -> str:
        """Where it computes: the label of a device, or "host"."""
        with self._turn:
            return take_word(lib.clv_trainer_device(self._open()))

    def _open(self) -> int:
        if not self._trainer:
            raise ArgumentError("Trainer: it is closed")
        return self._trainer

    def run_rows(self, rows: Sequence[NDArray[Any]], labels: Any,
                 rate: float | None = None) -> TrainResult:
        """step() or, without a rate, evaluate(), on rows as tokenize() gives them."""
        marks = None if labels is None else _whole("labels", labels)
        if marks is not None and marks.shape != (len(rows),):
            raise ArgumentError(f"trainer: {len(rows)} texts, labels of shape {marks.shape}")
        offsets = np.zeros(len(rows) + 1, np.uintp)
        np.cumsum([len(row) for row in rows], out=offsets[1:])
        ids = _whole("rows", np.concatenate([*rows, np.zeros(1, np.int32)]))
        found = _abi.TrainResult()
        with self._turn:
            head = (self._open(), address(ids), address(offsets), len(rows), address(marks))
            if rate is None:
                check(lib.clv_trainer_evaluate(*head, ctypes.byref(found)))
            else:
                check(lib.clv_trainer_step(*head, rate, ctypes.byref(found)))
        return TrainResult(*(getattr(found, name) for name in TrainResult._fields))

    def step(self, texts: Sequence[str], labels: Any = None, *, rate: float) -> TrainResult:
        """One step of learning on these texts."""
        return self.run_rows(self.tokenize(texts), labels, rate)

    def evaluate(self, texts: Sequence[str], labels: Any = None) -> TrainResult:
        """Loss and hits, nothing is learnt."""
        return self.run_rows(self.tokenize(texts), labels)

    def _to_file(self, function: Any, path: str | os.PathLike[str],
                 metadata: Mapping[str, str] | None) -> None:
        words = [word.encode() for pair in (metadata or {}).items() for word in pair]
        pairs = (ctypes.c_char_p * (len(words) + 1))(*words, None)
        with self._turn:
            check(function(self._open(), os.fsencode(path), pairs))

    def write(self, path: str | os.PathLike[str], metadata: Mapping[str, str] | None = None) -> None:
        """The weights as safetensors, which other tools read; `metadata` goes into its header."""
        self._to_file(lib.clv_trainer_write, path, metadata)

    def save(self, path: str | os.PathLike[str], metadata: Mapping[str, str] | None = None) -> None:
        """All that the next step depends on; see restore()."""
        self._to_file(lib.clv_trainer_save, path, metadata)

    def restore(self, path: str | os.PathLike[str]) -> None:
        """Goes on where save() was called."""
        with self._turn:
            check(lib.clv_trainer_restore(self._open(), os.fsencode(path)))

    def _end(self) -> None:
        if self._trainer:
            lib.clv_trainer_close(self._trainer)
            self._trainer = 0
            self.context.release()
        super()._end()
