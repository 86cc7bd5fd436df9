"""What follows from an environment: quotas, jobs, node facts, costs, alerts; and whether it is right."""
