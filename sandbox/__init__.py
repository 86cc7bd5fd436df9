"""A stand-in for AWS on the loopback interface: moto with what HyperPod needs besides. Started as a process."""
