"""`rewoo-bench view`: the pages of all runs in a folder, on this machine; a run in progress updates itself."""
