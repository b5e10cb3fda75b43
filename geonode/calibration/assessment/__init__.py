"""What the standards say about the calibration, and a control sample about it today."""
