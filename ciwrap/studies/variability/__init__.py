"""`ciwrap variability`: maps from a configuration to how much its runs vary, fitted, judged and
asked.

Read first `runs`, then `predictors` and `judge`. After Cameron et al., "MOANA: Modeling and
Analyzing I/O Variability in Parallel System Experimental Design", 2019.
"""
