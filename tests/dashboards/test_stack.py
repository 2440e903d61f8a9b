"""The compose stack without a container engine: what its files say of each other, and of the pack, is true."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import socket
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from ragtrace import semconv
from ragtrace_dashboards import (
    ALERTING,
    BOARDS_PATH,
    DATASOURCES,
    GROUPS,
    PROVIDER,
    Config,
    board_files,
    prometheus_files,
)
from tests.command_line import parsed

REPOSITORY = Path(__file__).parents[2]
STACK = REPOSITORY / "dashboards" / "stack"
MAKEFILE = (REPOSITORY / "Makefile").read_text()
CONFIG = Config()
_DEFAULT = re.compile(r"\$\{\w+:-([^}]*)\}")
TRACE = "0af7651916cd43dd8448eb211c80319c"


def read(name: str) -> Any:
    """Return a YAML file of the stack, variables at their defaults."""
    return yaml.safe_load(_DEFAULT.sub(r"\1", (STACK / name).read_text()))


COMPOSE = read("compose.yaml")
SERVICES: dict[str, Any] = COMPOSE["services"]
COLLECTOR, PROMETHEUS, TEMPO = read("collector.yaml"), read("prometheus.yml"), read("tempo.yaml")


def mounts(service: str) -> dict[str, tuple[str, str]]:
    """Return source and mode of what is mounted, by the path in the container."""
    found = {}
    for each in SERVICES[service].get("volumes", []):
        source, target, *mode = each.split(":")
        found[target] = (source, *(mode or ["rw"]))
    return found


def flags(service: str) -> dict[str, str]:
    """Return the command's flags without dashes."""
    return dict(each.lstrip("-").partition("=")[::2] for each in SERVICES[service]["command"])


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


def listening() -> dict[str, set[int]]:
    """Return the ports on which each service listens, as its configuration says, or else its image."""
    protocols = COLLECTOR["receivers"]["otlp"]["protocols"].values()
    return {
        "collector": {port_of(each["endpoint"]) for each in protocols}
        | {port_of(COLLECTOR["exporters"]["prometheus"]["endpoint"])},
        "tempo": {
            TEMPO["server"]["http_listen_port"],
            port_of(TEMPO["distributor"]["receivers"]["otlp"]["protocols"]["grpc"]["endpoint"]),
        },
        "prometheus": {9090},
        "alertmanager": {9093},
        "grafana": {3000},
        "runbooks": {int(*re.findall(r"listen (\d+);", (STACK / "runbooks.conf").read_text()))},
        "traffic": set(),
    }


def published() -> dict[int, tuple[str, int]]:
    """Return service and container port by the port of the host."""
    found = {}
    for service, each in SERVICES.items():
        for port in each.get("ports", []):
            host, outer, inner = port.split(":")
            assert host == "127.0.0.1", f"{service}: {port} is open to the network"
            assert int(outer) not in found, f"{outer} is given twice"
            found[int(outer)] = (service, int(inner))
    return found


def used() -> list[tuple[str, str, int]]:
    """Return who names which service and port."""
    targets = [
        ("prometheus.yml", target)
        for part in (*PROMETHEUS["scrape_configs"], *PROMETHEUS["alerting"]["alertmanagers"])
        for each in part["static_configs"]
        for target in each["targets"]
    ]
    urls = [("datasource", CONFIG.prometheus_url), ("datasource", CONFIG.tempo_url), ("traffic", demo().otlp)]
    addresses = [
        *targets,
        ("collector.yaml", COLLECTOR["exporters"]["otlp/tempo"]["endpoint"]),
        *((who, urllib.parse.urlsplit(url).netloc) for who, url in urls),
    ]
    return [(who, address.rpartition(":")[0], port_of(address)) for who, address in addresses]


def demo():
    """Return the options of the traffic's `ragtrace demo`, read by ragtrace's own parser."""
    words = shlex.split(SERVICES["traffic"]["command"][-1])
    return SimpleNamespace(**parsed(words[words.index("ragtrace") + 1 :]))


def test_every_image_is_pinned_and_named_in_the_readme():
    images = [each["image"] for each in SERVICES.values()]
    assert not [image for image in images if not re.fullmatch(r"[a-z/-]+:v?\d+\.\d+\.\d+(-[a-z-]+)?", image)]
    assert set(images) == set(
        re.findall(r"^\| `([^`]+:[^`]+)` \|", (STACK / "README.md").read_text(), re.MULTILINE)
    )


