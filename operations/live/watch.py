"""Showing a live cluster until somebody has seen enough."""

import json
import sys
import time
from collections.abc import Callable

from ..output.console import whole_screen, write_line, write_text
from .draw import draw
from .reader import Live, Report


def watch(
    live: Live, every: float, *, times: int = 0, as_json: bool = False, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Look every so many seconds and draw what is there, without end or a number of times; Ctrl-C ends it.

    On a terminal the picture is drawn in place. Elsewhere one read follows another; as JSON each is one line.
    """
    done = 0
    try:
        if as_json or not sys.stdout.isatty():
            while not times or done < times:
                if done:
                    sleep(every)
                _print(live.read(), as_json)
                done += 1
            return
        with whole_screen() as show:
            show(draw(live.read()))
            done = 1
            while not times or done < times:
                sleep(every)
                show(draw(live.read()))
                done += 1
    except KeyboardInterrupt:
        return


def _print(report: Report, as_json: bool) -> None:
    if as_json:
        write_text(json.dumps(report, ensure_ascii=False))
        return
    for block in draw(report):
        write_line(block)
