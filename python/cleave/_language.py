# SPDX-License-Identifier: Apache-2.0
"""Continues texts, answers conversations and computes scores of tokens with language models."""
from __future__ import annotations

import contextlib
import ctypes
import os
import queue
import secrets
import threading
from typing import Any, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from . import _abi
from ._check import described, file_path, given, real, text, whole
from ._context import Context, chosen
from ._library import InThisProcess, check, lib, take_word
from .errors import ArgumentError, ArgumentTypeError, Error

STOPS = ("end", "stop", "length", "context", "caller")


def _ids_of(rows: Any) -> list[int]:
    return [int(rows.ids[i]) for i in range(rows.tokens)]


def _sampling(temperature: float, top_k: int, top_p: float, min_p: float, repeat_penalty: float,
              repeat_last: int, seed: int | None) -> Any:
    return described("generate", _abi.Sampling, penalty=real("repeat_penalty", repeat_penalty),
                     penalty_last=whole("repeat_last", repeat_last, 0, 1 << 30),
                     top_k=whole("top_k", top_k, 0, 1 << 30), top_p=real("top_p", top_p),
                     min_p=real("min_p", min_p), temperature=real("temperature", temperature),
                     seed=secrets.randbits(32) if seed is None else whole("seed", seed, 0, 2**64 - 1))


class _Text:
    """A text that a model writes: its prompt and the options for continuing it."""

    def __init__(self, model: LanguageModel, ids: list[int], max_tokens: int, sampling: Any,
                 stop: Sequence[str], ignore_end: bool, lookup: int = 0):
        self._model, self._ids, self._sampling = model, ids, sampling
        self._tokens = whole("max_tokens", max_tokens, 1, 1 << 30)
        self._lookup = whole("lookup", lookup, 0, 7)
        if isinstance(stop, str):
            stop = [stop]
        self._stops = (ctypes.c_char_p * (len(stop) + 1))(*(text("stop", s).encode() for s in stop))
        self._ignore_end = bool(ignore_end)
        self.ended = False

    def write(self, hear: Any) -> str:
        """Returns the text that continues the prompt, and calls `hear` with each piece as soon as it is written."""
        with self._model._sequence() as sequence:
            self.feed(sequence)

            def piece(start: Any, length: int, _id: int, _user: Any) -> int:
                if length:
                    hear(ctypes.string_at(start, length).decode(errors="replace"))
                return int(self.ended)

            heard = _abi.Piece(piece)
            writing = self.writing(heard)
            written = _abi.Written(size=ctypes.sizeof(_abi.Written))
            try:
                check(lib.clv_sequence_write(sequence, ctypes.byref(writing),
                                             ctypes.byref(written)))
                return ctypes.string_at(written.text, written.length).decode(errors="replace")
            finally:
                lib.clv_free(written.tokens)
                lib.clv_free(written.text)

    def feed(self, sequence: int) -> None:
        """Appends the tokens of the prompt to a sequence of the library."""
        feed = (ctypes.c_int32 * len(self._ids))(*self._ids)
        check(lib.clv_sequence_feed(sequence, feed, len(self._ids), None))

    def writing(self, heard: Any) -> Any:
        """Returns the library's options for continuing the text; `heard` is its callback for pieces."""
        return _abi.Writing(
            size=ctypes.sizeof(_abi.Writing), tokens=self._tokens,
            sampling=ctypes.pointer(self._sampling),
            stops=ctypes.cast(self._stops, ctypes.POINTER(ctypes.c_char_p)),
            ignore_end=self._ignore_end, piece=heard, lookup=self._lookup)

    def stream(self) -> Iterator[str]:
        """Yields the pieces of the text while another thread writes it. Closing the iterator ends the writing."""
        pieces: queue.Queue[str | BaseException | None] = queue.Queue()

        def work() -> None:
            try:
                self.write(pieces.put)
                pieces.put(None)
            except BaseException as error:  # pylint: disable=broad-except
                pieces.put(error)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            while True:
                piece = pieces.get()
                if piece is None:
                    return
                if isinstance(piece, BaseException):
                    raise piece
                yield piece
        finally:
            self.ended = True
            thread.join()


