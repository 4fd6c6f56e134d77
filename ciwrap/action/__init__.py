"""What the GitHub Action does beyond the shell: action.yml calls `python -m ciwrap.action STEP`.

Every step reads its inputs from the environment (docs/how-to/github-action.md), and treats all of
them, the event and whatever lies in an artifact as hostile.
"""
