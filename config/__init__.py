"""What an environment is: settings models, the YAML loader, the instance catalog and the rules.

No AWS library is imported here.
"""