@pytest.mark.parametrize("service", SERVICES)
def test_what_is_mounted_exists(service):
    for target, (source, mode) in mounts(service).items():
        if source.startswith("."):
            assert (STACK / source).resolve().exists(), f"{source} is mounted at {target} and is missing"
            assert mode == "ro", f"{source} can be written"
        else:
            assert source in COMPOSE["volumes"], f"{source} is not among the volumes"


@pytest.mark.parametrize(
    ("service", "path"),
    [
        *(("collector", path) for path in [flags("collector")["config"]]),
        *(("prometheus", flags("prometheus")[flag]) for flag in ("config.file", "storage.tsdb.path")),
        *(("prometheus", path) for path in PROMETHEUS["rule_files"]),
        *(("alertmanager", flags("alertmanager")[flag]) for flag in ("config.file", "storage.path")),
        ("tempo", flags("tempo")["config.file"]),
        ("tempo", TEMPO["storage"]["trace"]["wal"]["path"]),
        ("tempo", TEMPO["storage"]["trace"]["local"]["path"]),
        ("tempo", TEMPO["metrics_generator"]["storage"]["path"]),
        ("tempo", TEMPO["metrics_generator"]["traces_storage"]["path"]),
        ("grafana", SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]),
    ],
)
def test_paths_in_the_container_lie_in_a_mount(service, path):
    inside = [target for target in mounts(service) if PurePosixPath(path).is_relative_to(target)]
    assert inside, f"{path} is not mounted in {service}"
    source, _ = mounts(service)[inside[0]]
    if source.startswith("."):
        found = (STACK / source).resolve()
        rest = PurePosixPath(path).relative_to(inside[0]).as_posix()
        assert found.is_file() if rest == "." else list(found.glob(rest))


def test_every_address_is_a_port_on_which_its_service_listens():
    ports = listening()
    assert [each for each in used() if each[2] not in ports[each[1]]] == []
    assert [each for each in published().values() if each[1] not in ports[each[0]]] == []


def exported() -> Any:
    """Return the options with which `make stack` exports its pack, read by ragtrace's own parser."""
    (line,) = re.findall(r"^\t\$\(BIN\)/ragtrace (dashboards export build/stack-pack .*)$", MAKEFILE, re.MULTILINE)
    return SimpleNamespace(**parsed(shlex.split(line)))


def test_make_mounts_the_pack_that_it_exports():
    (folder,) = re.findall(
        r"^STACK := RAGTRACE_PACK=\$\$\{RAGTRACE_PACK:-\$\(CURDIR\)/(\S+)\} docker", MAKEFILE, re.MULTILINE
    )
    assert folder == str(exported().folder)
    assert all(
        re.search(rf"^{target}: stack-pack ", MAKEFILE, re.MULTILINE) for target in ("stack", "stack-traffic")
    )


def test_links_of_alerts_lead_to_what_is_published():
    options = exported()
    links = {options.grafana_url: "grafana", options.runbook_url: "runbooks"} | {
        flags(service)["web.external-url"]: service for service in ("prometheus", "alertmanager")
    }
    for url, service in links.items():
        parts = urllib.parse.urlsplit(url)
        assert parts.hostname == "localhost"
        assert published()[parts.port or 80][0] == service
    path = urllib.parse.urlsplit(options.runbook_url).path
    served = (STACK / "runbooks.conf").read_text()
    assert f"location {path}/ {{" in served
    assert f"{re.findall(r'root (.+);', served)[0]}{path}" in mounts("runbooks")


def test_otlp_is_published_where_sdks_look_for_it():
    assert {port: service for port, (service, _) in published().items() if port in {4317, 4318}} == {
        4317: "collector",
        4318: "collector",
    }


@pytest.mark.parametrize("file", [DATASOURCES, PROVIDER, ALERTING])
def test_grafana_finds_what_the_generator_writes(file):
    kind = PurePosixPath(file).parent.name
    source, _ = mounts("grafana")[f"/etc/grafana/provisioning/{kind}"]
    assert (STACK / source / PurePosixPath(file).name).is_file()


def test_grafana_finds_the_boards():
    source, _ = mounts("grafana")[BOARDS_PATH]
    assert {each.name for each in (STACK / source).rglob("*.json")} == set(board_files(CONFIG))


