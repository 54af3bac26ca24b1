"""The owner: a local daemon that supervises adapters and runs the schedules, for one person."""
