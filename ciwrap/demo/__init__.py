"""The demonstration: a simulation with real noise, its golden, and a planted defect."""
