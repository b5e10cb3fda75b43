"""Lightning around the training step: several devices, strategies that cut parameters, loggers, one's own Trainers."""
