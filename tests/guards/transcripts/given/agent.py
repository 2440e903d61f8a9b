"""Send each request of requests.jsonl to a command, as an agent does, and print what the answers hold."""

import json
import subprocess
import sys
from pathlib import Path

with subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
    for line in Path("requests.jsonl").read_text(encoding="utf-8").splitlines():
        print(line, file=server.stdin, flush=True)
        request = json.loads(line)
        if "id" not in request:
            continue
        given, result = request["params"], json.loads(server.stdout.readline())["result"]
        print("\n>", given.get("name", request["method"]), json.dumps(given.get("arguments", {})))
        if "structuredContent" in result:
            print(json.dumps(result["structuredContent"], indent=1))
        else:
            print(result.get("instructions") or result["content"][0]["text"])
    server.stdin.close()
sys.exit(server.returncode)
