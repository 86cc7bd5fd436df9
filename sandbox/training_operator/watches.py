"""Watches jobs, their pods and their Workloads with kopf, and reconciles a job after each change.

kopf waits for kinds that the API server does not serve yet, such as Kueue's, and reconnects after an outage. The
operator uses none of kopf's annotations and finalizers: it reconciles a job from the objects that exist.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import kopf
import yaml

from .jobs import GROUP, JOB_LABEL, KIND, PLURAL, VERSION

_SURVEY_SECONDS: Final = 5.0
Reconcile = Callable[[str, str], float | None]
"""Reconciles a job by namespace and name. Returns the seconds until the next time; None without the job."""


class Worklist:
    """A task for each job, which reconciles it after changes and when it is due."""

    def __init__(self, reconcile: Reconcile) -> None:
        self._reconcile = reconcile
        self._changed: dict[tuple[str, str], asyncio.Event] = {}
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}
        self.stopped = asyncio.Event()
        """Set if a task has failed. The operator then ends, and the sandbox starts it again."""

    def wake(self, namespace: str, name: str) -> None:
        """Reconcile a job soon, because one of its objects has changed."""
        key = (namespace, name)
        if key not in self._changed:
            self._changed[key] = asyncio.Event()
            self._tasks[key] = asyncio.create_task(self._follow(key))
            self._tasks[key].add_done_callback(self.end)
        self._changed[key].set()

    async def survey(self, jobs: Callable[[], list[tuple[str, str]]]) -> None:
        """Wake all jobs periodically: kopf misses a new kind that is served later than its definition says."""
        while not self.stopped.is_set():
            for namespace, name in await asyncio.to_thread(jobs):
                self.wake(namespace, name)
            await asyncio.sleep(_SURVEY_SECONDS)

    async def _follow(self, key: tuple[str, str]) -> None:
        changed = self._changed[key]
        while True:
            changed.clear()
            seconds = await asyncio.to_thread(self._reconcile, *key)
            if seconds is None and not changed.is_set():
                del self._changed[key], self._tasks[key]
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), seconds)

    def end(self, task: asyncio.Task[None]) -> None:
        """End the operator if a task has failed."""
        if not task.cancelled() and (error := task.exception()):
            logging.error("the operator ends", exc_info=error)
            self.stopped.set()


def registry(worklist: Worklist, kubeconfig: Path) -> kopf.OperatorRegistry:
    """Return the handlers that wake jobs."""
    result = kopf.OperatorRegistry()

    @kopf.on.startup(registry=result)
    def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
        settings.posting.enabled = False

    @kopf.on.login(registry=result)
    def login(**_: Any) -> kopf.ConnectionInfo:
        return _connection(kubeconfig)

    @kopf.on.event(GROUP, VERSION, PLURAL, registry=result)
    async def job_changed(**event: Any) -> None:
        worklist.wake(event["namespace"], event["name"])

    @kopf.on.event("v1", "pods", labels={JOB_LABEL: kopf.PRESENT}, registry=result)
    async def pod_changed(**event: Any) -> None:
        worklist.wake(event["namespace"], event["labels"][JOB_LABEL])

    @kopf.on.event("kueue.x-k8s.io", "v1beta2", "workloads", when=_is_ours, registry=result)
    async def workload_changed(**event: Any) -> None:
        worklist.wake(event["namespace"], _owner(event["meta"]))

    return result


def _is_ours(meta: Mapping[str, Any], **_: Any) -> bool:
    return bool(_owner(meta))


def _owner(meta: Mapping[str, Any]) -> str:
    """Return the job that owns a Workload; empty if another kind owns it."""
    owners: Sequence[Mapping[str, Any]] = meta.get("ownerReferences") or ()
    return next((owner["name"] for owner in owners if owner["kind"] == KIND), "")


def _connection(kubeconfig: Path) -> kopf.ConnectionInfo:
    """Return address and credentials from a kubeconfig of the sandbox."""
    config = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    return kopf.ConnectionInfo(server=cluster["server"], ca_path=cluster["certificate-authority"], token=user["token"])