def test_data_sources_are_those_of_the_configuration():
    source, _ = mounts("grafana")["/etc/grafana/provisioning/datasources"]
    found = yaml.safe_load((STACK / source / "ragtrace.yaml").read_text())["datasources"]
    assert {each["uid"]: each["url"] for each in found} == {
        CONFIG.datasource_uid: CONFIG.prometheus_url,
        CONFIG.tempo_uid: CONFIG.tempo_url,
    }


def test_prometheus_keeps_what_baselines_and_exemplars_need():
    found = flags("prometheus")
    days = int(found["storage.tsdb.retention.time"].removesuffix("d"))
    kept_s = (days - 1) * 86_400
    assert kept_s >= CONFIG.baseline_memory_s + CONFIG.wander_rest_s >= CONFIG.wander_s + CONFIG.wander_rest_s
    assert CONFIG.baseline_memory_s > CONFIG.baseline_rest_s == CONFIG.baseline_s + CONFIG.week_window_s
    assert found["enable-feature"] == "exemplar-storage"
    hours = int(TEMPO["compactor"]["compaction"]["block_retention"].removesuffix("h"))
    assert hours == days * 24, "an exemplar's trace should be there as long as the exemplar"


def test_samples_are_as_close_as_boards_expect():
    interval_s = int(PROMETHEUS["global"]["scrape_interval"].removesuffix("s"))
    assert interval_s <= CONFIG.scrape_s
    assert SERVICES["traffic"]["environment"]["OTEL_METRIC_EXPORT_INTERVAL"] == str(interval_s * 1_000)


def test_the_collector_takes_all_signals_and_uses_all_it_defines():
    pipelines = COLLECTOR["service"]["pipelines"]
    assert set(pipelines) == {"traces", "metrics", "logs"}
    for kind in ("receivers", "processors", "exporters"):
        assert {each for pipeline in pipelines.values() for each in pipeline.get(kind, [])} == set(COLLECTOR[kind])


def test_the_collector_leaves_names_alone_and_gives_exemplars():
    exporter = COLLECTOR["exporters"]["prometheus"]
    assert exporter == {"endpoint": exporter["endpoint"], "enable_open_metrics": True}
    (scrape,) = PROMETHEUS["scrape_configs"]
    assert scrape["honor_labels"] is True, "without it `job` would be the Collector's"


@pytest.mark.parametrize("it", semconv.METRICS, ids=lambda it: it.name)
def test_the_collectors_rule_gives_the_names_of_semconv(it):
    """The rule of its exporter: words; the unit unless it is one of them; `ratio` on gauges of 1, `total` on counters."""
    words = re.findall(r"[a-zA-Z0-9]+", it.name)
    unit = {"s": ["seconds"], "1": []}[it.unit] if "{" not in it.unit else []
    words += [each for each in unit if each not in words]
    kind = it.kind.removeprefix("observable_")
    last = {"counter": "total", "gauge": "ratio"}.get(kind if kind == "counter" or it.unit == "1" else "")
    if last:
        words = [*(word for word in words if word != last), last]
    assert "_".join(words) == it.prometheus


def test_tempo_computes_the_metrics_that_boards_ask_for():
    asked = any("_over_time(span." in text for text in board_files(CONFIG).values())
    switched_on = TEMPO["overrides"]["defaults"]["metrics_generator"]["processors"] == ["local-blocks"]
    assert asked == switched_on


def test_nothing_is_secret():
    def keys(node: Any) -> list[str]:
        if isinstance(node, dict):
            return [*node, *(key for each in node.values() for key in keys(each))]
        return [key for each in node for key in keys(each)] if isinstance(node, list) else []

    names = [key for file in STACK.iterdir() if file.suffix in {".yaml", ".yml"} for key in keys(read(file.name))]
    assert len(names) > 100
    assert [
        name for name in names if re.search(r"passw|secret|token|credential|api_?key|auth_key", name, re.IGNORECASE)
    ] == []


def test_make_brings_it_up():
    assert re.search(r"^STACK := \S+ docker compose -f dashboards/stack/compose.yaml$", MAKEFILE, re.MULTILINE)
    assert re.findall(r"^(stack[a-z-]*):", MAKEFILE, re.MULTILINE) == re.findall(
        r"^make (stack[a-z-]*)", (STACK / "README.md").read_text(), re.MULTILINE
    )


