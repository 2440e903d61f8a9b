export RAGTRACE_STORE=scores.sqlite RAGTRACE_CONTENT=full RAGTRACE_SAMPLE_RATE=1 RAGTRACE_METRICS=faithfulness
python - <<'PYTHON'
import ragtrace

with ragtrace.query("Where is the lab?", user="4711") as run:
    run.retrieved(["The lab is in Oslo."])
    run.answered("It is in Rome.")
ragtrace.feedback(run.trace_id, 0.0, "in Oslo")
ragtrace.shutdown()
print('{"trace_id": "%s", "value": 0.0}' % run.trace_id, file=open("labels.jsonl", "w"))
PYTHON
