"""The histories of all alerts, in the order of the alerts."""

from alert_cases_capacity import CAPACITY, UPKEEP
from alert_cases_nodes import GPUS, NODES
from alert_cases_work import JOBS, TEAMS

CASES = (*NODES, *GPUS, *JOBS, *TEAMS, *CAPACITY, *UPKEEP)
