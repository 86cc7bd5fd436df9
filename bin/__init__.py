"""The CDK app (`python -m podwright.bin.app`) and, in a checkout, the launchers setup, deploy, test and bench."""
