"""CPU ms a record for each set."""
import asyncio, gzip, json, sys, time, gc
sys.path.insert(0, ".")
from ragtrace.judges import OverlapJudge
from tests import make
sets={}
for n,k in (("begin",200),("mtrag",60),("summedits",80),("wice",30)):
    rows=[json.loads(l) for l in gzip.open(f"../shared/data/faith_{n}_dev.jsonl.gz","rt")][:k]
    sets[n]=[make.record(*r["contexts"],query=r.get("query") or "",answer=r["answer"]) for r in rows]
rows=[json.loads(l) for f in ("sound","invented","contradicted","questions") for l in open(f"drafts/dev/{f}.jsonl")]
sets["dev"]=[make.record(*r["contexts"],query=r["query"],answer=r["answer"]) for r in rows]
async def main():
    j=OverlapJudge(); out={}
    for s in sets.values():
        for r in s[:2]: await j.audit(r)
    gc.collect(); gc.freeze()
    for n,s in sets.items():
        t=time.process_time()
        for r in s: await j.audit(r)
        out[n]=(time.process_time()-t)*1000/len(s)
    print(json.dumps(out))
asyncio.run(main())