def with_rules_of(text: str) -> str:
    """Return prometheus.yml with the rules where they lie in the repository."""
    ((target, (source, _)),) = [each for each in mounts("prometheus").items() if each[0].endswith("/rules")]
    return text.replace(target, str((STACK / source).resolve()))


def tool(name: str, package: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed (Debian: apt-get install {package})")
    return found


def test_promtool_takes_the_configuration_and_all_rules(tmp_path):
    file = tmp_path / "prometheus.yml"
    file.write_text(with_rules_of((STACK / "prometheus.yml").read_text()))
    done = subprocess.run(
        [tool("promtool", "prometheus"), "check", "config", file], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert f"{len(prometheus_files(CONFIG))} rule files found" in done.stdout


def test_amtool_takes_the_configuration():
    command = [tool("amtool", "prometheus-alertmanager"), "check-config", STACK / "alertmanager.yml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


class _Exporter(BaseHTTPRequestHandler):
    """Gives what the Collector's exporter gives of one application: `job` on each series, OpenMetrics, an exemplar."""

    def do_GET(self) -> None:
        labels = 'job="shop",gen_ai_evaluation_name="faithfulness",otel_scope_name="ragtrace"'
        text = (
            f"# TYPE ragtrace_evaluation_score histogram\n"
            f'ragtrace_evaluation_score_bucket{{{labels},le="+Inf"}} 1 # {{trace_id="{TRACE}"}} 0.9 {time.time():.3f}\n'
            f"ragtrace_evaluation_score_sum{{{labels}}} 0.9\n"
            f"ragtrace_evaluation_score_count{{{labels}}} 1\n"
            f'# TYPE target info\ntarget_info{{job="shop",service_version="1"}} 1\n# EOF\n'
        )
        self.send_response(200)
        self.send_header("Content-Type", "application/openmetrics-text; version=1.0.0; charset=utf-8")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def scraped():
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Exporter)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def prometheus(tmp_path, scraped):
    """A Prometheus of this machine with the stack's flags and file; paths, the target and the interval are ours."""
    program = tool("prometheus", "prometheus")
    text = with_rules_of((STACK / "prometheus.yml").read_text())
    assert "15s" in text
    (tmp_path / "prometheus.yml").write_text(text.replace("collector:8889", scraped).replace("15s", "1s"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"127.0.0.1:{free.getsockname()[1]}"
    ours = {
        "config.file": tmp_path / "prometheus.yml",
        "storage.tsdb.path": tmp_path / "data",
        "web.external-url": f"http://{url}",
        "web.listen-address": url,
    }
    command = [program, *(f"--{name}={value}" for name, value in (flags("prometheus") | ours).items())]
    log = tmp_path / "log"
    with log.open("w") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        try:
            yield lambda path, **query: ask(f"http://{url}/api/v1/{path}", query, lambda: process.poll() is None)
        finally:
            process.terminate()


def ask(url: str, query: dict[str, Any], is_alive: Any) -> Any:
    """Return the data of an answer as soon as it has any."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        assert is_alive(), "Prometheus refuses the stack's flags or file"
        try:
            with urllib.request.urlopen(f"{url}?{urllib.parse.urlencode(query)}", timeout=30) as reply:  # noqa: S310 - http on loopback
                data = json.load(reply)["data"]
        except OSError:
            data = None
        if data and (not isinstance(data, dict) or data.get("result", True)):
            return data
        time.sleep(0.1)
    raise AssertionError(f"no answer from {url} with {query}")


@pytest.mark.slow
def test_a_real_prometheus_runs_with_it(prometheus):
    metric = "ragtrace_evaluation_score_count"
    (series,) = prometheus("query", query=metric)["result"]
    assert series["metric"]["job"] == "shop"
    (exemplars,) = prometheus(
        "query_exemplars", query="ragtrace_evaluation_score_bucket", start=0, end=time.time() + 60
    )
    assert exemplars["exemplars"][0]["labels"] == {"trace_id": TRACE}
    assert {each["name"] for each in prometheus("rules")["groups"]} == set(GROUPS)
    kept = "storage.tsdb.retention.time"
    assert prometheus("status/flags")[kept] == flags("prometheus")[kept]
    assert prometheus("query", query="target_info")["result"][0]["metric"]["service_version"] == "1"
