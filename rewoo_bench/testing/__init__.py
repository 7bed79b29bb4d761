"""For your own tests: a model with scripted replies, and pytest's fixtures, whose plugin every pytest imports."""
