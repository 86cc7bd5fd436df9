"""A stand-in for who decides in a simulation: jobs start in the order of their submission while accelerators are free.

Whoever waits longer than an hour stops the job that started last. It knows no quotas: tests of what is shown use it.
"""

import heapq
from collections.abc import Sequence

from podwright.config.catalog.instance_types import environment_types
from podwright.operations.simulation.policies import Policy
from podwright.operations.simulation.run import Submission
from podwright.planning.quota.policy import environment_policy
from podwright.planning.simulation.assumptions import Assumptions
from podwright.planning.simulation.summary.outcome import JobOutcome, Outcome, Run, Stop
from podwright.planning.simulation.traces.times import timestamp

GPU = "nvidia.com/gpu"
PATIENCE = 3600.0


def first_come(policy: Policy, work: Sequence[Submission], assumptions: Assumptions) -> Outcome:
    environment = policy.environment
    quotas = environment_policy(environment, environment_types(environment.instance_types))
    capacity = {name: flavor.capacity[GPU] for name, flavor in quotas.flavors.items() if GPU in flavor.capacity}
    flavor = max(capacity, key=capacity.__getitem__)
    free, jobs, running, stops = capacity[flavor], list[JobOutcome](), list[tuple[float, int]](), list[Stop]()
    waiting, seconds, started = list[int](), list[float](), dict[int, float]()

    def end(time: float, index: int, why: str) -> None:
        nonlocal free
        began = started.pop(index)
        free += jobs[index].accelerators
        jobs[index].runs.append(Run(began, time, flavor, jobs[index].accelerators, (("node-0", 1),), why))

    def serve(time: float) -> None:
        nonlocal free
        while waiting:
            job = jobs[waiting[0]]
            if job.accelerators > free and time - job.submitted > PATIENCE and started:
                victim = max(started, key=lambda index: (started[index], index))
                end(time, victim, "InCohortReclamation")
                stops.append(
                    Stop(time, jobs[victim].name, jobs[victim].team, job.name, job.team, "InCohortReclamation")
                )
                seconds[victim] = 0.0
                jobs[victim].finished = time
            if job.accelerators > free:
                return
            index = waiting.pop(0)
            free -= job.accelerators
            started[index] = time
            heapq.heappush(running, (time + seconds[index], index))

    for item in work:
        (pods,) = item.workload["spec"]["podSets"]
        requests = pods["template"]["spec"]["containers"][0]["resources"]["requests"]
        created = timestamp(item.workload["metadata"]["creationTimestamp"])
        while running and running[0][0] <= created:
            time, index = heapq.heappop(running)
            if index in started and jobs[index].finished is None:
                end(time, index, "finished")
                jobs[index].finished = time
            serve(time)
        amount = int(requests.get(GPU, 0)) * pods["count"]
        jobs.append(JobOutcome(item.workload["metadata"]["name"], item.team, created, amount))
        seconds.append(item.seconds)
        waiting.append(len(jobs) - 1)
        serve(created)
    last = max((job.submitted for job in jobs), default=0.0)
    for index in list(started):
        end(last, index, "")
    for index in waiting:
        jobs[index].waits_for = "no accelerators are free"
    names = sorted(quotas.teams)
    guaranteed = {
        team: {name: shares[GPU].nominal for name, shares in quotas.teams[team].shares.items() if GPU in shares}
        for team in names
    }
    weights = {team: float(quotas.teams[team].weight) for team in names}
    first = min((job.submitted for job in jobs), default=0.0)
    return Outcome(environment.name, first, last, jobs, stops, guaranteed, capacity, weights)