def _write_together(model: LanguageModel, texts: Sequence[_Text]) -> list[str]:
    """Continues all texts together: each step writes one token of each text. Returns the texts."""
    count = len(texts)
    written = [_abi.Written(size=ctypes.sizeof(_abi.Written)) for _ in texts]
    with contextlib.ExitStack() as stack:
        sequences = [stack.enter_context(model._sequence()) for _ in texts]
        for text_, sequence in zip(texts, sequences):
            text_.feed(sequence)
        writings = [text_.writing(_abi.Piece()) for text_ in texts]
        try:
            check(lib.clv_sequences_write(
                (ctypes.c_void_p * count)(*sequences), count,
                (ctypes.POINTER(_abi.Writing) * count)(*map(ctypes.pointer, writings)),
                (ctypes.POINTER(_abi.Written) * count)(*map(ctypes.pointer, written))))
            return [ctypes.string_at(w.text, w.length).decode(errors="replace") for w in written]
        finally:
            for one in written:
                lib.clv_free(one.tokens)
                lib.clv_free(one.text)


class LanguageModel(InThisProcess):
    """A language model, from a GGUF file or from a folder with config.json, safetensors and tokenizer.json.

    Its architecture is llama, mistral, qwen2 or qwen3. Quantised weights stay quantised on the context's devices.
    `tokens` is the largest number of tokens of a text, the prompt included (0: the model's limit, at most 4096).
    `half_cache` keeps keys and values as fp16. `int8` rounds the vectors that are multiplied by the matrices to 8
    bits while new tokens are computed, which is faster on CPUs with AVX2 and changes scores by up to 0.8. Threads may
    share a model; they take turns.

    Raises FileError, FormatError, UnsupportedError, ArgumentError, DeviceMemoryError.
    """

    def __init__(self, path: str | os.PathLike[str], *, tokens: int = 0, half_cache: bool = False,
                 int8: bool = False, context: Context | None = None):
        self._language, self._users, self._lock = 0, 0, threading.Condition()
        self.path = file_path("path", path)
        self.context = chosen(context)
        options = described("LanguageModel", _abi.LanguageOptions,
                            context=whole("tokens", tokens, 0, 1 << 24), cache=int(bool(half_cache)),
                            activations=int(bool(int8)))
        made = ctypes.c_void_p()
        with self.context.held() as handle:
            check(lib.clv_language_open(handle, os.fsencode(self.path), ctypes.byref(options),
                                        ctypes.byref(made)))
            self.context.acquire()
        self._language = made.value or 0
        info = _abi.LanguageInfo(size=ctypes.sizeof(_abi.LanguageInfo))
        check(lib.clv_language_get_info(self._language, ctypes.byref(info)))
        self.architecture, self.name = take_word(info.architecture), take_word(info.name)
        self.layers, self.vocabulary = int(info.layers), int(info.vocabulary)
        self.parameters, self.tokens = int(info.parameters), int(info.room)

    @contextlib.contextmanager
    def _held(self) -> Iterator[int]:
        self.context.check_process()
        with self._lock:
            if not self._language:
                raise ArgumentError("LanguageModel: it is closed")
            self._users += 1
        try:
            yield self._language
        finally:
            with self._lock:
                self._users -= 1
                self._lock.notify_all()

    @contextlib.contextmanager
    def _sequence(self) -> Iterator[int]:
        with self._held() as language:
            made = ctypes.c_void_p()
            check(lib.clv_sequence_create(language, ctypes.byref(made)))
            try:
                yield made.value or 0
            finally:
                lib.clv_sequence_free(made)

    def tokenize(self, prompt: str) -> list[int]:
        """Returns the token numbers of a text, beginning with the token that starts a text if the model has one."""
        if not isinstance(prompt, str):
            raise ArgumentTypeError(f"prompt is {given(prompt)}, but it must be a text")
        raw = prompt.encode(errors="replace")
        rows = _abi.TokenRows()
        try:
            with self._held() as language:
                check(lib.clv_tokenize(lib.clv_language_tokenizer(language),
                                       (ctypes.c_char_p * 1)(raw), (ctypes.c_size_t * 1)(len(raw)),
                                       1, None, ctypes.byref(rows)))
            return _ids_of(rows)
        finally:
            lib.clv_token_rows_clear(ctypes.byref(rows))

    def _talk(self, messages: Sequence[Mapping[str, str]], template: str) -> list[int]:
        rows = _abi.TokenRows()
        made = (_abi.ChatMessage * max(len(messages), 1))()
        for i, message in enumerate(messages):
            try:
                role, content = message["role"], message["content"]
            except (KeyError, TypeError):
                raise ArgumentTypeError(f"messages: one of them is {given(message)}, but each must be a dictionary "
                                        "with role and content") from None
            made[i] = _abi.ChatMessage(text("role", role).encode(),
                                       text("content", content).encode(errors="replace"))
        try:
            with self._held() as language:
                check(lib.clv_language_chat(language, made, len(messages),
                                            text("template", template).encode(),
                                            ctypes.byref(rows), None))
            return _ids_of(rows)
        finally:
            lib.clv_token_rows_clear(ctypes.byref(rows))

    def generate(self, prompt: str, *, max_tokens: int = 256, temperature: float = 0.8,
                 top_k: int = 40, top_p: float = 0.95, min_p: float = 0.05,
                 repeat_penalty: float = 1.0, repeat_last: int = 64, seed: int | None = None,
                 stop: Sequence[str] = (), ignore_end: bool = False, lookup: int = 0,
                 stream: bool = False) -> str | Iterator[str]:
        """Returns the text that continues a prompt; with stream=True, an iterator of its pieces.

        Tokens are drawn from the top_k most likely ones; of these, from the fewest whose probabilities sum to top_p; of
        these, from those with at least min_p of the highest probability; by softmax(score / temperature). Temperature 0
        takes the most likely token. The same seed gives the same text; without a seed, a random one is used. With
        lookup=N, up to N tokens (at most 7) are guessed from the tokens that followed the same words earlier in the
        text. The text is the same, but texts that repeat themselves are written faster.
        """
        sampling = _sampling(temperature, top_k, top_p, min_p, repeat_penalty, repeat_last, seed)
        made = _Text(self, self.tokenize(prompt), max_tokens, sampling, stop, ignore_end, lookup)
        return made.stream() if stream else made.write(lambda piece: None)

    def generate_many(self, prompts: Sequence[str], *, max_tokens: int = 256,
                      temperature: float = 0.8, top_k: int = 40, top_p: float = 0.95,
                      min_p: float = 0.05, repeat_penalty: float = 1.0, repeat_last: int = 64,
                      seed: int | None = None, stop: Sequence[str] = (),
                      ignore_end: bool = False) -> list[str]:
        """Continues several prompts together. Each step makes one token for each text, so that weights are read once
        for up to 8 texts. Each text is the same as that of generate() with the same options and seed."""
        if isinstance(prompts, str):
            raise ArgumentTypeError("prompts: got a text, but a sequence of texts is expected")
        sampling = _sampling(temperature, top_k, top_p, min_p, repeat_penalty, repeat_last, seed)
        texts = [_Text(self, self.tokenize(prompt), max_tokens, sampling, stop, ignore_end)
                 for prompt in prompts]
        return _write_together(self, texts) if texts else []

    def chat(self, messages: Sequence[Mapping[str, str]], *, template: str = "auto",
             max_tokens: int = 256, temperature: float = 0.8, top_k: int = 40,
             top_p: float = 0.95, min_p: float = 0.05, repeat_penalty: float = 1.0,
             repeat_last: int = 64, seed: int | None = None, stop: Sequence[str] = (),
             stream: bool = False) -> str | Iterator[str]:
        """Answers a conversation: messages are dictionaries with role ("system", "user" or "assistant") and content.
        The other arguments are those of generate()."""
        sampling = _sampling(temperature, top_k, top_p, min_p, repeat_penalty, repeat_last, seed)
        made = _Text(self, self._talk(messages, template), max_tokens, sampling, stop, False)
        return made.stream() if stream else made.write(lambda piece: None)

    def logits(self, ids: Sequence[int]) -> NDArray[np.float32]:
        """Returns the scores of every token that could follow the last of `ids`: float32, before any softmax."""
        tokens = [whole("ids", one, 0, 2**31 - 1) for one in ids]
        out = np.empty(self.vocabulary, np.float32)
        with self._sequence() as sequence:
            check(lib.clv_sequence_feed(sequence, (ctypes.c_int32 * len(tokens))(*tokens),
                                        len(tokens),
                                        out.ctypes.data_as(ctypes.POINTER(ctypes.c_float))))
        return out

    def close(self) -> None:
        """Waits for calls of other threads and frees the model; a second close() does nothing."""
        with self._lock:
            self._lock.wait_for(lambda: not self._users)
            language, self._language = self._language, 0
        if language and self.context.ours:
            lib.clv_language_close(language)
            self.context.release()

    def __enter__(self) -> LanguageModel:
        return self

    def __exit__(self, *_unused: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<cleave.LanguageModel {self.path}{'' if self._language else ', closed'}>"

    def __del__(self) -> None:
        if getattr(self, "_language", 0):
            with contextlib.suppress(Error):
                self.close()
