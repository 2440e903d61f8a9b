"""A real S3 API on loopback with the files of a folder in its bucket: prints its port, runs until its input ends."""

import sys
from pathlib import Path

import boto3
from moto.server import ThreadedMotoServer

server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
server.start()
host, port = server.get_host_and_port()
client = boto3.client("s3", endpoint_url=f"http://{host}:{port}", region_name="us-east-1")
client.create_bucket(Bucket="lake")
for path in Path(sys.argv[1]).iterdir():
    client.upload_file(str(path), "lake", f"in/{path.name}")
sys.stdout.write(f"{port}\n")
sys.stdout.flush()
sys.stdin.read()
server.stop()
