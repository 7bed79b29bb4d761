"""Questions spread over machines by Ray: `--engine ray`.

    driver: session -> engine.ask(task) --lease--> worker: the same Evaluator.run_task
            journal <------------- each finished call, before its result is used
            caps    <------------- each call, before it begins
            limits  <------------> a provider's 429, passed on to the other workers

The driver owns the queue, the journal, the caps, the progress and the tables. A worker has the models and the tools.
"""
