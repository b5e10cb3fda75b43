"""What people would otherwise use: simple methods in both directions, behind one registry."""
