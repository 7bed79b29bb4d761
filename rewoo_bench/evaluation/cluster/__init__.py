"""Questions spread over machines by Ray: `--workers`.

    driver: session -> engine.ask(task) --lease--> worker: the same Evaluator.run_task
            journal <------------- each finished call, before its result is used
            caps    <------------- each call, before it begins
            limits  <------------- each call to a provider; a 429 halves the limit of the whole run

The driver owns the queue, the journal, the caps, the connections, the progress and the tables. A worker has the
models and the tools.
"""
