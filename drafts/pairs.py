import subprocess, json, sys, statistics as st
n=int(sys.argv[1]); rs={"b":[], "n":[]}
def run(d): return json.loads(subprocess.run(["nice","-n","10",".venv/bin/python","drafts/one.py"],cwd=d,capture_output=True,text=True,check=True).stdout)
for i in range(n):
    for k in ("bn" if i%2==0 else "nb"):
        rs[k].append(run("MAIN" if k=="b" else "WORKTREE"))
for s in rs["b"][0]:
    b=[r[s] for r in rs["b"]]; w=[r[s] for r in rs["n"]]; q=[y/x for x,y in zip(b,w)]
    qq=st.quantiles(q,n=4) if n>1 else q
    print(f"{s:10} base {st.median(b):7.2f} new {st.median(w):7.2f} ratio median {st.median(q):.3f} quartiles {qq[0]:.3f}-{qq[-1]:.3f}")
