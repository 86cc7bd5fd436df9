"""What a person runs: the podwright command line, checks against an account, the sandbox and reports."""
