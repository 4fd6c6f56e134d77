"""Environment snapshots: what a program ran on and with, and no word on who ran it."""
