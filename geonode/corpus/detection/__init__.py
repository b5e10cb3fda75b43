"""Detection: optical density or emission → what the instrument shows. One file a kind."""
