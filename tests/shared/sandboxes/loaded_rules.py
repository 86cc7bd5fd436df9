"""Loads cfn-lint's rules. The process that forks sandboxes imports this: each would load them for 0.8 CPU seconds."""

from podwright.sandbox.cloudformation.validation import property_rule

property_rule()
