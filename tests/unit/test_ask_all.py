"""Asking many things at once: order, time-out, what is not seen, and what breaks."""

import threading
from functools import partial
from types import SimpleNamespace

import pytest

from podwright.operations.aws import questions
from podwright.operations.aws.questions import ask_all, ask_all_or_fail
from podwright.operations.aws.unseen import Unseen
from waiting import CEILING_SECONDS


def unseen() -> str:
    raise Unseen("sagemaker list-clusters", "you may not make this call (AccessDenied)", "AccessDenied")


def test_answers_have_the_order_of_the_questions() -> None:
    heard = list[str]()
    late = threading.Event()

    def hear(name: str) -> None:
        heard.append(name)
        if name == "quick":
            late.set()

    actual = ask_all({"slow": lambda: late.wait(CEILING_SECONDS), "quick": str, "none": unseen}, answered=hear)
    assert list(actual) == ["slow", "quick", "none"]
    assert (actual["slow"], actual["quick"]) == (True, "")
    assert heard.index("quick") < heard.index("slow")
    assert isinstance(actual["none"], Unseen)
    assert actual["none"].code == "AccessDenied"
    assert ask_all({}) == {}


def test_a_question_without_an_answer_in_time_is_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    never, now = threading.Event(), [0.0]
    monkeypatch.setattr(questions, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def pass_time(name: str) -> None:
        now[0] += CEILING_SECONDS

    asked = {"hangs": never.wait, "answers": lambda: 1}
    actual = ask_all(asked, seconds=CEILING_SECONDS, answered=pass_time)
    assert actual["answers"] == 1
    assert str(actual["hangs"]) == "hangs: no answer within 900 s"
    never.set()


def test_as_many_questions_as_wanted_are_asked_at_once() -> None:
    """Each question waits for two others, so three have to run at once; a fourth would be seen."""
    running, counts = list[str](), list[int]()
    three = threading.Barrier(3, timeout=CEILING_SECONDS)

    def ask(name: str) -> str:
        running.append(name)
        three.wait()
        counts.append(len(running))
        three.wait()
        running.remove(name)
        return threading.current_thread().name

    actual = ask_all({str(number): partial(ask, str(number)) for number in range(12)}, at_once=3)
    assert counts == [3] * 12
    assert list(actual.values()) == list(actual), "a thread has the name of its question"


def test_what_breaks_is_raised_with_its_name() -> None:
    def broken() -> None:
        raise KeyError("a bug of ours")

    with pytest.raises(KeyError) as caught:
        ask_all({"PRE001": broken})
    assert caught.value.__notes__ == ["while PRE001 was asked"]


def test_an_answer_that_is_unseen_is_raised_where_every_answer_is_needed() -> None:
    assert ask_all_or_fail({"a": lambda: 1, "b": lambda: 2}, at_once=1) == {"a": 1, "b": 2}
    with pytest.raises(Unseen, match="AccessDenied"):
        ask_all_or_fail({"a": lambda: "1", "none": unseen})
