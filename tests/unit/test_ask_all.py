"""Asking many things at once: order, time-out, what is not seen, and what breaks."""

import threading
import time
from functools import partial

import pytest

from podwright.operations.aws.unseen import Unseen
from podwright.operations.checks.runner import ask_all


def unseen() -> str:
    raise Unseen("sagemaker list-clusters", "you may not make this call (AccessDenied)", "AccessDenied")


def test_answers_come_in_the_order_of_the_questions() -> None:
    heard = list[str]()
    late = threading.Event()
    actual = ask_all({"slow": lambda: late.wait(5), "quick": late.set, "none": unseen}, answered=heard.append)
    assert list(actual) == ["slow", "quick", "none"]
    assert (actual["slow"], actual["quick"]) == (True, None)
    assert heard[-1] != "quick"
    assert isinstance(actual["none"], Unseen)
    assert actual["none"].code == "AccessDenied"
    assert ask_all({}) == {}


def test_what_has_no_answer_in_time_is_unseen() -> None:
    never = threading.Event()
    actual = ask_all({"hangs": never.wait, "answers": lambda: 1}, seconds=0.2)
    assert actual["answers"] == 1
    assert str(actual["hangs"]) == "hangs: no answer within 0.2 s"
    never.set()


def test_no_more_are_asked_at_once_than_wanted() -> None:
    running, most = list[str](), list[int]()

    def ask(name: str) -> str:
        running.append(name)
        most.append(len(running))
        time.sleep(0.01)
        running.remove(name)
        return threading.current_thread().name

    actual = ask_all({str(number): partial(ask, str(number)) for number in range(12)}, at_once=3)
    assert max(most) <= 3
    assert list(actual.values()) == list(actual), "a thread has the name of what it asks"


def test_what_breaks_is_raised_with_its_name() -> None:
    def broken() -> None:
        raise KeyError("a bug of ours")

    with pytest.raises(KeyError) as caught:
        ask_all({"PRE001": broken})
    assert caught.value.__notes__ == ["while PRE001 was asked"]
