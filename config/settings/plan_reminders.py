"""Who hears that the instances of a training plan go soon."""

from typing import Annotated

from pydantic import StringConstraints

from .base import Settings

Email = Annotated[str, StringConstraints(pattern=r"^[^@\s,;<>]+@[^@\s,;<>]+\.[A-Za-z]{2,}$", max_length=254)]


class PlanReminders(Settings):
    """Messages at 14 days, 7 days, one day and one hour before the end of each training plan."""

    emails: tuple[Email, ...] = ()
    """Addresses. Each gets a mail once, and confirms with a click that it wants more. Others subscribe to the topic
    that the capacity stack prints: chat, pagers, functions."""
