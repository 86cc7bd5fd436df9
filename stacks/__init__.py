"""CDK stacks and stages. They instantiate constructs and charts for one environment and decide nothing else."""
