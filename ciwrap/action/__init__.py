"""The composite action: what runs behind action.yml in a workflow. Nobody imports it.

Read first `__main__`, which calls a function of `steps` or `orders` for each step of action.yml.
"""
