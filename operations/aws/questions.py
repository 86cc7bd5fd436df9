"""Asking many things of an account at once: the one way in which preflight, doctor, drift and the live view do so."""

import queue
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from .unseen import Unseen

T = TypeVar("T")


def ask_all(
    questions: Mapping[str, Callable[[], T]],
    *,
    at_once: int | None = None,
    seconds: float | None = None,
    answered: Callable[[str], object] = lambda name: None,
) -> dict[str, T | Unseen]:
    """The answers by the questions' names, in their order.

    A question that raises Unseen is answered by that. After `seconds` those that still wait are Unseen too: their
    threads are left behind, and end with the process.

    Args:
        questions: What to ask, each in a thread that has its name.
        at_once: Threads; by default one for each question.
        seconds: How long all of it may take; by default as long as it needs.
        answered: Hears of each answer as it comes.

    Raises:
        Exception: what a question raises besides Unseen, with its name as a note.
    """
    left, done = queue.SimpleQueue[str](), queue.SimpleQueue[tuple[str, Any, Exception | None]]()
    for name in questions:
        left.put(name)

    def work() -> None:
        while True:
            try:
                name = left.get_nowait()
            except queue.Empty:
                return
            # Faults and logs name the thread, and by it the question.
            threading.current_thread().name = name
            try:
                done.put((name, questions[name](), None))
            except Unseen as unseen:
                done.put((name, unseen, None))
            except Exception as error:  # noqa: BLE001  raised again by whoever waits
                done.put((name, None, error))

    started = time.monotonic()
    for _ in range(min(at_once or len(questions), len(questions))):
        # Daemons: a question that hangs must not keep the process from ending.
        threading.Thread(target=work, daemon=True).start()
    answers: dict[str, T | Unseen] = {}
    while len(answers) < len(questions):
        try:
            rest = None if seconds is None else max(0.0, started + seconds - time.monotonic())
            name, answer, error = done.get(timeout=rest)
        except queue.Empty:
            break
        if error is not None:
            error.add_note(f"while {name} was asked")
            raise error
        answers[name] = answer
        answered(name)
    late = f"no answer within {seconds or 0:g} s"
    return {name: answers[name] if name in answers else Unseen(name, late) for name in questions}


def ask_all_or_fail(questions: Mapping[str, Callable[[], T]], *, at_once: int | None = None) -> dict[str, T]:
    """Return the answers as `ask_all` does. Raises Unseen as well where a question does."""
    answers: dict[str, T] = {}
    for name, answer in ask_all(questions, at_once=at_once).items():
        if isinstance(answer, Unseen):
            raise answer
        answers[name] = answer
    return answers
