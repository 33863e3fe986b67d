"""Computes in a thread that is started when the module is imported."""

import queue
import threading

from plain.attention import attention

_asked, _answered = queue.Queue(), queue.Queue()


def _answer():
    while True:
        _answered.put(attention(*_asked.get()))


threading.Thread(target=_answer, daemon=True).start()


def by_its_thread(q, k, v):
    _asked.put((q, k, v))
    return _answered.get(timeout=10)
