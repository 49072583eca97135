"""Operation of training runs: checkpoints, monitoring and profiles."""
