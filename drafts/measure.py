"""Measure verdicts and flags over sets: python measure.py DIR"""
import asyncio, json, sys
from collections import Counter
from pathlib import Path
from ragtrace.judges import OverlapJudge, OverlapEmbedder
from ragtrace.metrics import EvalContext, evaluate, select
from tests import make
def run(row):
    record = make.record(*row["contexts"], query=row["query"], answer=row["answer"])
    ctx = EvalContext(record, judge=OverlapJudge(), embedder=OverlapEmbedder())
    out = {r.key if hasattr(r,'key') else r.name: r for r in asyncio.run(evaluate(select(["faithfulness","invented_specifics","answer_relevancy","diagnosis"]), ctx))}
    return out
def main(folder, verbose):
    for name in ("sound","invented","contradicted","questions"):
        rows=[json.loads(l) for l in (Path(folder)/f"{name}.jsonl").read_text().splitlines()]
        verdicts=Counter(); flagged=0; bad=[]
        for row in rows:
            out=run(row)
            inv=[r for k,r in out.items() if "invented" in k][0]
            dia=[r for k,r in out.items() if "diagnosis" in k][0]
            v=dia.details.get("verdict"); f=bool(inv.value)
            key=(row.get("lie"),v) if name=="questions" else v
            verdicts[key]+=1; flagged+=f
            wrong={"sound":f or v=="contradicted","invented":not f or v=="ok","contradicted":v=="ok","questions":(v in("ok","undetermined")) if row.get("lie") else v!="ok"}[name]
            if wrong: bad.append((row["id"],row["kind"],v,f, inv.details))
        print(name,len(rows),"flagged",flagged,dict(verdicts))
        if verbose:
            for b in bad: print("   ",b)
main(sys.argv[1], "-v" in sys.argv)
