"""External agents as architectures: a program or a function that asks its model over HTTP, at our gateway."""
