"""One model call, from a runner to its record. Each of these passes a `Request` on to the next:

    runner
      Meter             calls/meter.py          counts the call, keeps the question's limits, chooses the role's model,
                                                and makes the reply one that every file can hold
      RecordedModel     calls/recorded.py       answers from the journal, the replayed run or the cache; else records
      LiveCall          calls/live.py           keeps the run's caps, knows which endpoints have answered
      RetryingModel     calls/retry.py          waits for a place, tries again
      HostedModel       models/hosted/client.py the request in the form that the endpoint accepts; reads the answer
      Transport         models/hosted/transport.py

And back up, from the answer to a row:

    read_completion       models/hosted/transport.py    the answer as a `Completion`, with its tokens and its cost
    QuestionRecorder      calls/recorder.py             writes it into the journal, before anything uses it
    Meter                 calls/meter.py                keeps it as a `Call`
    the runner            runners/                      ends with a `Trajectory`
    run_task              evaluation/evaluator.py       scores it: a `Result`
    RunFolder.store       evaluation/folder.py          its rows, made by runs/columns.py, as JSON into the journal
    export                runs/journal/tables.py        the journal as parquet, when the run ends

What a call costs is on its `Bill`. A tool call takes the same way without a model: Meter, RecordedTool, tool.
"""
