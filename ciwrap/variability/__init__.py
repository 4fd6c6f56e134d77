"""Maps from a configuration to how much its runs vary: fitted, judged, asked, and planned with.

After Cameron et al., "MOANA: Modeling and Analyzing I/O Variability in Parallel System Experimental
Design", 2019.
"""
