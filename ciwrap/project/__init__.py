"""ciwrap.yaml, and running the command that it names.

Uses `base`, `model`, `formats` and `snapshot`. Read first `settings.Check`, then
`config.load_config`, which makes one of YAML. Only `run_command` starts a user's program.
"""
