"""Values, wherever they lie: taken over, read in stretches, masked and converted."""
