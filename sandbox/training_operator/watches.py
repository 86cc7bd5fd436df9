"""What wakes the operator: changes of jobs, of their pods and of their Workloads, as kopf hears of them.

kopf follows the kinds, waits for those that are not served yet, such as Kueue's, and gets up again when the API server
was away. Its own bookkeeping in annotations and finalizers is not used: a job is reconciled from what is there.
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
"""Does what has to be done for a job, by namespace and name. Returns the seconds until it is due again."""


class Worklist:
    """A task for each job, which reconciles it when something changed, and when it is due."""

    def __init__(self, reconcile: Reconcile) -> None:
        self._reconcile = reconcile
        self._changed: dict[tuple[str, str], asyncio.Event] = {}
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}
        self.stopped = asyncio.Event()
        """Set when a task failed: the operator ends, and is started again."""

    def wake(self, namespace: str, name: str) -> None:
        """Something of a job has changed."""
        key = (namespace, name)
        if key not in self._changed:
            self._changed[key] = asyncio.Event()
            self._tasks[key] = asyncio.create_task(self._follow(key))
            self._tasks[key].add_done_callback(self.end)
        self._changed[key].set()

    async def survey(self, jobs: Callable[[], list[tuple[str, str]]]) -> None:
        """Wake all jobs now and then: kopf misses a new kind that is served later than its definition says."""
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
        """End the operator where a task has failed."""
        if not task.cancelled() and (error := task.exception()):
            logging.error("the operator ends", exc_info=error)
            self.stopped.set()


def registry(worklist: Worklist, kubeconfig: Path) -> kopf.OperatorRegistry:
    """The handlers that wake jobs."""
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
    """The job that a Workload is of; empty for one of another kind."""
    owners: Sequence[Mapping[str, Any]] = meta.get("ownerReferences") or ()
    return next((owner["name"] for owner in owners if owner["kind"] == KIND), "")


def _connection(kubeconfig: Path) -> kopf.ConnectionInfo:
    """Where the API server is, and who the operator is, by a kubeconfig of the sandbox."""
    config = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    return kopf.ConnectionInfo(server=cluster["server"], ca_path=cluster["certificate-authority"], token=user["token"])
